//go:build unix

package pawl_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
)

// A process that does the work of others' runs has the same parts all along, bound as runs of its own are. What a command makes of the project's rules meanwhile nobody reads.
func TestPartsStayAsTheyAre(t *testing.T) {
	dir, store := world(t, map[string]string{".agents/rules/1.md": "first", ".agents/settings.json": `{"permissions": {"deny": ["Bash(touch:*)"]}}`}), journal.Memory()
	start := func() *pawl.Runtime {
		return serve(t, dir, tellsOrDoes(), func(o *pawl.Options) {
			o.Sandbox, o.Permissions, o.Journal = &sandbox.Policy{Off: true}, permission.Config{Mode: permission.ModeBypass}, store
		})
	}
	rt := start()
	p, release := rt.Parts()
	if p.Agent.ID != "pawl" || len(p.Subagents) == 0 || p.Engine == nil {
		t.Errorf("%+v", p)
	}
	does := func(prompt, want string) {
		t.Helper()
		res, err := agent.Run(t.Context(), p.Agent, p.Engine, agent.Request{ContextID: "s", Message: message.User(prompt)}, p.Options...)
		if err != nil || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %v %q", prompt, err, res.Text())
		}
	}
	does("bash touch x", "denied by the rule")
	does("bash echo second >.agents/rules/1.md; sleep 0.2; echo ok", "ok")
	does("tell", "first")
	if text, _ := asks(t, rt, "own", "tell"); strings.Contains(text, "second") {
		t.Error("a run of the Runtime's own:", text)
	}
	release()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if text, warnings := asks(t, start(), "next", "tell"); strings.Contains(text, "second") || !strings.Contains(strings.Join(warnings, "\n"), "it was changed while tools could write it") {
		t.Error("the next process:", text, warnings)
	}
}
