package sandbox

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/sandbox/internal/reach"
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
	return p.Off || p.Root != "" && reach.Inside(p.Root, path) || slices.ContainsFunc(p.Write, func(dir string) bool { return reach.Inside(dir, path) })
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

func TestAHostIsMatchedAsAWhole(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com", true},
		{"Example.COM", "example.com.", true},
		{"example.com", "a.example.com", false},
		{"example.com", "evilexample.com", false},
		{"example.com", "example.com.evil.org", false},
		{"*.example.com", "a.example.com", true},
		{"*.example.com", "a.b.example.com", true},
		{"*.example.com", "example.com", false},
		{"*.example.com", "evilexample.com", false},
		{"*.local", "evillocal", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "::ffff:10.0.0.1", true},
		{"10.0.0.1", "10.0.0.10", false},
		{"::1", "[::1]", true},
		{"::1", "0:0:0:0:0:0:0:1", true},
		{"*.0.0.1", "127.0.0.1", false},
		{"localhost", "127.0.0.1", false},
	} {
		if got := (Network{Hosts: []string{"other.org", c.pattern}}).Allows(c.host); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.host, got)
		}
	}
}
