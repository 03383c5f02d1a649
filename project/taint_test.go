package project_test

import (
	"testing"

	"github.com/pawl-dev/pawl/hook/permission"
)

// A project's files make the taint stricter unapproved, and looser only once that was approved.
func TestAProjectMayOnlyTightenTheTaint(t *testing.T) {
	for _, c := range []struct {
		user, project, want permission.Taint
		waits               bool
	}{
		{"", "", "", false},
		{"", "ask", "ask", false},
		{"ask", "deny", "deny", false},
		{"deny", "ask", "deny", true},
		{"ask", "off", "ask", true},
	} {
		w := newWorld(t)
		for file, taint := range map[string]permission.Taint{"~/.agents/settings.json": c.user, ".agents/settings.json": c.project} {
			if taint != "" {
				w.put(file, `{"permissions": {"taint": "`+string(taint)+`"}}`)
			}
		}
		p := w.load()
		if got := p.Settings.Permissions.Taint; got != c.want || len(p.Untrusted()) > 0 != c.waits {
			t.Errorf("%+v: %q, waiting %v", c, got, p.Untrusted())
		}
	}
	w := newWorld(t)
	w.put(".agents/settings.json", `{"permissions": {"taint": "sometimes"}}`)
	if _, err := w.try(); err == nil {
		t.Error("a taint that is none is no error")
	}
}
