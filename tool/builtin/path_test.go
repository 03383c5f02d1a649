package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// outsideDir is a directory beside the project with a secret in it.
func outsideDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	lay(t, dir, map[string]string{"secret.txt": "the secret", "sub/secret.txt": "the secret"})
	return dir
}

func TestNoPathLeadsOutOfTheProject(t *testing.T) {
	t.Parallel()
	secret := outsideDir(t)
	w := open(t, map[string]string{"a/b.txt": "inside\n"})
	dir := w.Dir()
	link(t, filepath.Join(secret, "secret.txt"), filepath.Join(dir, "file"))
	link(t, secret, filepath.Join(dir, "dir"))
	up, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	link(t, up, filepath.Join(dir, "updir"))
	link(t, "../"+up+"/secret.txt", filepath.Join(dir, "a/upfile"))
	link(t, "updir", filepath.Join(dir, "twice"))
	link(t, "missing/../../"+filepath.Base(secret), filepath.Join(dir, "dangling"))
	link(t, "/proc/self/root", filepath.Join(dir, "root"))
	link(t, "loop", filepath.Join(dir, "loop"))

	for name, path := range map[string]string{
		"up":                         filepath.Join(up, "secret.txt"),
		"up, further on":             "a/../" + filepath.Join(up, "secret.txt"),
		"up beyond the root":         strings.Repeat("../", 50) + strings.TrimPrefix(secret, "/") + "/secret.txt",
		"an absolute path":           filepath.Join(secret, "secret.txt"),
		"absolute with dots":         dir + "/../" + filepath.Base(filepath.Dir(secret)) + "/" + filepath.Base(secret) + "/secret.txt",
		"a name with the same start": dir + "-other/secret.txt",
		"/proc/self/root":            "/proc/self/root" + secret + "/secret.txt",
		"/proc/self/cwd":             "/proc/self/cwd/secret.txt",
		"/dev/stdin":                 "/dev/stdin",
		"a link to a file":           "file",
		"a relative link to a file":  "a/upfile",
		"a link to a directory":      "dir/secret.txt",
		"a relative link to one":     "updir/secret.txt",
		"a link to a link":           "twice/secret.txt",
		"a link below that":          "twice/sub/secret.txt",
		"a link by a missing one":    "dangling/secret.txt",
		"a link to /proc/self/root":  "root" + secret + "/secret.txt",
		"a link to itself":           "loop",
		"an empty path":              "",
		"a NUL":                      "a\x00b",
	} {
		for _, f := range []struct {
			tool  tool.Tool
			input in
		}{
			{w.Read(), in{"file_path": path}},
			{w.Write(), in{"file_path": path, "content": "gone"}},
			{w.Edit(), in{"file_path": path, "old_string": "secret", "new_string": "gone"}},
			{w.Grep(), in{"path": path + "x", "pattern": "secret"}},
			{w.Grep(), in{"path": path, "pattern": "secret"}},
			{w.Glob(), in{"path": path, "pattern": "*"}},
			{w.Glob(), in{"path": filepath.Dir(path), "pattern": "sec*"}},
			{w.Bash(), in{"command": "cat secret.txt", "workdir": path}},
		} {
			res, err := call(t, f.tool, f.input)
			if strings.Contains(res.Content, "secret.txt") && path != "" || strings.Contains(res.Content, "the secret") {
				t.Errorf("%s: %s shows %s", name, f.tool.Definition().Name, res.Content)
			}
			if f.tool.Definition().Name == "write" && (err == nil || !errors.Is(err, errdefs.PolicyDenied) && !errors.Is(err, errdefs.Validation)) {
				t.Errorf("%s: write: %v", name, err)
			}
		}
	}
	for _, file := range []string{"secret.txt", "sub/secret.txt"} {
		if got := content(t, secret, file); got != "the secret" {
			t.Errorf("%s is now %q", file, got)
		}
	}
	if entries, _ := os.ReadDir(secret); len(entries) != 2 {
		t.Errorf("something was made outside: %v", entries)
	}
}

func TestARefusalSaysWhichPathWhyAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	link(t, "/etc", filepath.Join(w.Dir(), "conf"))
	err := refusal(t, w.Read(), in{"file_path": "/etc/passwd"}, "read: /etc/passwd is outside of the project directory: give a path inside "+w.Dir())
	if !errors.Is(err, errdefs.PolicyDenied) {
		t.Errorf("%v is no refusal", err)
	}
	refused(t, w.Read(), in{"file_path": "conf/passwd"}, "conf/passwd: conf is a symbolic link to /etc, which is outside", w.Dir())
}

func TestPathsInsideTheProjectWork(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a/b.txt": "inside\n", "..odd/x": "odd\n", "a/weird name\t.txt": "weird\n"})
	dir := w.Dir()
	link(t, "a", filepath.Join(dir, "rel"))
	link(t, filepath.Join(dir, "a"), filepath.Join(dir, "abs"))
	link(t, "../a/b.txt", filepath.Join(dir, "a/self"))
	other := filepath.Join(t.TempDir(), "other")
	link(t, dir, other)
	for _, path := range []string{
		"a/b.txt", "./a/b.txt", "a//b.txt", "a/../a/b.txt", dir + "/a/b.txt", dir + "/./a/../a/b.txt",
		"../" + filepath.Base(dir) + "/a/b.txt", "rel/b.txt", "abs/b.txt", "a/self", "rel/self", other + "/a/b.txt", other + "/rel/b.txt",
	} {
		if got := ok(t, w.Read(), in{"file_path": path}); got != "     1\tinside" {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := ok(t, w.Read(), in{"file_path": "..odd/x"}); got != "     1\todd" {
		t.Error(got)
	}
	if got := ok(t, w.Glob(), in{"pattern": "a/w*"}); got != "a/weird name\uFFFD.txt" {
		t.Errorf("a control character in a name is shown as it is: %q", got)
	}
}

func TestAProjectMayBeOpenedThroughALink(t *testing.T) {
	t.Parallel()
	real := t.TempDir()
	lay(t, real, map[string]string{"a.txt": "inside\n"})
	through := filepath.Join(t.TempDir(), "link")
	link(t, real, through)
	w, err := Open(through)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if w.Dir() != through {
		t.Errorf("Dir is %s", w.Dir())
	}
	for _, path := range []string{"a.txt", through + "/a.txt", real + "/a.txt"} {
		if got := ok(t, w.Read(), in{"file_path": path}); got != "     1\tinside" {
			t.Errorf("%s: %s", path, got)
		}
	}
	refused(t, w.Read(), in{"file_path": filepath.Dir(through) + "/other"}, "outside of the project")
}

// A link that is put in place after the path was looked at must not help, wherever it leads: it is not gone through, and the operation itself is held by the Root.
func TestALinkSwappedInBetweenDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	secret := outsideDir(t)
	w := open(t, map[string]string{"d/secret.txt": "inside"})
	dir := filepath.Join(w.Dir(), "d")

	p, err := w.locateToWrite("d/secret.txt") // looked at while it is a directory
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	link(t, secret, dir)
	if b, _, err := w.readWhole(p, 100); !errors.Is(err, errdefs.Conflict) {
		t.Errorf("%s, %v", b, err)
	}
	if err := w.replace(t.Context(), p, "gone", nil); err == nil {
		t.Error("written through the link")
	}
	if got := content(t, secret, "secret.txt"); got != "the secret" {
		t.Errorf("the secret is now %q", got)
	}
	k := walk{w: w, in: place{root: w.root, rel: "d", shown: "d"}, may: func(place) bool { return true }, visit: func(p place, _ string) error {
		t.Errorf("walked to %s", p.shown)
		return nil
	}}
	if err := k.run(t.Context()); err == nil {
		t.Error("walked through the link")
	}
}

func TestLinksSwappedWhileToolsRunDoNotLeadOut(t *testing.T) {
	t.Parallel()
	secret := outsideDir(t)
	w := open(t, map[string]string{"d/secret.txt": "inside", "e/secret.txt": "inside"})
	dir := filepath.Join(w.Dir(), "d")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // d is a directory, missing, or a link to the outside, in quick turns
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(dir, dir+".old")
			_ = os.Symlink(secret, dir)
			_ = os.Remove(dir)
			_ = os.Rename(dir+".old", dir)
		}
	}()
	for range 300 {
		for _, res := range []tool.Result{
			first(call(t, w.Read(), in{"file_path": "d/secret.txt"})),
			first(call(t, w.Grep(), in{"pattern": "the", "output_mode": "content"})),
			first(call(t, w.Glob(), in{"pattern": "d/sub/*"})),
			first(call(t, w.Write(), in{"file_path": "d/secret.txt", "content": "inside"})),
			first(call(t, w.Edit(), in{"file_path": "d/secret.txt", "old_string": "the secret", "new_string": "gone"})),
		} {
			if strings.Contains(res.Content, "the secret") || strings.Contains(res.Content, "sub/") {
				t.Fatal(res.Content)
			}
		}
	}
	close(stop)
	<-stopped
	if got := content(t, secret, "secret.txt"); got != "the secret" {
		t.Errorf("the secret is now %q", got)
	}
}

func first(r tool.Result, _ error) tool.Result { return r }

func TestTheOutputDirectoryCanOnlyBeRead(t *testing.T) {
	t.Parallel()
	secret := outsideDir(t)
	for name, inProject := range map[string]bool{"beside the project": false, "inside the project": true} {
		project := t.TempDir()
		out := filepath.Join(t.TempDir(), "out")
		if inProject {
			out = filepath.Join(project, "deep/out")
		}
		w, err := Open(project, WithOutputDir(out))
		if err != nil {
			t.Fatal(err)
		}
		lay(t, out, map[string]string{"kept.txt": "one\ntwo\n"})
		link(t, filepath.Join(secret, "secret.txt"), filepath.Join(out, "link"))
		file := filepath.Join(out, "kept.txt")
		if got := ok(t, w.Read(), in{"file_path": file, "offset": 2}); got != "     2\ttwo" {
			t.Errorf("%s: %s", name, got)
		}
		if got := ok(t, w.Grep(), in{"path": file, "pattern": "tw.", "output_mode": "content"}); got != file+":2:two" {
			t.Errorf("%s: %s", name, got)
		}
		if got := ok(t, w.Grep(), in{"path": out, "pattern": "o"}); got != file {
			t.Errorf("%s: %s", name, got)
		}
		refused(t, w.Write(), in{"file_path": file, "content": ""}, "can only be read", project)
		refused(t, w.Write(), in{"file_path": filepath.Join(out, "new/x"), "content": ""}, "can only be read")
		refused(t, w.Edit(), in{"file_path": file, "old_string": "one", "new_string": "1"}, "can only be read")
		refused(t, w.Read(), in{"file_path": filepath.Join(out, "link")}, "outside")
		refused(t, w.Read(), in{"file_path": filepath.Join(out, "../x")})
		if inProject {
			link(t, "deep/out", filepath.Join(project, "other"))
			refused(t, w.Write(), in{"file_path": "other/kept.txt", "content": ""}, "can only be read")
			if got := ok(t, w.Grep(), in{"pattern": "one"}); got != "no matches" {
				t.Errorf("a search of the project finds old outputs: %s", got)
			}
		}
		if content(t, file) != "one\ntwo\n" {
			t.Errorf("%s: changed", name)
		}
		if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: Close removed a directory that isn't its own: %v", name, err)
		}
	}
}

func TestAWorkspaceIsFreedOnce(t *testing.T) {
	t.Parallel()
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out := w.outDir
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary output directory is still there: %v", err)
	}
	inputs := []in{
		{"command": "true"},
		{"file_path": "a"},
		{"file_path": "a", "content": ""},
		{"file_path": "a", "old_string": "a", "new_string": "b"},
		{"pattern": "a"},
		{"pattern": "a"},
		{},
		{"id": "x"},
	}
	for i, f := range w.Tools() {
		if err := refusal(t, f, inputs[i], "closed"); !errors.Is(err, errdefs.NotAvailable) {
			t.Errorf("%s: %v", f.Definition().Name, err)
		}
	}
}

func TestOpenFailsOnWhatIsNoProject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lay(t, dir, map[string]string{"file": "", "a/b/c": ""})
	for name, f := range map[string]func() (*Workspace, error){
		"a missing directory":           func() (*Workspace, error) { return Open(filepath.Join(dir, "none")) },
		"a file":                        func() (*Workspace, error) { return Open(filepath.Join(dir, "file")) },
		"an output directory in a file": func() (*Workspace, error) { return Open(dir, WithOutputDir(filepath.Join(dir, "file/x"))) },
		"a project in its output directory": func() (*Workspace, error) {
			return Open(filepath.Join(dir, "a/b"), WithOutputDir(filepath.Join(dir, "a")))
		},
	} {
		if w, err := f(); err == nil {
			t.Errorf("%s is taken", name)
			_ = w.Close()
		}
	}
}

func TestAMissingFileIsAnsweredWithTheNearestNames(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"src/main.go": "", "src/main_test.go": "", "src/server.ts": "", "README.md": ""})
	for path, want := range map[string]string{
		"src/mian.go":   "did you mean src/main.go",
		"src/server.js": "did you mean src/server.ts?",
		"readme.md":     "did you mean README.md?",
		"scr/main.go":   "did you mean src?",
		"src/zzz":       "src/zzz does not exist; find files with glob",
		"x/y/z":         "x/y/z does not exist, nor does the directory x",
	} {
		if err := refusal(t, w.Read(), in{"file_path": path}, want); !errors.Is(err, errdefs.NotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
	refused(t, w.Read(), in{"file_path": "README.md/x"}, "a part of the path is a file")
	refused(t, w.Bash(), in{"command": "true", "workdir": "sr"}, "did you mean src?")
}

// Whatever is asked for, a path that is found lies inside, and only what lies inside is found.
func TestPathResolutionStaysInside(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{"a/b/c": "x"})
	link(t, "..", filepath.Join(w.Dir(), "a/up"))
	link(t, "../..", filepath.Join(w.Dir(), "a/out"))
	link(t, "b/../b", filepath.Join(w.Dir(), "a/l"))
	link(t, w.Dir()+"/a", filepath.Join(w.Dir(), "abs"))
	rapid.Check(t, func(r *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "..", ".", "", "up", "out", "l", "abs", "new", "...", "~"}), 1, 8).Draw(r, "parts")
		path := strings.Join(parts, "/")
		if rapid.Bool().Draw(r, "absolute") {
			path = w.Dir() + "/" + path
		}
		p, err := w.locate(path)
		if err != nil {
			return
		}
		if !filepath.IsLocal(p.rel) {
			r.Fatalf("%s: %s", path, p.rel)
		}
		real, err := filepath.EvalSymlinks(filepath.Join(w.real, p.rel))
		if err == nil && real != filepath.Join(w.real, p.rel) {
			r.Fatalf("%s: %s is %s", path, p.rel, real)
		}
	})
}

func FuzzLocate(f *testing.F) {
	for _, s := range []string{"a", "../a", "/", "a/../../b", "a\x00", "link/x", "\\..\\a", "//a", "a/./b/"} {
		f.Add(s)
	}
	secret := outsideDir(f)
	w := open(f, map[string]string{"a/b": "x"})
	link(f, secret, filepath.Join(w.Dir(), "link"))
	f.Fuzz(func(t *testing.T, path string) {
		p, err := w.locate(path)
		if err == nil && !filepath.IsLocal(p.rel) {
			t.Fatalf("%q: %s", path, p.rel)
		}
		if res, _ := call(t, w.Read(), in{"file_path": path}); strings.Contains(res.Content, "secret") {
			t.Fatalf("%q: %s", path, res.Content)
		}
	})
}
