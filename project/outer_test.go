package project_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/project"
)

// sub loads the directory sub of the world's project as one of its own.
func (w *world) sub(opts ...project.Option) (*project.Project, error) {
	w.t.Helper()
	return project.Load(w.t.Context(), filepath.Join(w.root, "sub"), w.options(opts...)...)
}

// verdict is what the settings' permissions say about a call.
func verdict(t *testing.T, p *project.Project, name, input string) hook.Verdict {
	t.Helper()
	m, err := permission.New(p.Settings.Permissions)
	if err != nil {
		t.Fatal(err)
	}
	d, err := m.PreToolUse(context.Background(), &hook.ToolUse{Call: message.ToolCall{ID: "c", Name: name, Input: input}})
	if err != nil {
		t.Fatal(err)
	}
	return d.Verdict
}

// A go.mod that a command made lifts nothing.
func TestWhatADirectoryFurtherUpForbidsBindsBelow(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"sandbox": {"enabled": false}}`)
	for _, name := range []string{"secret/x", "locked/x", "sub/secret/x", "sub/locked/x", "sub/go.mod"} {
		w.put(name, "")
	}
	w.put(".agents/settings.json", strict)
	w.put(".agents/settings.local.json", `{"permissions": {"deny": ["Read(./sub/private/**)", "Edit(/locked)", "Read(../beside/x)"], "allow": ["Bash(rm:*)"]}, "env": {"A": "1"},
	  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./check"}]}]}}`)
	if err := project.Approve(w.pin()); err != nil {
		t.Fatal(err)
	}
	whole := w.load()
	for _, name := range []string{"as it is", "the inner one is looser", "after it is gone"} {
		switch name {
		case "the inner one is looser":
			w.put("sub/.agents/settings.json", `{"permissions": {"defaultMode": "acceptEdits"}, "sandbox": {"enabled": false, "network": {"all": true}, "limits": {"cpu": "2h", "files": 100000, "fileSize": 100000, "processes": 1000}}}`)
			inner, err := w.sub()
			if err == nil {
				err = project.Approve(inner)
			}
			if err != nil {
				t.Fatal(err)
			}
		case "after it is gone":
			if err := os.RemoveAll(filepath.Join(w.root, ".agents")); err != nil {
				t.Fatal(err)
			}
		}
		p, err := w.sub()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := binding(p), strings.Replace(binding(whole), "4 ", "5 ", 1); got != want { // Edit(/locked) is two rules
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
		s := p.Settings
		if len(rules(p, hook.Allow))+len(s.Env)+len(s.Hooks) > 0 || len(p.Untrusted()) > 0 || s.Sandbox.Hide[0] != filepath.Join(w.root, "secret") {
			t.Errorf("%s: %+v %v", name, s, states(p))
		}
		for _, c := range []struct {
			tool, path string
			denied     bool
		}{
			{"read", "private/x", true},
			{"read", "../sub/private/x", true},
			{"read", "sub/private/x", false},
			{"read", "../../beside/x", true},
			{"edit", "../locked", true},
			{"edit", "/locked", true},
			{"read", "secret/x", false},
		} {
			path := filepath.Join(p.Root, c.path)
			if strings.HasPrefix(c.path, "/") {
				path = c.path
			}
			input, _ := json.Marshal(map[string]string{"file_path": path})
			if got := verdict(t, p, c.tool, string(input)); (got == hook.Deny) != (c.denied || c.tool == "edit") { // in the mode plan nothing is edited
				t.Errorf("%s: %s %s: %s", name, c.tool, c.path, got)
			}
		}
		found := false
		for _, v := range p.Values() {
			found = found || v.Layer == project.LayerOuter && v.Key == "disallowedTools" && strings.HasPrefix(v.Place.File, "../.agents/settings.json")
		}
		if !found {
			t.Errorf("%s: %v", name, p.Values())
		}
	}
	if p, err := w.sub(project.WithOverrides([]byte(`{"permissions": {"defaultMode": "dontAsk"}}`))); err != nil || p.Settings.Permissions.Mode != permission.ModeDontAsk || len(rules(p, hook.Deny)) == 0 {
		t.Error(err, p.Settings.Permissions) // the program's own say counts more
	}
}

// It is remembered where it is read, also by who works further down only.
func TestWhatADirectoryFurtherUpForbadeBindsBelow(t *testing.T) {
	w := newWorld(t)
	w.put("sub/x", "")
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash(touch:*)"]}}`)
	p, err := w.sub()
	if err == nil {
		err = project.Pin(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.put(".agents/settings.json", `{}`)
	if p, err := w.sub(); err != nil || len(rules(p, hook.Deny)) != 1 || p.Settings.Permissions.Rules[0].Place != "../.agents/settings.json (as it was)" {
		t.Errorf("%v %+v", err, p.Settings.Permissions.Rules)
	}
	if p := w.load(); len(p.Untrusted()) != 1 || p.Untrusted()[0].Place.File != ".agents/settings.json (as it was)" {
		t.Errorf("%+v", p.Untrusted())
	} else if err := project.Approve(p); err != nil {
		t.Fatal(err)
	}
	if p, err := w.sub(); err != nil || len(rules(p, hook.Deny)) > 0 {
		t.Errorf("%v %+v", err, p.Settings.Permissions.Rules)
	}
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash("]}}`)
	if _, err := w.sub(); err == nil || !strings.Contains(err.Error(), "../.agents/settings.json:1:27") {
		t.Error(err)
	}
}

// The user's rule is about each project, the other one about the directory that it is written in.
func TestARuleFurtherUpThatTheUserHasTooBinds(t *testing.T) {
	w := newWorld(t)
	w.put("sub/x", "")
	w.put("~/.agents/settings.json", `{"permissions": {"deny": ["Read(./sub/a)"]}}`)
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Read(./sub/a)"]}}`)
	p, err := w.sub()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "sub/a"} {
		if got := verdict(t, p, "read", `{"file_path":"`+name+`"}`); got != hook.Deny {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestWhatIsStricterBelowStaysSo(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"permissions": {"defaultMode": "dontAsk"}, "sandbox": {"limits": {"files": 100, "processes": 10}}}`)
	w.put("sub/.agents/settings.json", `{"permissions": {"defaultMode": "plan"}, "sandbox": {"limits": {"files": 50}}}`)
	p, err := w.sub()
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Settings; s.Permissions.Mode != permission.ModePlan || s.Sandbox.Limits.Files != 50 || s.Sandbox.Limits.Processes != 10 {
		t.Errorf("%+v", s)
	}
}

func TestTheUsersSettingsAreNotThoseOfADirectoryFurtherUp(t *testing.T) {
	w := newWorld(t)
	w.put("sub/x", "")
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Edit(./a)"]}}`)
	w.put(".agents/settings.local.json", `{"permissions": {"deny": ["Edit(./b)"]}}`)
	w.home = w.root
	p, err := w.sub()
	if err != nil {
		t.Fatal(err)
	}
	var layers []project.Layer
	for _, v := range p.Values() {
		if v.Layer != project.LayerDefault {
			layers = append(layers, v.Layer)
		}
	}
	if d := cmp.Diff([]project.Layer{project.LayerUser}, layers); d != "" {
		t.Error(d)
	}
}

// What changes further up counts here.
func TestAWatchSeesWhatADirectoryFurtherUpForbids(t *testing.T) {
	w := newWorld(t)
	w.put("sub/x", "")
	w.put(".agents/settings.json", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	for p, err := range project.Watch(ctx, filepath.Join(w.root, "sub"), w.options()...) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; len(rules(p, hook.Deny)) == 1 {
			break
		}
		w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash"]}}`)
	}
	if seen != 2 {
		t.Error(seen)
	}
}
