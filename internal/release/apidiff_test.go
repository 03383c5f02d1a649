//go:build unix

package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
)

// tools is a directory with the tool that compares, and without what it has seen before. If it is
// not built the test skips: go test alone asks for nothing of the network.
func tools(t *testing.T) string {
	t.Helper()
	needGit(t)
	dir, built := t.TempDir(), os.Getenv("PAWL_TOOLS")
	if built == "" {
		built = filepath.Join(root, ".cache/tools")
	}
	found, err := filepath.Glob(filepath.Join(built, "apidiff-v*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 && os.Getenv("PAWL_REQUIRE_REAL") != "1" {
		component.Absent(t, "apidiff is not built in "+built, "run scripts/lint, which builds it")
	}
	for _, path := range found { // another version than the script's is built then
		if path, err = filepath.Abs(path); err == nil {
			err = os.Symlink(path, filepath.Join(dir, filepath.Base(path)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const unreleased = "# Changelog\n\n## Unreleased\n\n"

// library is a module that somebody uses.
func library() map[string]string {
	return map[string]string{
		"go.mod":            "module example.com/lib\n\ngo 1.26.0\n",
		"lib.go":            "package lib\n\ntype T struct{ A int }\n\nfunc (*T) M() {}\n\nfunc F(int) {}\n",
		"sub/sub.go":        "package sub\n\nfunc F() {}\n\ntype G[X any] struct{ Y X }\n\nfunc (G[X]) Do(X) {}\n",
		"gone/gone.go":      "package gone\n\nfunc F() {}\n",
		"internal/x/x.go":   "package x\n\nfunc F() {}\n",
		"cmd/p/main.go":     "package main\n\nfunc F() {}\n\nfunc main() { F() }\n",
		"temporal/go.mod":   "module example.com/lib/temporal\n\ngo 1.26.0\n\nreplace example.com/lib => ../\n\nrequire example.com/lib v0.0.0-00010101000000-000000000000\n",
		"temporal/moved.go": "package temporal\n\nimport \"example.com/lib\"\n\nfunc Take(lib.T) {}\n",
		"CHANGELOG.md":      unreleased,

		"cli/testdata/stable/flags.txt":                 "lib run\nlib run --model VALUE\n",
		"journal/testdata/v1.jsonl":                     "{}\n",
		"temporal/testdata/histories/0.1.0/h.json":      "{}\n",
		"temporal/testdata/histories/unreleased/h.json": "{}\n",
	}
}

func TestWhatBreaksProgramsOfOthersIsFound(t *testing.T) {
	t.Setenv("PAWL_TOOLS", tools(t))
	for _, c := range []struct {
		name, tag string
		change    map[string]string
		changelog string
		want      []string // what is said of each thing that breaks; none: it passes
	}{
		{name: "nothing changed", tag: "v0.1.0"},
		{name: "something is added", tag: "v1.2.0", change: map[string]string{"more/more.go": "package more\n\nfunc F() {}\n"}},
		{name: "no tag", change: map[string]string{"lib.go": "package lib\n\ntype T struct{}\n"}},
		{name: "the tag of another module", tag: "temporal/v0.1.0", change: map[string]string{"lib.go": "package lib\n\ntype T struct{}\n"}},
		{name: "a function takes something else", tag: "v0.1.0", change: map[string]string{"lib.go": "package lib\n\ntype T struct{ A int }\n\nfunc (*T) M() {}\n\nfunc F(string) {}\n"}, want: []string{"`lib.F`"}},
		{
			name: "methods, fields and types are gone", tag: "v0.1.0", want: []string{"`lib.T.M`", "`lib.T.A`", "`sub.G.Do`"},
			change: map[string]string{"lib.go": "package lib\n\ntype T struct{}\n\nfunc F(int) {}\n", "sub/sub.go": "package sub\n\nfunc F() {}\n\ntype G[X any] struct{ Y X }\n"},
		},
		{name: "a package is gone", tag: "v0.1.0", change: map[string]string{"gone/gone.go": ""}, want: []string{"`gone`"}},
		{name: "the module beside it", tag: "v0.1.0", change: map[string]string{"temporal/moved.go": "package temporal\n\nfunc Take(int) {}\n"}, want: []string{"`temporal.Take`"}},
		{name: "what nobody else can import", tag: "v1.0.0", change: map[string]string{"internal/x/x.go": "", "cmd/p/main.go": "package main\n\nfunc main() {}\n"}},
		{name: "lists that grow, histories of what is not out", tag: "v1.0.0", change: map[string]string{"cli/testdata/stable/flags.txt": "lib run\nlib run --model VALUE\nlib run --new\n", "temporal/testdata/histories/unreleased/h.json": "{ }\n"}},
		{name: "a flag is gone", tag: "v0.1.0", change: map[string]string{"cli/testdata/stable/flags.txt": "lib run\n"}, want: []string{"as `lib run --model VALUE`"}},
		{name: "a list is gone", tag: "v1.0.0", change: map[string]string{"cli/testdata/stable/flags.txt": ""}, want: []string{"lib run: removed", "lib run --model VALUE: removed"}},
		{name: "golden files of what is out are changed", tag: "v1.0.0", change: map[string]string{"journal/testdata/v1.jsonl": "{ }\n", "temporal/testdata/histories/0.1.0/h.json": ""}, want: []string{"journal/testdata/v1.jsonl: changed", "histories/0.1.0/h.json: changed"}},
		{
			name: "before v1 the changelog names flags", tag: "v0.1.0", change: map[string]string{"cli/testdata/stable/flags.txt": "lib run\n"},
			changelog: unreleased + "### Breaking\n\n- `lib run --model VALUE` is gone: there is one model.\n",
		},
		{
			name: "before v1 the changelog names it", tag: "v0.1.0", change: map[string]string{"lib.go": "package lib\n\nfunc F(string) {}\n", "gone/gone.go": "", "temporal/moved.go": "package temporal\n"},
			changelog: unreleased + "- Other things.\n\n### Breaking\n\n- `lib.F` takes a name; `lib.T` is `sub.G`, and `gone` is gone. `temporal.Take` too.\n",
		},
		{
			name: "the changelog names its type", tag: "v1.0.0-rc.1", change: map[string]string{"lib.go": "package lib\n\ntype T struct{}\n\nfunc F(int) {}\n"},
			changelog: unreleased + "### Breaking\n\n- `lib.T` is empty.\n",
		},
		{
			name: "the changelog names something else", tag: "v0.1.0", change: map[string]string{"lib.go": "package lib\n\ntype T struct{ A int }\n\nfunc (*T) M() {}\n"},
			changelog: unreleased + "### Breaking\n\n- `lib.F.G`, lib.F, `sub.F`\n\n### Fixed\n\n- `lib.F`\n\n## v0.1.0\n\n### Breaking\n\n- `lib.F`\n", want: []string{"`lib.F`"},
		},
		{
			name: "from v1 on no changelog helps", tag: "v1.0.0", change: map[string]string{"lib.go": "package lib\n\ntype T struct{ A int }\n\nfunc (*T) M() {}\n"},
			changelog: unreleased + "### Breaking\n\n- `lib.F`\n", want: []string{"since v1.0.0: example.com/lib: F: removed: from v1 on what is there stays"},
		},
		{name: "another major version is another module", tag: "v1.0.0", change: map[string]string{"go.mod": "module example.com/lib/v2\n\ngo 1.26.0\n", "lib.go": "package lib\n", "temporal/go.mod": "", "temporal/moved.go": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepository(t, library())
			if c.tag != "" {
				r.git("tag", c.tag)
			}
			r.write(c.change)
			if c.changelog != "" {
				r.write(map[string]string{"CHANGELOG.md": c.changelog})
			}
			said, ok := r.script("apidiff")
			if ok != (len(c.want) == 0) {
				t.Fatalf("passed: %v\n%s", ok, said)
			}
			if n := strings.Count(said, ": since "); n != len(c.want) {
				t.Errorf("%d things break, want %d:\n%s", n, len(c.want), said)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said:\n%s", want, said)
				}
			}
			if nothing := strings.Contains(said, "compared with nothing"); nothing != (!strings.HasPrefix(c.tag, "v") || strings.Contains(c.name, "another major")) {
				t.Errorf("compared with nothing: %v\n%s", nothing, said)
			}
		})
	}
}

// What can't be compared is no success.
func TestWhatDoesNotCompileIsNotCompared(t *testing.T) {
	t.Setenv("PAWL_TOOLS", tools(t))
	r := newRepository(t, library())
	r.git("tag", "v0.1.0")
	r.write(map[string]string{"lib.go": "package lib\n\nfunc F() { nothing }\n"})
	if said, ok := r.script("apidiff"); ok || !strings.Contains(said, "nothing") {
		t.Errorf("passed: %v\n%s", ok, said)
	}
}
