//go:build unix

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// programs are two modules as this repository has them, with a program each.
func programs() map[string]string {
	const main = "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/lib\"\n)\n\nvar version = \"devel\"\n\nfunc main() { fmt.Println(version, lib.Here()) }\n"
	return map[string]string{
		".gitignore":                    "/dist/\n",
		"LICENSE":                       "license\n",
		"README.md":                     "read me\n",
		"CHANGELOG.md":                  unreleased + "## v0.1.0\n\n- The first.\n",
		"go.mod":                        "module example.com/lib\n\ngo 1.26.0\n",
		"lib.go":                        "package lib\n\nimport \"runtime\"\n\n// Here is the file as it was built.\nfunc Here() string {\n\t_, file, _, _ := runtime.Caller(0)\n\treturn file\n}\n",
		"cmd/pawl/main.go":              main,
		"temporal/go.mod":               "module example.com/lib/temporal\n\ngo 1.26.0\n\nreplace example.com/lib => ../\n\nrequire example.com/lib v0.0.0-00010101000000-000000000000\n",
		"temporal/cmd/pawl-worker/m.go": main,
		"temporal/testdata/histories/0.1.0/h.json": "{}\n",
	}
}

// needGit begins a test that has scripts/release do something in a small repository.
func needGit(t *testing.T) {
	t.Helper()
	tier.SkipQuick(t, "it runs git and the go command")
	component.Command(t, "bash", "install bash")
	component.Command(t, "git", "install git")
	component.Command(t, "sha256sum", "install coreutils")
}

// The middle tier builds for one system.
func TestAReleaseIsTheSameBytesWhereverItIsBuilt(t *testing.T) {
	needGit(t)
	targets := []string{"linux/amd64"}
	if tier.All() {
		targets = append(targets, "windows/amd64")
	}
	r := newRepository(t, programs())
	r.git("tag", "v0.1.0")
	var sums []string
	for i, env := range [][2]string{{"GOFLAGS", "-buildvcs=false"}, {"TZ", "Asia/Tokyo"}} { // what somebody's environment says
		t.Setenv(env[0], env[1])
		c := repository{t, filepath.Join(t.TempDir(), strings.Repeat("elsewhere", i+1))}
		r.git("clone", "-q", r.dir, c.dir)
		if said, ok := c.script("release", append([]string{"build"}, targets...)...); !ok {
			t.Fatal(said)
		}
		b, err := os.ReadFile(filepath.Join(c.dir, "dist/SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(b))
		r.dir = c.dir // for what follows
	}
	if d := cmp.Diff(sums[0], sums[1]); d != "" {
		t.Errorf("in another directory: %s", d)
	}
	dist := filepath.Join(r.dir, "dist")
	for line := range strings.Lines(sums[1]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(b)) != sum {
			t.Errorf("%s does not have the sum %s: %v", name, sum, err)
		}
	}
	linux := untar(t, filepath.Join(dist, "pawl-v0.1.0-linux-amd64.tar.gz"))
	archives := map[string]map[string][]byte{"linux-amd64": linux}
	if tier.All() {
		archives["windows-amd64"] = unzip(t, filepath.Join(dist, "pawl-v0.1.0-windows-amd64.zip"))
	}
	for name, files := range archives {
		want, got := []string{"LICENSE", "README.md", "CHANGELOG.md", "modules.txt", "pawl", "pawl-worker"}, []string(nil)
		for file := range files {
			rest, ok := strings.CutPrefix(file, "pawl-v0.1.0-"+name+"/")
			if !ok {
				t.Errorf("%s lies outside of the archive's directory", file)
			}
			got = append(got, strings.TrimSuffix(rest, ".exe"))
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
		modules := string(files["pawl-v0.1.0-"+name+"/modules.txt"])
		if !strings.Contains(modules, "mod example.com/lib") || !strings.Contains(modules, "mod example.com/lib/temporal") {
			t.Errorf("%s has these modules:\n%s", name, modules)
		}
	}
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return
	}
	for _, name := range []string{"pawl", "pawl-worker"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, linux["pawl-v0.1.0-linux-amd64/"+name], 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path).CombinedOutput()
		if said := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(said, "v0.1.0 ") || strings.Contains(said, os.TempDir()) {
			t.Errorf("%s says %q, %v", name, said, err)
		}
	}
}

// The program itself: what it is made of has no directory of this machine in it, and says which commit it is of.
func TestThePawlOfThisCommitIsTheSameBytesAnywhere(t *testing.T) {
	tier.SkipUnlessAll(t, "the program is compiled and linked twice")
	needGit(t)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var built [][]byte
	var file, commit string
	for range 2 {
		r := repository{t, filepath.Join(t.TempDir(), strings.Repeat("clone", len(built)+1))}
		(repository{t, here}).git("clone", "-q", here, r.dir)
		file, commit = filepath.Join(t.TempDir(), "pawl"), r.git("rev-parse", "HEAD")
		if said, ok := r.script("release", "program", "cmd/pawl", runtime.GOOS+"/"+runtime.GOARCH, file); !ok {
			t.Fatal(said)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, b)
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Errorf("%x in one directory, %x in another", sha256.Sum256(built[0]), sha256.Sum256(built[1]))
	}
	out, err := exec.Command(file, "version").CombinedOutput()
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) != 4 || !strings.HasPrefix(lines[0], "pawl ") || lines[0] == "pawl devel" || lines[1] != "commit "+commit || lines[2] != runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("pawl version says %q, %v; the commit is %s", out, err, commit)
	}
}

func TestABuildOfNoReleaseSaysSo(t *testing.T) {
	needGit(t)
	r := newRepository(t, programs())
	r.git("tag", "temporal/v0.1.0") // another module's
	if said, ok := r.script("release", "build", "linux/amd64"); !ok || !strings.Contains(said, "pawl-devel-"+r.git("rev-parse", "--short=12", "HEAD")+"-linux-amd64.tar.gz") {
		t.Errorf("a trial: %v\n%s", ok, said)
	}
	r.git("tag", "v0.1.0")
	r.write(map[string]string{"lib.go": "package lib\n\nfunc Here() string { return \"\" }\n"})
	if said, ok := r.script("release", "build", "linux/amd64"); ok || !strings.Contains(said, "not committed") {
		t.Errorf("a release of what is in no commit: %v\n%s", ok, said)
	}
}

func TestWhatHasToBeDoneBeforeARelease(t *testing.T) {
	needGit(t)
	t.Setenv("PAWL_TOOLS", tools(t))
	const later = unreleased + "## v0.2.0\n\n- More.\n\n## v0.1.0\n"
	histories := map[string]string{"temporal/testdata/histories/0.2.0/h.json": "{}\n"}
	for _, c := range []struct {
		name, version, tag, changelog string
		change                        map[string]string
		want                          []string
	}{
		{name: "the first", version: "v0.1.0"},
		{name: "the next", version: "v0.2.0", tag: "v0.1.0", changelog: later, change: histories},
		{name: "after its candidate", version: "v0.2.0", tag: "v0.2.0-rc.2", changelog: later, change: histories},
		{name: "no version", version: "0.1", want: []string{"0.1 is no version"}},
		{name: "one that is out", version: "v0.1.0", tag: "v0.1.0", want: []string{"v0.1.0 is there already"}},
		{name: "an older one", version: "v0.1.0", tag: "v0.10.0", want: []string{"v0.1.0 does not follow v0.10.0"}},
		{name: "a candidate after its version", version: "v0.1.0-rc.1", tag: "v0.1.0", want: []string{"does not follow v0.1.0"}},
		{name: "a changelog and histories of before", version: "v0.2.0", tag: "v0.1.0", want: []string{`no "## v0.2.0"`, "rename unreleased to 0.2.0"}},
		{name: "v2 in the module of v1", version: "v2.0.0", tag: "v1.9.0", want: []string{"ends in /v2"}},
		{name: "a module that could not be built from one commit", version: "v0.1.0", change: map[string]string{"temporal/go.mod": "module example.com/lib/temporal\n\ngo 1.26.0\n\nrequire example.com/lib v0.1.0\n"}, want: []string{"no replace"}},
		{name: "something that breaks programs", version: "v0.2.0", tag: "v0.1.0", changelog: later, change: map[string]string{"temporal/testdata/histories/0.2.0/h.json": "{}\n", "lib.go": "package lib\n\nfunc Here() int { return 0 }\n"}, want: []string{"as `lib.Here`", "the Go API"}},
		{
			name: "something that breaks programs, and is in the changelog", version: "v0.2.0", tag: "v0.1.0", changelog: unreleased + "## v0.2.0\n\n### Breaking\n\n- `lib.Here` counts.\n\n## v0.1.0\n",
			change: map[string]string{"temporal/testdata/histories/0.2.0/h.json": "{}\n", "lib.go": "package lib\n\nfunc Here() int { return 0 }\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRepository(t, programs())
			if c.tag != "" {
				r.git("tag", c.tag)
			}
			if c.changelog != "" {
				r.write(map[string]string{"CHANGELOG.md": c.changelog})
			}
			if r.write(c.change); c.changelog != "" || c.change != nil {
				r.commit()
			}
			said, ok := r.script("release", "check", c.version)
			if ok != (c.want == nil) {
				t.Errorf("passed: %v\n%s", ok, said)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said:\n%s", want, said)
				}
			}
		})
	}
	r := newRepository(t, programs())
	r.write(map[string]string{"new.go": "package lib\n"})
	if said, ok := r.script("release", "check", "v0.1.0"); ok || !strings.Contains(said, "not committed") {
		t.Errorf("with a change: %v\n%s", ok, said)
	}
}

// go install MODULE@VERSION refuses a module that replaces another, and knows nothing of what lies beside it.
func TestTheModuleBesideIsInstalledByItsVersion(t *testing.T) {
	needGit(t)
	r := newRepository(t, programs())
	r.git("tag", "v0.1.0")
	proxy := t.TempDir()
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(proxy), "GONOSUMDB": "example.com/*", "GONOSUMCHECK": "1", "GOPRIVATE": "", "GONOPROXY": "", "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local",
		"GOMODCACHE": t.TempDir(), "GOBIN": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	head := r.git("rev-parse", "HEAD")
	if said, ok := r.script("release", "temporal", "v0.1.0"); ok || !strings.Contains(said, "push the tag v0.1.0 first") {
		t.Errorf("before the module itself can be had: %v\n%s", ok, said)
	}
	r.publish(proxy, "v0.1.0", ".")
	if said, ok := r.script("release", "temporal", "v0.1.0"); !ok {
		t.Fatal(said)
	}
	if branch, status := r.git("rev-parse", "main"), r.git("status", "--porcelain"); branch != head || status != "" || strings.Contains(r.git("worktree", "list"), "tree") {
		t.Errorf("it left something behind: main at %s, it was %s; %s", branch, head, status)
	}
	if changed := r.git("diff", "--name-only", "v0.1.0", "temporal/v0.1.0"); changed != "temporal/go.mod\ntemporal/go.sum" {
		t.Errorf("it changed %s", changed)
	}
	r.publish(proxy, "temporal/v0.1.0", "temporal")
	install := exec.Command("go", "install", "example.com/lib/temporal/cmd/pawl-worker@v0.1.0")
	install.Dir = t.TempDir()
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(os.Getenv("GOBIN"), "pawl-worker")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "example.com/lib@v0.1.0") {
		t.Errorf("it says %s, %v", out, err)
	}
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		if said, ok := r.script("release", "temporal", version); ok || !strings.Contains(said, "there ") {
			t.Errorf("%s, which is out or has no tag: %v\n%s", version, ok, said)
		}
	}
}

// publish puts a tag's module where Go finds it.
func (r repository) publish(proxy, tag, dir string) {
	r.t.Helper()
	path, version := "example.com/lib", filepath.Base(tag)
	spec := []string{"archive", "--format=zip", "--prefix=" + path + "@" + version + "/", "-o", filepath.Join(r.t.TempDir(), "m.zip"), tag, "--", ".", ":(exclude)temporal"}
	if dir != "." {
		path += "/" + dir
		spec = []string{"archive", "--format=zip", "--prefix=" + path + "@" + version + "/", "-o", spec[4], tag + ":" + dir}
	}
	r.git(spec...)
	packed, err := os.ReadFile(spec[4])
	at := filepath.Join(proxy, path, "@v")
	err = errors.Join(err, os.MkdirAll(at, 0o700))
	for name, text := range map[string]string{
		"list": version + "\n", version + ".info": fmt.Sprintf(`{"Version": %q, "Time": "2026-01-01T00:00:00Z"}`, version),
		version + ".mod": r.git("show", tag+":"+filepath.ToSlash(filepath.Join(dir, "go.mod"))) + "\n", version + ".zip": string(packed),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func untar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(h.Name), "pawl") != (h.Mode&0o777 == 0o755) {
			t.Errorf("%s has the mode %o", h.Name, h.Mode)
		}
	}
}

func unzip(t *testing.T, path string) map[string][]byte {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	files := map[string][]byte{}
	for _, f := range r.File {
		if f.FileInfo().IsDir() {
			continue
		}
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(content); err != nil {
			t.Fatal(err)
		}
		_ = content.Close()
	}
	return files
}
