package permit

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

// What a rule would let through it also refuses: an address that is allowed by a rule, and written as a denial, is denied.
func FuzzAddress(f *testing.F) {
	for _, s := range [][2]string{
		{"domain:example.com", "https://example.com"},
		{"domain:*.example.com", "http://a.example.com:80/x"},
		{"https://h/p/*", "https://h/p/../q"},
		{"https://[::1]:80/*", "http://0x7f.1"},
		{"domain:*", "//h"},
		{"domain:127.0.0.1", "http://2130706433/"},
		{"domain:e。x", "https://E.X./?#"},
		{"http://h", "http://u:p@h\t"},
		{"https://h/a*", "https://h/%61"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, spec, text string) {
		a, err := parseAddress(spec)
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Fatalf("%q: %v", spec, err)
			}
			return
		}
		to := readURL(text)
		if a.permits(to) && a.binds(to) != Yes {
			t.Fatalf("%q lets %q through as a permission, and as a denial too", spec, text)
		}
		if to.u != nil && hostOf(to.host) != to.host && !strings.ContainsAny(to.host, ".") {
			t.Fatalf("%q: the host %q is %q when it is read again", text, to.host, hostOf(to.host))
		}
		if !a.any && !a.sub {
			if again, err := parseAddress("domain:" + a.host); err != nil || again.host != a.host {
				t.Fatalf("%q: the host %q can't be said by itself: %v", spec, a.host, err)
			}
		}
	})
}

// A rule that is understood is understood again as it is kept, and what binds for certain what it permits never says otherwise.
func FuzzRule(f *testing.F) {
	for _, s := range [][3]string{
		{"Bash(go test:*)", "bash", `{"command":"go test ./..."}`},
		{"Read(//etc/**)", "read", `{"path":"/etc/x/../passwd"}`},
		{"Edit(~/{a,b}/[!c]*)", "edit", `{"file":"~/a/x"}`},
		{"WebFetch(domain:a.b)", "webfetch", `{"url":"https://a.b"}`},
		{"Task(x*)", "task", `{"agent":"X"}`},
		{"mcp__s__t", "mcp__s__t", `{}`},
		{"Skill( a )", "skill", `{"skill":"A"}`},
		{"Read(", "read", "{"},
		{"Write(**/**/**/a)", "write", `{"path":"a/b/c"}`},
		{"Bash(a \"b c\":*)", "bash", `{"command":"a 'b c' $(d)"}`},
	} {
		f.Add(s[0], s[1], s[2])
	}
	w, err := NewWorld(f.TempDir(), "/home/me", false, func(string) (string, bool) { return "", false })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, tool, input string) {
		r, err := w.Parse(text, "rule 1")
		if err != nil {
			if !errdefs.Validation.Is(err) || !strings.HasPrefix(err.Error(), "rule 1: ") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := w.Parse(r.Text, "rule 1"); err != nil || again.Said() != r.Said() {
			t.Fatalf("%q: %v", text, err)
		}
		c := w.Read(tool, input, false)
		if r.Allows(c) && r.Binds(c) == No {
			t.Fatalf("%q permits %s %q, and as a denial it lets it through", text, tool, input)
		}
	})
}
