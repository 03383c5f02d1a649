package fence

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// tools are what agents do in projects all day, offline: each has to work inside a fence as it does outside. What is not optional has to be there where everything has to.
var tools = map[string]struct {
	tool, how, script, want string
	slow, optional          bool // in one kind of fence only, even in the tier of everything; skipped if it is absent
}{
	"git": {"git", "install git", `set -e
git init -q . && git config user.name n && git config user.email e@example.com && echo a >a && git add a && git commit -qm one
git checkout -qb other && echo b >>a && git commit -qam two && git checkout -q - && git merge -q other && git stash list && git gc -q && git clone -q . copy
git -C copy log --format=%s`, "two\none", false, false},
	"go": {"go", "install Go", `set -e
cat >go.mod <<'E'
module example.com/m
go 1.26.0
E
printf 'package main\nimport ("example.com/dep"; "example.com/other")\nfunc main() { println(dep.Said, other.Said) }\n' >main.go
export GONOSUMDB=example.com GOFLAGS="$GOFLAGS -mod=mod"
GOPROXY="file://$MODULES" go get example.com/dep@v1.0.0 2>/dev/null
go get example.com/other@v1.0.0 2>/dev/null # which the user has already
go build -o m . && ./m 2>&1 && go install . && m 2>&1`, "dep other\ndep other", true, false},
	"npm": {"npm", "install npm", `set -e
mkdir dep app && cd dep && echo '{"name":"dep","version":"1.0.0","main":"i.js"}' >package.json && echo 'module.exports="required"' >i.js && npm pack --silent >/dev/null
cd ../app && echo '{"name":"app","version":"1.0.0"}' >package.json && npm install --silent --no-audit --no-fund ../dep/dep-1.0.0.tgz >/dev/null
rm -rf node_modules && npm ci --silent --no-audit --no-fund --prefer-offline >/dev/null && node -e 'console.log(require("dep"))'`, "required", true, false},
	"pip": {"python3", "install Python 3 with pip", `set -e
python3 - <<'E'
import zipfile
with zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w") as z:
    z.writestr("dep.py", "said = 'imported'\n")
    z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
    z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("dep-1.0.dist-info/RECORD", "dep.py,,\ndep-1.0.dist-info/METADATA,,\ndep-1.0.dist-info/WHEEL,,\ndep-1.0.dist-info/RECORD,,\n")
E
python3 -m venv --without-pip --system-site-packages v && v/bin/python -m pip install -q --no-index --root-user-action=ignore ./dep-1.0-py3-none-any.whl
v/bin/python -c 'import dep; print(dep.said)'`, "imported", true, false},
	"cargo": {"cargo", "install Rust", `set -e
cargo init -q --vcs none --name m . && cargo build -q --offline && target/debug/m`, "Hello, world!", true, true},
	"make and cc": {"cc", "install a C compiler", `set -e
printf 'int main(void){return 0;}' >m.c && cc -o m m.c && ./m && echo compiled`, "compiled", false, false},
	"a temporary file": {"mktemp", "install coreutils", `f=$(mktemp) && echo kept >"$f" && cat "$f" && case $f in $TMPDIR/*) echo own;; esac; rm "$f"`, "kept\nown", false, false},
}

func TestToolsWorkInAFenceAsOutside(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	home := os.Getenv("HOME")
	var extra []string
	for name, dir := range map[string]string{"RUSTUP_HOME": home + "/.rustup", "PYENV_ROOT": home + "/.pyenv"} {
		if _, err := os.Stat(dir); err == nil && os.Getenv(name) == "" {
			extra = append(extra, name+"="+dir)
		}
	}
	modules, cache := goModules(t), ""
	if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		cache = strings.TrimSpace(string(out))
	}
	users := filepath.Join(t.TempDir(), "mod") // the user's module cache, with one of the modules in it
	download := exec.Command("go", "mod", "download", "-modcacherw", "example.com/other@v1.0.0")
	download.Env = append(os.Environ(), "GOMODCACHE="+users, "GOPROXY=file://"+modules, "GONOSUMDB=example.com", "GOFLAGS=", "GOTOOLCHAIN=local")
	download.Dir = t.TempDir()
	if out, err := download.CombinedOutput(); err != nil {
		t.Fatalf("go mod download: %v %s", err, out)
	}
	extra = append(extra, "GOMODCACHE="+users, "GOTOOLCHAIN=local", "GOPROXY=off", "MODULES="+modules)
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			absent := func(why string) {
				if tool.optional {
					t.Skip(why) // whoever has it gets it tested: the tests need nothing else of it
				}
				component.Absent(t, why, tool.how)
			}
			if _, err := exec.LookPath(tool.tool); err != nil {
				absent(tool.tool + " is not on PATH")
			}
			script := tool.script
			if strings.Contains(tool.script, "$TMPDIR") {
				script = `export TMPDIR="${TMPDIR:-/tmp}"; ` + script
			}
			free := newPlace(t)
			free.env = append(append(free.env, extra...), "GOCACHE="+cache, "GOBIN="+free.out, "PATH="+os.Getenv("PATH")+":"+free.out)
			if out, err := free.run(free.fence(Capabilities{}, sandbox.Policy{Off: true}), script); err != nil || out != tool.want {
				absent(fmt.Sprintf("it doesn't work outside either: %v %s", err, out))
			}
			work := func(t *testing.T, caps Capabilities) {
				p := newPlace(t)
				p.env = append(p.env, extra...)
				f := p.fence(caps, sandbox.Policy{Env: []string{"MODULES"}})
				before := p.state(p.home, true)
				if out, err := p.run(f, script); err != nil || out != tool.want {
					t.Errorf("%v: %s", err, out)
				}
				for path := range p.state(p.home, false) { // nothing is kept there but what is kept for the project
					if _, was := before[path]; !was && !reach.Inside(f.cache, path) {
						t.Errorf("%s was made", path)
					}
				}
			}
			if !tool.slow && tier.All() {
				each(t, work)
			} else {
				_ = kinds(t)
				work(t, Probe())
			}
		})
	}
}

// goModules is a directory that serves as a module proxy, with two modules.
func goModules(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, module := range []string{"dep", "other"} {
		at := filepath.Join(dir, "example.com", module, "@v")
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		mod := "module example.com/" + module + "\n\ngo 1.26.0\n"
		for name, text := range map[string]string{"go.mod": mod, "a.go": fmt.Sprintf("package %[1]s\n\nconst Said = %[1]q\n", module)} {
			w, err := z.Create("example.com/" + module + "@v1.0.0/" + name)
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"list": "v1.0.0\n", "v1.0.0.info": `{"Version":"v1.0.0"}`, "v1.0.0.mod": mod, "v1.0.0.zip": b.String()} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// caches are the variables by which tools are told where to keep what they download and build.
var caches = []string{
	"XDG_CACHE_HOME", "GOCACHE", "GOPATH", "GOMODCACHE", "GOBIN", "npm_config_cache", "YARN_CACHE_FOLDER", "YARN_GLOBAL_FOLDER", "PNPM_HOME", "CARGO_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "PYTHONPYCACHEPREFIX",
	"GRADLE_USER_HOME",
}

func TestEachCacheIsTheProjectsOwnAndWritable(t *testing.T) {
	each(t, func(t *testing.T, caps Capabilities) {
		one, two := newPlace(t), newPlace(t)
		t.Setenv("TMPDIR", two.out) // so that the projects are not among the temporary files, whose caches go with the fence
		var first []string
		for _, p := range []*place{one, one, two} {
			p.env = append(p.env, "GOCACHE=/theirs", "GOMODCACHE=/theirs", "CARGO_HOME=/theirs", "PIP_CACHE_DIR=/theirs", "npm_config_cache=/theirs", "XDG_CACHE_HOME=/theirs")
			f := p.fence(caps, sandbox.Policy{})
			var script strings.Builder
			for _, name := range caches {
				fmt.Fprintf(&script, `mkdir -p "$%[1]s" && echo x >"$%[1]s/made" && echo "$%[1]s" || echo "not %[1]s"%[2]s`, name, "\n")
			}
			out, err := p.run(f, script.String())
			dirs := strings.Split(out, "\n")
			if err != nil || len(dirs) != len(caches) {
				t.Fatal(out, err)
			}
			for i, dir := range dirs {
				if !reach.Inside(f.cache, dir) || reach.Inside(p.in, dir) {
					t.Errorf("%s: %s", caches[i], dir)
				}
			}
			switch {
			case first == nil:
				first = dirs
			case p == one && !cmp.Equal(first, dirs):
				t.Error("the next fence for the project has other caches:", cmp.Diff(first, dirs))
			case p == two && dirs[0] == first[0]:
				t.Error("another project has the same cache")
			}
			if out, err := p.run(f, "cat "+first[0]+"/made"); p == one && (out != "x" || err != nil) {
				t.Error("the cache is not kept:", out, err)
			}
			if p == two {
				if out, err := p.run(f, "echo y >"+first[0]+"/made"); err == nil {
					t.Error("another project's cache can be written:", out)
				}
			}
		}
	})
}

func BenchmarkStart(b *testing.B) {
	b.Run("without a fence", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, caps := range kinds(b) {
		b.Run(name, func(b *testing.B) {
			p := newPlace(b)
			f := p.fence(caps, sandbox.Policy{})
			for b.Loop() {
				cmd, err := f.Command(b.Context(), "true")
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
