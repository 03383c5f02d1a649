package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

func TestTermsGoOnRecordAndBindWhoeverGoesOn(t *testing.T) {
	store := disk{journal.Memory()}
	var reached []string
	look := tool.Func("look", "", func(ctx context.Context, _ struct{}) (string, error) {
		p, _ := sandbox.From(ctx)
		reached = p.Network.Hosts
		return "seen", nil
	})
	eng := looping(t, script{message.Assistant("", call("c1", "ask", `{}`)), message.Assistant("", call("c2", "look", `{}`), call("c3", "pay", `{}`))}, tool.Func("ask", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.RequiresApproval), look, new(works).tool("pay"))
	var told []string
	terms := func(give agent.Terms) agent.RunOption {
		return agent.WithTerms(func(recorded json.RawMessage) (agent.Terms, error) {
			told = append(told, string(recorded))
			return give, nil
		})
	}
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), terms(agent.Terms{Record: json.RawMessage(`{"v":1}`)}))
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: "c1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("not these")
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store), agent.WithTerms(func(json.RawMessage) (agent.Terms, error) { return agent.Terms{}, wrong })); !errors.Is(err, wrong) {
		t.Error(err)
	}
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store), agent.WithTerms(func(json.RawMessage) (agent.Terms, error) { panic("boo") })); !errors.As(err, new(*errdefs.Panic)) {
		t.Error(err)
	}
	if st := state(t, store, "s"); st.Status != "interrupted" {
		t.Errorf("it went on: %+v", st)
	}
	deny := hook.Middleware{Name: "terms", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "pay" {
			return hook.Denied("not on these terms"), nil
		}
		return hook.Decision{}, nil
	}}
	var warned []string
	host := engine.HostFuncs{PublishFunc: func(_ context.Context, e event.Event) error {
		if e.Delta == event.Warning {
			warned = append(warned, e.Text)
		}
		return nil
	}}
	res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), agent.WithEngineHost(host), agent.WithWarning("one"),
		agent.WithSandbox(sandbox.Policy{Network: sandbox.Network{Hosts: []string{"a.example", "b.example"}}}),
		terms(agent.Terms{Record: json.RawMessage(`{"v":2}`), Hooks: []hook.Middleware{deny}, Sandbox: &sandbox.Policy{Network: sandbox.Network{Hosts: []string{"b.example", "c.example"}}}, Warning: "two"}))
	same(t, "told", []string{"", `{"v":1}`}, told)
	same(t, "warned", []string{"one; two"}, warned)
	same(t, "reached", []string{"b.example"}, reached)
	same(t, "the run", []string{"user: go", "assistant:  <c1 ask>", "tool:  [c1 ]", "assistant:  <c2 look> <c3 pay>", "tool:  [c2 seen] [c3 not on these terms]", "assistant: done"}, history(state(t, store, "s").Messages))
	if got := state(t, store, "s").Terms; string(got) != `{"v":2}` || res.Status != agent.StatusCompleted {
		t.Errorf("%s, %+v", got, res)
	}
}
