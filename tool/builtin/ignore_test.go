package builtin

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/internal/component"
)

func TestIgnoredFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		".gitignore": "*.log\n!keep.log\nbuild/\n/only-root\nlogs/**\n!logs/keep\nsub/exact.txt\n# comment\n\\#odd\ntrailing   \n**/deep/x\na{b}c\n[!k-z]1\n",
		"a.log":      "", "keep.log": "", "src/b.log": "", "src/keep.log": "",
		"build/out": "", "src/build/out": "", "src/rebuild": "",
		"only-root": "", "src/only-root": "",
		"logs/a": "", "logs/keep": "",
		"sub/exact.txt": "", "src/sub/exact.txt": "",
		"#odd": "", "trailing": "", "p/q/deep/x": "", "deep/x": "", "a{b}c": "", "abc": "", "a1": "", "k1": "",
		"nested/.gitignore": "*.tmp\n!a.log\n/local\r\nsecret/\n", "nested/x.tmp": "", "x.tmp": "", "nested/a.log": "", "nested/local": "", "nested/d/local": "", "nested/d/y.tmp": "", "nested/secret/s": "",
		".git/config": "", "nested/.git": "", ".github/ci.yml": "",
	}
	w := open(t, files)
	got := strings.Split(ok(t, w.Glob(), in{"pattern": "**"}), "\n")
	slices.Sort(got)
	want := []string{
		".github/ci.yml", ".gitignore", "abc", "k1", "keep.log", "logs/keep", "nested/.gitignore", "nested/a.log", "nested/d/local",
		"src/keep.log", "src/only-root", "src/rebuild", "src/sub/exact.txt", "x.tmp",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	all := open(t, files, WithGitignore(false))
	if n := len(strings.Split(ok(t, all.Glob(), in{"pattern": "**"}), "\n")); n != len(files)-2 {
		t.Errorf("with ignored files there are %d of %d", n, len(files)-2)
	}
}

func TestAnIgnoredDirectoryThatIsNamedIsSearched(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".gitignore": "vendor\n*.log\n", "vendor/a/x.go": "needle", "vendor/a/.gitignore": "y.go", "vendor/a/y.go": "needle", "vendor/z.log": "needle", "b.log": "needle"})
	for name, c := range map[string]struct{ got, want string }{
		"grep leaves it out":      {ok(t, w.Grep(), in{"pattern": "needle"}), "no matches"},
		"grep by path":            {ok(t, w.Grep(), in{"pattern": "needle", "path": "vendor"}), "vendor/a/x.go\nvendor/z.log"},
		"grep deep in it":         {ok(t, w.Grep(), in{"pattern": "needle", "path": "vendor/a"}), "vendor/a/x.go"},
		"grep in an ignored file": {ok(t, w.Grep(), in{"pattern": "needle", "path": "b.log"}), "b.log"},
		"glob by the pattern":     {ok(t, w.Glob(), in{"pattern": "vendor/**/*.go"}), "vendor/a/x.go"},
		"glob leaves it out":      {ok(t, w.Glob(), in{"pattern": "**/*.go"}), "no files match"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s", name, c.got)
		}
	}
}

// What git says is ignored, we leave out, and nothing else.
func TestIgnoreRulesMeanWhatTheyMeanToGit(t *testing.T) {
	t.Parallel()
	git := component.Command(t, "git", "install git")
	files := map[string]string{}
	for _, dir := range []string{"", "a/", "a/b/", "b/", "a/b/c/"} {
		for _, name := range []string{"x.log", "y.txt", "c1", "-"} {
			files[dir+name] = ""
		}
	}
	pattern := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "*", "**", "*.log", "?1", "[a-c]", "[!a]", "x*", "a*b", "x.log", "y.txt", "**b", "-"}), 1, 3).Draw(t, "parts")
		return rapid.SampledFrom([]string{"", "", "!", "!"}).Draw(t, "not") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "root") +
			strings.Join(parts, "/") + rapid.SampledFrom([]string{"", "", "/", " "}).Draw(t, "end")
	})
	rules := rapid.SliceOfN(pattern, 1, 5)
	rapid.Check(t, func(r *rapid.T) {
		dir := t.TempDir()
		lay(t, dir, files)
		lay(t, dir, map[string]string{
			".gitignore":     strings.Join(rules.Draw(r, "root"), "\n"),
			"a/.gitignore":   strings.Join(rules.Draw(r, "a"), "\n"),
			"a/b/.gitignore": strings.Join(rules.Draw(r, "b"), "\n"),
		})
		run := func(args ...string) string {
			cmd := exec.CommandContext(t.Context(), git, append([]string{"-c", "core.excludesFile=/dev/null"}, args...)...)
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				r.Fatal(err)
			}
			return string(out)
		}
		run("init", "-q")
		want := strings.Fields(run("ls-files", "--others", "--exclude-standard"))
		w, err := Open(dir, WithOutputDir(filepath.Join(dir, ".git/out")))
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = w.Close() }()
		var got []string
		k := walk{w: w, in: place{root: w.root, rel: ".", shown: "."}, may: func(place) bool { return true }, visit: func(p place, _ string) error {
			got = append(got, p.shown)
			return nil
		}}
		if err := k.run(t.Context()); err != nil {
			r.Fatal(err)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
			r.Fatalf("git - and we +: %s", diff)
		}
	})
}
