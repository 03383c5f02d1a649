package project_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/project"
)

// strict forbids by every key that can.
const strict = `{
  "permissions": {"deny": ["Bash(git push:*)"], "ask": ["Edit(go.mod)"], "defaultMode": "plan", "taint": "ask"},
  "disallowedTools": ["write"],
  "sandbox": {"enabled": true, "hide": ["secret"], "protect": ["locked"], "network": {"all": false}, "limits": {"cpu": "1m", "files": 100, "fileSize": 1000, "processes": 10}}
}`

// binding is what of strict binds.
func binding(p *project.Project) string {
	s := p.Settings
	return fmt.Sprint(len(rules(p, hook.Deny)), len(rules(p, hook.Ask)), s.Permissions.Mode, s.Permissions.Taint, s.DisallowedTools, !s.Sandbox.Off, len(s.Sandbox.Hide), len(s.Sandbox.Protect), !s.Sandbox.Network.All, s.Sandbox.Limits)
}

func (w *world) pin() *project.Project {
	w.t.Helper()
	p := w.load()
	if err := project.Pin(p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func states(p *project.Project) (out []string) {
	for _, v := range p.Untrusted() {
		out = append(out, fmt.Sprint(v.Key, " ", v.State))
	}
	return out
}

func TestWhatAProjectForbadeBindsUntilItsRemovalIsApproved(t *testing.T) {
	for name, after := range map[string]string{
		"emptied":  `{}`,
		"loosened": `{"permissions": {"defaultMode": "default", "taint": "off"}, "sandbox": {"limits": {"cpu": "2m", "files": 101, "fileSize": 1001, "processes": 11}}}`,
		"gone":     "",
	} {
		for _, file := range []string{".agents/settings.json", ".agents/settings.local.json"} {
			t.Run(name+" "+filepath.Base(file), func(t *testing.T) {
				w := newWorld(t)
				w.put("~/.agents/settings.json", `{"sandbox": {"enabled": false}}`)
				w.put("secret/x", "")
				w.put("locked/x", "")
				w.put(file, strict)
				want := binding(w.pin())
				if after == "" {
					if err := os.Remove(filepath.Join(w.root, file)); err != nil {
						t.Fatal(err)
					}
				} else {
					w.put(file, after)
				}
				p := w.pin() // pinned once more: what is removed does not get lost by it
				if got := binding(p); got != want {
					t.Errorf("binds: %s\nwant:  %s", got, want)
				}
				all := []string{
					"permissions.deny removed", "permissions.ask removed", "permissions.defaultMode removed", "permissions.taint removed", "disallowedTools removed", "sandbox.enabled removed", "sandbox.hide removed",
					"sandbox.protect removed", "sandbox.network.all removed", "sandbox.limits.cpu removed", "sandbox.limits.files removed", "sandbox.limits.fileSize removed", "sandbox.limits.processes removed",
				}
				got := states(p)
				for _, line := range all {
					if !strings.Contains(strings.Join(got, "\n"), line) {
						t.Errorf("%s is not listed: %v", line, got)
					}
				}
				if err := project.Revoke(p); err != nil {
					t.Fatal(err)
				}
				if p = w.load(); binding(p) != want {
					t.Errorf("revoked, and it does not bind: %s", binding(p))
				}
				if err := project.Approve(p); err != nil {
					t.Fatal(err)
				}
				if p = w.load(); binding(p) == want || len(p.Untrusted()) > 0 || len(rules(p, hook.Deny)) > 0 || !p.Settings.Sandbox.Off {
					t.Errorf("approved, and it binds: %s %v", binding(p), states(p))
				}
			})
		}
	}
}

func TestARemovedRuleSaysWhereItWas(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Read(.env)", "Bash(git push:*)"]}}`)
	w.pin()
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Read(.env)"]}}`)
	p := w.load()
	want := project.Value{Place: project.Place{File: ".agents/settings.json (as it was)"}, Layer: project.LayerProject, Key: "permissions.deny", Text: `"Bash(git push:*)"`, State: project.StateRemoved}
	if got := p.Untrusted(); len(got) != 1 || got[0].Place != want.Place || got[0].Layer != want.Layer || got[0].Key != want.Key || got[0].Text != want.Text || got[0].State != want.State {
		t.Errorf("%+v", got)
	}
	if r := p.Settings.Permissions.Rules; len(r) != 2 || r[1].Place != ".agents/settings.json (as it was)" {
		t.Errorf("%+v", r)
	}
}

func TestWhatMovesOrGetsStricterIsNotRemoved(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash(git push:*)"], "defaultMode": "dontAsk"}, "sandbox": {"limits": {"files": 100}}}`)
	w.pin()
	w.put(".agents/settings.json", `{"permissions": {"defaultMode": "plan"}, "sandbox": {"limits": {"files": 50}}}`)
	w.put(".agents/settings.local.json", `{"permissions": {"deny": ["Bash(git push:*)"]}}`)
	if p := w.load(); len(p.Untrusted()) > 0 || len(rules(p, hook.Deny)) != 1 || p.Settings.Permissions.Mode != permission.ModePlan || p.Settings.Sandbox.Limits.Files != 50 {
		t.Errorf("%v %s", states(p), binding(p))
	}
}

func TestAHookThatWasApprovedGuardsUntilItsRemovalIsApproved(t *testing.T) {
	w := newWorld(t)
	const guard = `{"hooks": {"PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "./guard", "env": {"TOKEN": "x"}, "timeout": 3}]}]}}`
	w.put(".agents/settings.json", guard)
	if err := project.Approve(w.load()); err != nil {
		t.Fatal(err)
	}
	before := w.load() // no run has seen it yet
	w.put(".agents/settings.json", `{}`)
	p := w.load()
	if len(p.Settings.Hooks) != 1 {
		t.Fatalf("%+v %v", p.Settings.Hooks, states(p))
	}
	p.Settings.Hooks[0].Place = before.Settings.Hooks[0].Place
	if d := cmp.Diff(before.Settings.Hooks, p.Settings.Hooks); d != "" {
		t.Error(d)
	}
	if err := project.Approve(p); err != nil {
		t.Fatal(err)
	}
	if p = w.load(); len(p.Settings.Hooks) > 0 || len(p.Untrusted()) > 0 {
		t.Errorf("%+v %v", p.Settings.Hooks, states(p))
	}
	w.put(".agents/settings.json", guard) // a person wanted it gone: what was approved before does not bring it back
	if p = w.load(); len(p.Settings.Hooks) > 0 || len(p.Untrusted()) != 1 {
		t.Errorf("%+v %v", p.Settings.Hooks, states(p))
	}
}

// A person who goes between branches approves each content once, also where one of them has a hook that the other one has not.
func TestGoingBetweenContentsThatWereApprovedAsksNothing(t *testing.T) {
	w := newWorld(t)
	const (
		more = `{"env": {"A": "1"}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./check"}]}]}}`
		less = `{"env": {"A": "2"}}`
	)
	for _, text := range []string{more, less, more} {
		w.put(".agents/settings.json", text)
		if err := project.Approve(w.pin()); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{less, more, less} {
		w.put(".agents/settings.json", text)
		if p := w.pin(); len(p.Untrusted()) > 0 || len(p.Settings.Hooks) == 1 != (text == more) {
			t.Errorf("%s: %v %v", text, states(p), p.Settings.Hooks)
		}
	}
}

// Only what was forbidden when it was given.
func TestAnApprovalLiftsNothingThatWasForbiddenSince(t *testing.T) {
	w := newWorld(t)
	const old = `{"permissions": {"allow": ["Bash(make:*)"]}}`
	w.put(".agents/settings.json", old)
	if err := project.Approve(w.load()); err != nil {
		t.Fatal(err)
	}
	w.put(".agents/settings.json", `{"permissions": {"allow": ["Bash(make:*)"], "deny": ["Bash(make deploy:*)"]}}`) // by a person
	if p := w.pin(); len(rules(p, hook.Deny)) != 1 || len(p.Untrusted()) > 0 {
		t.Fatal(rules(p, hook.Deny), states(p))
	}
	w.put(".agents/settings.json", old) // by a tool
	if p := w.load(); len(rules(p, hook.Deny)) != 1 || len(states(p)) != 1 {
		t.Errorf("the deny rule is lifted, and nobody has approved that: %v", states(p))
	}
}

// What is remembered while a person reads is not lifted by what the person approves then.
func TestAnApprovalLiftsNothingThatWasNotShown(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"env": {"A": "1"}}`)
	shown := w.load()
	w.put(".agents/settings.json", `{"env": {"A": "1"}, "permissions": {"deny": ["Bash"]}}`)
	w.pin()
	w.put(".agents/settings.json", `{"env": {"A": "1"}}`)
	if err := project.Approve(shown); err != nil {
		t.Fatal(err)
	}
	if p := w.load(); len(rules(p, hook.Deny)) != 1 {
		t.Errorf("%v", states(p))
	}
}

func TestGoingBackToWhatWasApprovedAsksNothing(t *testing.T) {
	w := newWorld(t)
	const one, other = `{"permissions": {"deny": ["Bash(git push:*)"]}}`, `{"permissions": {"deny": ["Read(.env)"]}}`
	w.put(".agents/settings.json", one)
	w.pin()
	if err := project.Approve(w.load()); err != nil {
		t.Fatal(err)
	}
	w.put(".agents/settings.json", other)
	if p := w.pin(); len(rules(p, hook.Deny)) != 2 || len(p.Untrusted()) != 1 {
		t.Errorf("%v", states(p))
	} else if err := project.Approve(p); err != nil {
		t.Fatal(err)
	}
	w.put(".agents/settings.json", one)
	if p := w.pin(); len(rules(p, hook.Deny)) != 2 { // nobody approved that one without the other
		t.Errorf("%v", rules(p, hook.Deny))
	} else if err := project.Approve(p); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{other, one, other} {
		w.put(".agents/settings.json", text)
		if p := w.pin(); len(rules(p, hook.Deny)) != 1 || len(p.Untrusted()) > 0 {
			t.Errorf("%s: %v %v", text, rules(p, hook.Deny), states(p))
		}
	}
}

func TestAWatchKeepsWhatWasForbiddenAlsoWhereItCantBeRemembered(t *testing.T) {
	w := newWorld(t)
	w.trust = ""
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash(git push:*)"]}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	for p, err := range project.Watch(ctx, w.root, w.options()...) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 1 {
			if project.Pin(p) == nil {
				t.Error("it is remembered nowhere")
			}
			w.put(".agents/settings.json", `{}`)
			continue
		}
		if len(rules(p, hook.Deny)) != 1 || len(p.Untrusted()) != 1 {
			t.Errorf("%v %v", rules(p, hook.Deny), states(p))
		}
		cancel()
	}
}
