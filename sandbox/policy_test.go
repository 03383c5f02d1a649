package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/component"
)

func TestAPolicyWithinAnotherHasWhatBothAllow(t *testing.T) {
	outer := Policy{
		Root: "/p", Write: []string{"/w/a", "/v"}, Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Read: []string{"/k"}, Protect: []string{"/p/.git"}, Env: []string{"TOKEN", "A=1"},
		Network: Network{Hosts: []string{"*.example.com", "one.org"}}, Limits: Limits{CPU: time.Minute, Processes: 9}, Cache: "/c",
	}
	for name, c := range map[string]struct{ inner, want Policy }{
		"nothing stays nothing": {
			Policy{},
			Policy{Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Protect: []string{"/p/.git"}, Env: []string{}, Limits: Limits{time.Minute, DefaultFiles, DefaultFileSize, 9}},
		},
		"a wider one": {
			Policy{Root: "/", Write: []string{"/w", "/other", "/v/x"}, Read: []string{"/"}, Env: []string{"TOKEN", "KEY", "B=2"}, Network: Network{All: true}, Cache: "/x"},
			Policy{
				Write: []string{"/p", "/v", "/v/x", "/w/a"}, Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Read: []string{"/k"}, Protect: []string{"/p/.git"}, Env: []string{"TOKEN", "B=2"},
				Network: Network{Hosts: []string{"*.example.com", "one.org"}}, Limits: Limits{time.Minute, DefaultFiles, DefaultFileSize, 9},
			},
		},
		"a narrower one": {
			Policy{Root: "/p/sub", Hide: []string{"/i"}, HidePatterns: []string{"/a/*"}, ProtectPatterns: []string{"/b/*"}, Network: Network{Hosts: []string{"a.example.com", "two.org", "*.b.example.com"}}, Limits: Limits{CPU: time.Second, Processes: 100}},
			Policy{
				Root: "/p/sub", Hide: []string{"/h", "/i"}, HidePatterns: []string{"/a/*", "/p/**/x"}, ProtectPatterns: []string{"/b/*", "/p/**/y"}, Protect: []string{"/p/.git"}, Env: []string{},
				Network: Network{Hosts: []string{"*.b.example.com", "a.example.com"}}, Limits: Limits{time.Second, DefaultFiles, DefaultFileSize, 9},
			},
		},
		"the same root": {
			Policy{Root: "/p", Cache: "/x"},
			Policy{Root: "/p", Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Protect: []string{"/p/.git"}, Env: []string{}, Limits: Limits{time.Minute, DefaultFiles, DefaultFileSize, 9}, Cache: "/c"},
		},
		"a root that surrounds it": {
			Policy{Root: "/w"},
			Policy{Root: "/w/a", Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Protect: []string{"/p/.git"}, Env: []string{}, Limits: Limits{time.Minute, DefaultFiles, DefaultFileSize, 9}},
		},
		"none at all": {Policy{Off: true}, outer},
	} {
		got := c.inner.Within(outer)
		if len(got.Env) == 0 {
			got.Env = c.want.Env
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff(outer, outer.Within(Policy{Off: true})); diff != "" {
		t.Error(diff)
	}
}

var (
	somePath = rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/b/a"})
	someHost = rapid.SampledFrom([]string{"a.com", "x.a.com", "*.a.com", "*.x.a.com", "b.com", "10.0.0.1", "127.0.0.1", "localhost", "::1"})
	somePlan = rapid.Custom(func(t *rapid.T) Policy {
		return Policy{
			Root: rapid.SampledFrom([]string{"", "/a", "/a/b", "/b"}).Draw(t, "root"), Write: rapid.SliceOfN(somePath, 0, 3).Draw(t, "write"),
			Read: rapid.SliceOfN(somePath, 0, 2).Draw(t, "read"), Hide: rapid.SliceOfN(somePath, 0, 2).Draw(t, "hide"),
			Network: Network{All: rapid.Bool().Draw(t, "all"), Hosts: rapid.SliceOfN(someHost, 0, 3).Draw(t, "hosts")}, Off: rapid.IntRange(0, 9).Draw(t, "off") == 0,
		}
	})
)

// mayWrite and mayReach say what a policy means, by itself.
func mayWrite(p Policy, path string) bool {
	for _, dir := range p.writable() {
		if inside(dir, path) {
			return true
		}
	}
	return p.Off
}

func mayReach(p Policy, host string) bool {
	return p.Off || matches(p.Network.Hosts, host) || p.Network.All && !private(host)
}

func TestWithinAllowsExactlyWhatBothAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := somePlan.Draw(t, "inner"), somePlan.Draw(t, "outer")
		got := a.Within(b)
		for _, path := range []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/b/a", "/a/x"} {
			if want := mayWrite(a, path) && mayWrite(b, path); mayWrite(got, path) != want {
				t.Fatalf("write %s: %v, want %v: %+v", path, !want, want, got)
			}
		}
		for _, host := range []string{"a.com", "x.a.com", "y.x.a.com", "b.com", "c.org", "10.0.0.1", "127.0.0.1", "localhost", "::1", "1.1.1.1"} {
			if want := mayReach(a, host) && mayReach(b, host); mayReach(got, host) != want {
				t.Fatalf("reach %s: %v, want %v: %+v", host, !want, want, got)
			}
		}
	})
}

func TestTheContextOnlyNarrows(t *testing.T) {
	if _, ok := From(t.Context()); ok {
		t.Error("a policy from nowhere")
	}
	ctx := With(t.Context(), Policy{Root: "/p"})
	ctx = With(ctx, Policy{Root: "/", Write: []string{"/etc"}, Network: Network{All: true}, Off: true})
	if p, ok := From(ctx); !ok || p.Root != "/p" || p.Write != nil || !p.Network.None() || p.Off {
		t.Errorf("%+v", p)
	}
}

func TestAPolicyCrossesProcessesAsJSON(t *testing.T) {
	if b, err := json.Marshal(Policy{}); string(b) != "{}" || err != nil {
		t.Error(string(b), err)
	}
	p := Policy{
		Root: "/p", Write: []string{"/w"}, Protect: []string{"/p/a"}, Hide: []string{"/h"}, HidePatterns: []string{"/p/**/x"}, ProtectPatterns: []string{"/p/**/y"}, Read: []string{"/r"}, Network: Network{Hosts: []string{"a.com"}},
		Env: []string{"A"}, Limits: Limits{1, 2, 3, 4}, Cache: "/c", Off: true,
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back Policy
	if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(p, back) {
		t.Error(err, cmp.Diff(p, back))
	}
}

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
		p     Policy
		class *errdefs.Class
	}{
		"a relative root":         {Policy{Root: "x"}, errdefs.Validation},
		"a path that isn't clean": {Policy{Root: dir + "/."}, errdefs.Validation},
		"a symbolic link":         {Policy{Write: []string{dir + "/link"}}, errdefs.Validation},
		"nothing there":           {Policy{Root: dir + "/none"}, errdefs.NotFound},
		"a host with a port":      {Policy{Network: Network{Hosts: []string{"a.com:80"}}}, errdefs.Validation},
		"an address of the web":   {Policy{Network: Network{Hosts: []string{"https://a.com"}}}, errdefs.Validation},
		"a star in the middle":    {Policy{Network: Network{Hosts: []string{"a.*.com"}}}, errdefs.Validation},
		"an empty host":           {Policy{Network: Network{Hosts: []string{""}}}, errdefs.Validation},
		"protection of nothing":   {Policy{Protect: []string{dir}}, errdefs.Validation},
		"a library before all":    {Policy{Env: []string{"LD_AUDIT=/x"}}, errdefs.Validation},
		"a variable with no name": {Policy{Env: []string{"=x"}}, errdefs.Validation},
		"less than no time":       {Policy{Limits: Limits{CPU: -1}}, errdefs.Validation},
	} {
		f, err := Open(c.p, nil)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := Policy{Root: dir + "/link", Write: []string{dir + "/link/."}}.Resolve()
	if err != nil || p.Root != dir || p.Write[0] != dir {
		t.Error(p, err)
	}
	if _, err := (Policy{Root: dir + "/none"}).Resolve(); !errors.Is(err, errdefs.NotFound) {
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
		p    Policy
		caps Capabilities
	}{
		"no fence":   {Policy{}, Capabilities{Writes: no, Network: yes}},
		"no network": {Policy{}, Capabilities{Writes: yes, Network: no}},
		"no hosts":   {Policy{Network: Network{Hosts: []string{"a.com"}}}, Capabilities{Writes: yes, Network: yes, Hosts: no}},
		"no inside":  {Policy{Root: dir, Protect: []string{dir + "/keep"}}, Capabilities{Writes: yes, Network: yes, Inside: no}},
		"no hiding":  {Policy{Root: dir, Hide: []string{dir + "/keep"}}, Capabilities{Writes: yes, Network: yes, Inside: no}},
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
		p    Policy
		want []string
	}{
		"nothing named": {Policy{}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "GOFLAGS=-mod=mod"}},
		"an open network": {
			Policy{Network: Network{All: true}},
			[]string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "GOFLAGS=-mod=mod", "HTTPS_PROXY=http://proxy:1"},
		},
		"some named": {
			Policy{Env: []string{"GITHUB_TOKEN", "MINE=other", "GOPROXY", "ABSENT", "LD_PRELOAD"}},
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
