package project_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/project"
)

func shown(values []project.Value, keys string) (out []string) {
	for _, v := range values {
		if strings.HasPrefix(v.Key, keys) {
			out = append(out, v.Text)
		}
	}
	return out
}

// Whoever approves something reads what somebody wrote, not how it is kept.
func TestHooksAndServersAreShownAsTheyAreWritten(t *testing.T) {
	const group = `{"matcher":"edit|write","hooks":[{"type":"command","name":"format","command":"gofmt -l <x> && true","args":[],"if":"Edit(*.go)","payload":"go$","timeout":1.5,"env":{"K":"secret"},"async":true,"once":true,"statusMessage":"formats"}]}`
	const bash = `{"hooks":[{"type":"command","command":"[[ -e x ]]   && echo a long line, longer than the sixty characters that a title has","shell":"bash"}]}`
	const named = `{"hooks":[{"type":"command","name":"mine","command":"true","shell":"bash"}]}`
	const server = `{"url":"https://ann:secret@example.com/mcp?key=secret","headers":{"Authorization":"secret"},"timeout":30,"oauth":{"clientId":"me","clientSecret":"secret"},"startup":"2s","enabledTools":["a"]}`
	w := newWorld(t)
	w.put(".agents/settings.json", `{"hooks": {"PreToolUse": [`+group+`, `+bash+`, `+named+`, {"hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "b"}]}]},
  "mcp": {"servers": {"wiki": `+strings.ReplaceAll(server, ",", ",\n  ")+`}}}`)
	p := w.load()
	want := []string{group, bash, named, `{"hooks":[{"type":"command","command":"a"}]}`, `{"hooks":[{"type":"command","command":"b"}]}`}
	if d := cmp.Diff(want, shown(p.Untrusted(), "hooks.")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{server}, shown(p.Untrusted(), "mcp.")); d != "" {
		t.Error(d)
	}
	for _, text := range append(shown(p.Values(), "hooks."), shown(p.Values(), "mcp.")...) {
		if strings.Contains(text, "secret\"") || strings.Contains(text, "=secret") || !json.Valid([]byte(text)) {
			t.Error(text)
		}
	}
	if text := shown(p.Values(), "mcp."); text[0] != `{"url":"https://example.com/mcp?…","headers":{"Authorization":"…"},"timeout":30,"oauth":{"clientId":"me","clientSecret":"…"},"startup":"2s","enabledTools":["a"]}` {
		t.Error(text)
	}
	if err := project.Approve(p); err != nil {
		t.Fatal(err)
	}
	before := w.load().Settings.Hooks
	again, wrong, err := shell.Decode([]byte(`{"PreToolUse": [` + strings.Join(want, ",\n") + `]}`))
	if err != nil || len(wrong) > 0 {
		t.Fatal(err, wrong)
	}
	for i := range before { // what is shown says all of it
		before[i].Place, before[i].Claude, again[i].Place, again[i].Claude = "", false, "", false
	}
	if d := cmp.Diff(before, again); d != "" {
		t.Error(d)
	}
}

// A second approval is of what is other than in the first one.
func TestAnApprovalSaysWhatIsNewChangedAndGone(t *testing.T) {
	w := newWorld(t)
	compared := func(p *project.Project) (out []string) {
		for _, v := range append(p.Untrusted(), p.Withdrawn()...) {
			out = append(out, strings.TrimSpace(string(v.Since)+" "+v.Key+" "+v.Text))
		}
		return out
	}
	put := func(settings string, want ...string) *project.Project {
		t.Helper()
		w.put(".agents/settings.json", settings)
		p := w.load()
		if d := cmp.Diff(want, compared(p)); d != "" {
			t.Error(d)
		}
		return p
	}
	approve := func(p *project.Project) {
		t.Helper()
		if err := project.Approve(p); err != nil {
			t.Fatal(err)
		}
	}
	const first = `{"permissions": {"allow": ["Bash(make:*)", "Bash(go:*)"]}, "env": {"A": "secret-1", "B": "2"}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}`
	approve(put(first, `permissions.allow "Bash(make:*)"`, `permissions.allow "Bash(go:*)"`, `env.A "secret-1"`, `env.B "2"`, `hooks.Stop {"hooks":[{"type":"command","command":"a"}]}`))
	put(first)
	const second = `{"env": {"B": "2", "A": "one"}, "permissions": {"allow": ["Bash(go:*)", "Bash(ls:*)"]}, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "b"}]}]}}`
	p := put(second, `env.B "2"`, `changed env.A "one"`, `permissions.allow "Bash(go:*)"`, `new permissions.allow "Bash(ls:*)"`, `new hooks.Stop {"hooks":[{"type":"command","command":"b"}]}`,
		`hooks.Stop {"hooks":[{"type":"command","command":"a"}]}`, `gone permissions.allow "Bash(make:*)"`) // a hook that was approved is a restriction that is removed
	if v := p.Withdrawn()[0]; v.Place.String() != ".agents/settings.json" || v.Layer != project.LayerProject {
		t.Errorf("%+v", v)
	}
	if b, err := os.ReadFile(w.trust); err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("%v: a secret is kept: %s", err, b)
	}
	approve(p)
	put(second)
	if err := project.Revoke(w.load()); err != nil {
		t.Fatal(err)
	}
	for _, line := range compared(w.load()) {
		if strings.HasPrefix(line, "new ") || strings.HasPrefix(line, "changed ") || strings.HasPrefix(line, "gone ") {
			t.Errorf("nothing is approved any more: %s", line)
		}
	}
}

func (w *world) loadOf(settings string) *project.Project {
	w.t.Helper()
	w.put(".agents/settings.json", settings)
	return w.load()
}

// An approval of before, which says nothing of what it was of, stands, and marks nothing.
func TestAnApprovalWithoutWhatItWasOfStands(t *testing.T) {
	w := newWorld(t)
	if err := project.Approve(w.loadOf(`{"env": {"A": "1"}}`)); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Version  int
		Projects map[string][]map[string]any
	}
	b, err := os.ReadFile(w.trust)
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range file.Projects {
		delete(list[0], "wants")
	}
	if b, err = json.Marshal(map[string]any{"version": file.Version, "projects": file.Projects}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.trust, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if p := w.load(); len(p.Untrusted()) > 0 {
		t.Errorf("%v", waits(p))
	}
	if p := w.loadOf(`{"env": {"B": "1"}}`); len(p.Untrusted()) != 1 || p.Untrusted()[0].Since != project.ChangeNone || len(p.Withdrawn()) > 0 {
		t.Errorf("%+v %+v", p.Untrusted(), p.Withdrawn())
	}
}
