package fence

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/sandbox"
)

func TestAPolicyThatMakesNoSenseIsRefused(t *testing.T) {
	if !Probe().Writes.Holds {
		component.Absent(t, "there is no fence here at all, which is said first", Probe().Writes.Why)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p     sandbox.Policy
		class *errdefs.Class
	}{
		"a relative root":         {sandbox.Policy{Root: "x"}, errdefs.Validation},
		"a path that isn't clean": {sandbox.Policy{Root: dir + "/."}, errdefs.Validation},
		"a symbolic link":         {sandbox.Policy{Write: []string{dir + "/link"}}, errdefs.Validation},
		"nothing there":           {sandbox.Policy{Root: dir + "/none"}, errdefs.NotFound},
		"a host with a port":      {sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.com:80"}}}, errdefs.Validation},
		"an address of the web":   {sandbox.Policy{Network: sandbox.Network{Hosts: []string{"https://a.com"}}}, errdefs.Validation},
		"a star in the middle":    {sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.*.com"}}}, errdefs.Validation},
		"an empty host":           {sandbox.Policy{Network: sandbox.Network{Hosts: []string{""}}}, errdefs.Validation},
		"protection of nothing":   {sandbox.Policy{Protect: []string{dir}}, errdefs.Validation},
		"a library before all":    {sandbox.Policy{Env: []string{"LD_AUDIT=/x"}}, errdefs.Validation},
		"a variable with no name": {sandbox.Policy{Env: []string{"=x"}}, errdefs.Validation},
		"less than no time":       {sandbox.Policy{Limits: sandbox.Limits{CPU: -1}}, errdefs.Validation},
	} {
		f, err := Open(c.p, nil)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := Resolve(sandbox.Policy{Root: dir + "/link", Write: []string{dir + "/link/."}})
	if err != nil || p.Root != dir || p.Write[0] != dir {
		t.Error(p, err)
	}
	if _, err := Resolve(sandbox.Policy{Root: dir + "/none"}); !errors.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

func TestWhatCannotBeEnforcedIsRefusedWithAReason(t *testing.T) {
	no := Status{Why: "there is none, get one"}
	yes := Status{Holds: true}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/keep", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		p    sandbox.Policy
		caps Capabilities
	}{
		"no fence":   {sandbox.Policy{}, Capabilities{Writes: no, Network: yes}},
		"no network": {sandbox.Policy{}, Capabilities{Writes: yes, Network: no}},
		"no hosts":   {sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.com"}}}, Capabilities{Writes: yes, Network: yes, Hosts: no}},
		"no inside":  {sandbox.Policy{Root: dir, Protect: []string{dir + "/keep"}}, Capabilities{Writes: yes, Network: yes, Inside: no}},
		"no hiding":  {sandbox.Policy{Root: dir, Hide: []string{dir + "/keep"}}, Capabilities{Writes: yes, Network: yes, Inside: no}},
	} {
		_, err := open(c.p, nil, c.caps)
		if !errors.Is(err, errdefs.NotAvailable) || !strings.Contains(err.Error(), no.Why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := Probe()
	for _, s := range []Status{c.Writes, c.Metadata, c.Inside, c.Network, c.Loopback, c.Hosts, c.Signals, c.Limits} {
		if s.Holds == (s.Why != "") {
			t.Errorf("%+v", s)
		}
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" && c.Backend != "none" {
		t.Error(c.Backend)
	}
}

func TestTheEnvironmentIsPickedFromAList(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "OPENAI_API_KEY=k", "GITHUB_TOKEN=t", "AWS_PROFILE=p", "AWS_SECRET_ACCESS_KEY=s", "SSH_AUTH_SOCK=/s", "DOCKER_HOST=unix:///d", "LD_PRELOAD=/x",
		"GOPROXY=https://user:pass@proxy.example,direct", "PIP_INDEX_URL=https://token@pypi.example", "GOFLAGS=-mod=mod", "BASH_ENV=/e", "BASH_FUNC_ls%%=() { :; }",
		"HTTPS_PROXY=http://proxy:1", "HTTP_PROXY=http://u:p@proxy:1", "MINE=m", "noequals",
	}
	for name, c := range map[string]struct {
		p    sandbox.Policy
		want []string
	}{
		"nothing named": {sandbox.Policy{}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "GOFLAGS=-mod=mod"}},
		"an open network": {
			sandbox.Policy{Network: sandbox.Network{All: true}},
			[]string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "GOFLAGS=-mod=mod", "HTTPS_PROXY=http://proxy:1"},
		},
		"some named": {
			sandbox.Policy{Env: []string{"GITHUB_TOKEN", "MINE=other", "GOPROXY", "ABSENT", "LD_PRELOAD"}},
			[]string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "GITHUB_TOKEN=t", "GOPROXY=https://user:pass@proxy.example,direct", "GOFLAGS=-mod=mod", "MINE=other"},
		},
	} {
		if diff := cmp.Diff(c.want, Environ(c.p, environ)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCachesGoWhereTheFenceCanWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "goenv")
	if err := os.WriteFile(file, []byte("GOPROXY=https://mirror.example\nGOFLAGS=-mod=mod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	goroot := t.TempDir()
	for path, text := range map[string]string{"go.env": "# defaults\n\nGOPROXY=https://default.example,direct\n", "bin/go": ""} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(goroot, path)), 0o700), os.WriteFile(filepath.Join(goroot, path), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(goroot, "bin", "go"), filepath.Join(linked, "go")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ environ, want []string }{
		"from the environment": {
			[]string{"GOPROXY=https://one.example", "GOENV=" + file, "GOMODCACHE=/m o", "PATH=/bin", "GOFLAGS="},
			[]string{"GOPROXY=file:///m%20o/cache/download,https://one.example", "GOFLAGS=-mod=mod -modcacherw", "PATH=/bin:/c/go/bin", "GOCACHE=/c/go-build"},
		},
		"from go env -w": {[]string{"GOENV=" + file, "GOPATH=/g:/h"}, []string{"GOPROXY=file:///g/pkg/mod/cache/download,https://mirror.example"}},
		"from nowhere": {
			[]string{"GOENV=off", "HOME=/home"},
			[]string{"GOPROXY=", "GOFLAGS=-modcacherw", "npm_config_cache=/c/npm", "NETRC=/dev/null"},
		},
		"from Go itself":   {[]string{"GOENV=off", "HOME=/home", "GOROOT=" + goroot}, []string{"GOPROXY=file:///home/go/pkg/mod/cache/download,https://default.example,direct"}},
		"from Go's places": {[]string{"GOENV=off", "HOME=/home", "PATH=/nowhere:" + linked}, []string{"GOPROXY=file:///home/go/pkg/mod/cache/download,https://default.example,direct"}},
	} {
		got := cacheEnv("/c", c.environ)
		for _, want := range c.want {
			if unset := strings.TrimSuffix(want, "="); unset != want { // Go's own default holds
				if valueIn(got, unset) != "" {
					t.Errorf("%s: %q", name, got)
				}
			} else if !slices.Contains(got, want) {
				t.Errorf("%s: no %s in %q", name, want, got)
			}
		}
	}
}
