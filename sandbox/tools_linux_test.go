package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
)

// tools are what agents do in projects all day, offline: each has to work inside a fence as it does outside.
var tools = map[string]struct {
	tool, script, want string
	slow, always       bool // in one kind of fence only; its absence is no reason to skip where everything has to be there
}{
	"git": {"git", `set -e
git init -q . && git config user.name n && git config user.email e@example.com && echo a >a && git add a && git commit -qm one
git checkout -qb other && echo b >>a && git commit -qam two && git checkout -q - && git merge -q other && git stash list && git gc -q && git clone -q . copy
git -C copy log --format=%s`, "two\none", false, true},
	"go": {"go", `set -e
cat >go.mod <<'E'
module example.com/m
go 1.26.0
require golang.org/x/sync SYNC
E
cat >go.sum <<'E'
SUMS
E
printf 'package main\nimport "golang.org/x/sync/semaphore"\nfunc main() { semaphore.NewWeighted(1); println("built") }\n' >main.go
go mod download 2>/dev/null
go build -o m . && ./m 2>&1 && go install . && m 2>&1`, "built\nbuilt", true, true},
	"npm": {"npm", `set -e
mkdir dep app && cd dep && echo '{"name":"dep","version":"1.0.0","main":"i.js"}' >package.json && echo 'module.exports="required"' >i.js && npm pack --silent >/dev/null
cd ../app && echo '{"name":"app","version":"1.0.0"}' >package.json && npm install --silent --no-audit --no-fund ../dep/dep-1.0.0.tgz >/dev/null
rm -rf node_modules && npm ci --silent --no-audit --no-fund --prefer-offline >/dev/null && node -e 'console.log(require("dep"))'`, "required", true, false},
	"pip": {"python3", `set -e
python3 - <<'E'
import zipfile
with zipfile.ZipFile("dep-1.0-py3-none-any.whl", "w") as z:
    z.writestr("dep.py", "said = 'imported'\n")
    z.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
    z.writestr("dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr("dep-1.0.dist-info/RECORD", "dep.py,,\ndep-1.0.dist-info/METADATA,,\ndep-1.0.dist-info/WHEEL,,\ndep-1.0.dist-info/RECORD,,\n")
E
python3 -m venv --without-pip --system-site-packages v && v/bin/python -m pip install -q --no-index --root-user-action=ignore --target lib ./dep-1.0-py3-none-any.whl
PYTHONPATH=lib v/bin/python -c 'import dep; print(dep.said)'`, "imported", true, false},
	"cargo": {"cargo", `set -e
cargo init -q --vcs none --name m . && cargo build -q --offline && target/debug/m`, "Hello, world!", true, false},
	"make and cc": {"cc", `set -e
printf 'int main(void){return 0;}' >m.c && cc -o m m.c && ./m && echo compiled`, "compiled", false, true},
	"a temporary file": {"mktemp", `f=$(mktemp) && echo kept >"$f" && cat "$f" && case $f in $TMPDIR/*) echo own;; esac; rm "$f"`, "kept\nown", false, true},
}

func TestToolsWorkInAFenceAsOutside(t *testing.T) {
	home := os.Getenv("HOME")
	var extra []string
	for name, dir := range map[string]string{"RUSTUP_HOME": home + "/.rustup", "PYENV_ROOT": home + "/.pyenv"} {
		if _, err := os.Stat(dir); err == nil && os.Getenv(name) == "" {
			extra = append(extra, name+"="+dir)
		}
	}
	version, sums := syncModule(t)
	cache := ""
	if out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output(); err == nil {
		lines := strings.Fields(string(out))
		extra, cache = append(extra, "GOMODCACHE="+lines[0]), lines[1]
	}
	extra = append(extra, "GOTOOLCHAIN=local", "GOPROXY=off")
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			absent := func(why string) {
				if tool.always {
					component.Absent(t, why, "install "+tool.tool)
				}
				t.Skip(why) // whoever has it gets it tested
			}
			if _, err := exec.LookPath(tool.tool); err != nil {
				absent(tool.tool + " is not on PATH")
			}
			script := strings.NewReplacer("SYNC", version, "SUMS", sums).Replace(tool.script)
			if strings.Contains(tool.script, "$TMPDIR") {
				script = `export TMPDIR="${TMPDIR:-/tmp}"; ` + script
			}
			free := newPlace(t)
			free.env = append(append(free.env, extra...), "GOCACHE="+cache, "GOBIN="+free.out, "PATH="+os.Getenv("PATH")+":"+free.out)
			if out, err := free.run(free.fence(Capabilities{}, Policy{Off: true}), script); err != nil || out != tool.want {
				absent(fmt.Sprintf("it doesn't work outside either: %v %s", err, out))
			}
			work := func(t *testing.T, caps Capabilities) {
				p := newPlace(t)
				p.env = append(p.env, extra...)
				f := p.fence(caps, Policy{})
				if out, err := p.run(f, script); err != nil || out != tool.want {
					t.Errorf("%v: %s", err, out)
				}
			}
			if !tool.slow {
				each(t, work)
			} else if !testing.Short() {
				_ = kinds(t)
				work(t, Probe())
			}
		})
	}
}

// syncModule is a small module that this one needs, so that it is in the module cache: its version, and its lines of go.sum.
func syncModule(t *testing.T) (version, sums string) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "go.sum"))
	if err != nil {
		t.Skip("the sources are not here: ", err)
	}
	mod, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "golang.org/x/sync "); ok {
			version, _, _ = strings.Cut(rest, " ")
		}
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "golang.org/x/sync "+version) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return version, strings.Join(lines, "\n")
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
			f := p.fence(caps, Policy{})
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
