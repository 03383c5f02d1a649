package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func to(ids ...string) (hs []agent.Handoff) {
	for _, id := range ids {
		hs = append(hs, agent.Handoff{ToAgentID: id})
	}
	return hs
}

func TestTheNameOfAHandoffsToolIsTheAgentsIdMadeFit(t *testing.T) {
	for id, want := range map[string]string{
		"billing": "transfer_to_billing", "team-tech": "transfer_to_team_tech", "a/b.c": "transfer_to_a_b_c", "Team_7": "transfer_to_team_7", "": "transfer_to_unknown", "é": "transfer_to__",
	} {
		if got := agent.DefaultHandoffToolName(id); got != want {
			t.Errorf("%q: %s", id, got)
		}
	}
}

func TestAHandoffIsAToolThatOnlyConfirms(t *testing.T) {
	def := agent.HandoffTool(agent.Handoff{ToAgentID: "Team-B"}).Definition()
	if def.Name != "transfer_to_team_b" || def.Description != "Transfer the conversation to Team-B" || !def.Idempotent || def.ReadOnly {
		t.Errorf("%+v", def)
	}
	def = agent.HandoffTool(agent.Handoff{ToAgentID: "b", Description: "Refunds", ToolName: "refund", OnInvoke: func(context.Context, agent.HandoffArgs) error { return nil }}).Definition()
	if def.Name != "refund" || def.Description != "Refunds" || def.Repeatable() {
		t.Errorf("%+v", def)
	}
	var schema struct {
		Type                 string
		Properties           map[string]any
		Required             []string
		AdditionalProperties bool
	}
	schema.AdditionalProperties = true
	if err := json.Unmarshal(def.Schema, &schema); err != nil || schema.Type != "object" || len(schema.Properties) != 2 || schema.Required != nil || schema.AdditionalProperties {
		t.Error(string(def.Schema), err)
	}

	var got []agent.HandoffArgs
	oops := errors.New("no")
	h := agent.Handoff{ToAgentID: "b", OnInvoke: func(_ context.Context, a agent.HandoffArgs) error {
		if got = append(got, a); a.Note == "fail" {
			return oops
		}
		return nil
	}}
	for in, want := range map[string]string{
		``: "", ` `: "", `{}`: "", `{"reason":"r","note":"n"}`: "", `{"note":"fail"}`: "no", `{"note":1}`: "arguments", `[`: "arguments",
	} {
		res, err := agent.HandoffTool(h).Execute(t.Context(), json.RawMessage(in))
		switch {
		case want == "" && (err != nil || res.Content != "Handoff initiated to b"):
			t.Errorf("%s: %+v %v", in, res, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %+v %v", in, res, err)
		}
	}
	if len(got) != 5 || !slices.Contains(got, agent.HandoffArgs{Reason: "r", Note: "n"}) {
		t.Error(got)
	}
}

func TestAHandoffToNobodyPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it did not")
		}
	}()
	agent.HandoffTool(agent.Handoff{ToolName: "x"})
}

func toolNames(ts []tool.Tool) (names []string) {
	for _, t := range ts {
		names = append(names, t.Definition().Name)
	}
	return names
}

func TestHandoffToolsLeavesOutWhatIsNotOpenToTheRequest(t *testing.T) {
	hs := to("a", "b")
	hs[1].Filter = func(_ context.Context, req *agent.Request) bool { return req.TaskID == "vip" }
	same(t, "no request", []string{"transfer_to_a", "transfer_to_b"}, toolNames(agent.HandoffTools(t.Context(), nil, hs)))
	same(t, "one of the many", []string{"transfer_to_a"}, toolNames(agent.HandoffTools(t.Context(), &agent.Request{}, hs)))
	same(t, "the one", []string{"transfer_to_a", "transfer_to_b"}, toolNames(agent.HandoffTools(t.Context(), &agent.Request{TaskID: "vip"}, hs)))
	same(t, "none", []string(nil), toolNames(agent.HandoffTools(t.Context(), nil, nil)))
}

func TestAHandoffGoesThroughJSONWithoutItsFunctions(t *testing.T) {
	h := agent.Handoff{ToAgentID: "b", Description: "d", ToolName: "n", Filter: func(context.Context, *agent.Request) bool { return true }, OnInvoke: func(context.Context, agent.HandoffArgs) error { return nil }}
	same(t, "JSON", `{"to_agent_id":"b","description":"d","tool_name":"n"}`, marshal(t, h))
	h.Filter, h.OnInvoke = nil, nil
	if diff := cmp.Diff(h, backAndForth(t, h)); diff != "" {
		t.Error(diff)
	}
}

// handing is a loop whose model makes calls, and then says something.
func handing(t testing.TB, hs []agent.Handoff, calls ...message.ToolCall) *loop.Engine {
	return looping(t, script{message.Assistant("One moment.", calls...), message.Assistant("Over to them.")}, agent.HandoffTools(context.Background(), nil, hs)...)
}

func TestAHandoffIsSeenThroughARealToolLoopAndTheFirstThatTookPlaceCounts(t *testing.T) {
	no := func(context.Context, agent.HandoffArgs) error { return errdefs.NotAvailable.Errorf("closed") }
	never := func(context.Context, *agent.Request) bool { return false }
	refuses := hook.Middleware{Name: "refuses", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		switch u.Call.ID {
		case "denied":
			return hook.Denied("no"), nil
		case "asked":
			return hook.Asking("may it?"), nil
		}
		return hook.Decision{}, nil
	}}
	b := agent.HandoffEvent{ToAgentID: "b", ToolName: "transfer_to_b", ToolCallID: "c1"}
	hs := func(change func(b, c *agent.Handoff)) []agent.Handoff {
		hs := to("b", "c")
		change(&hs[0], &hs[1])
		return hs
	}
	plain := hs(func(_, _ *agent.Handoff) {})
	toB, toC := call("c1", "transfer_to_b", `{}`), call("c2", "transfer_to_c", `{"reason":"r","note":"n"}`)
	second := &agent.HandoffEvent{ToAgentID: "c", ToolName: "transfer_to_c", ToolCallID: "c2", Args: agent.HandoffArgs{Reason: "r", Note: "n"}}
	for name, c := range map[string]struct {
		hs    []agent.Handoff
		calls []message.ToolCall
		want  *agent.HandoffEvent
	}{
		"none":                        {plain, nil, nil},
		"one":                         {plain, []message.ToolCall{toB}, &b},
		"the first of two":            {plain, []message.ToolCall{toB, toC}, &b},
		"the first of two, otherwise": {plain, []message.ToolCall{toC, toB}, second},
		"its tool in another case":    {plain, []message.ToolCall{call("c1", "Transfer_To_B", `{}`)}, &agent.HandoffEvent{ToAgentID: "b", ToolName: "Transfer_To_B", ToolCallID: "c1"}},
		"a name of its own":           {hs(func(b, _ *agent.Handoff) { b.ToolName = "refund" }), []message.ToolCall{call("c1", "refund", `{}`)}, &agent.HandoffEvent{ToAgentID: "b", ToolName: "refund", ToolCallID: "c1"}},
		"its OnInvoke failed":         {hs(func(b, _ *agent.Handoff) { b.OnInvoke = no }), []message.ToolCall{toB}, nil},
		"the one behind it":           {hs(func(b, _ *agent.Handoff) { b.OnInvoke = no }), []message.ToolCall{toB, toC}, second},
		"it is filtered":              {hs(func(b, _ *agent.Handoff) { b.Filter = never }), []message.ToolCall{toB}, nil},
		"filtered, and one behind it": {hs(func(b, _ *agent.Handoff) { b.Filter = never }), []message.ToolCall{toB, toC}, second},
		"a hook denied it":            {plain, []message.ToolCall{call("denied", "transfer_to_b", `{}`), toC}, second},
		"a person rejected it":        {plain, []message.ToolCall{call("asked", "transfer_to_b", `{}`), toC}, second},
		"its arguments were refused":  {plain, []message.ToolCall{call("c1", "transfer_to_b", `{"to":"me"}`), toC}, second},
		"a tool that there is not":    {plain, []message.ToolCall{call("c1", "transfer_to_d", `{}`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			ag := agent.Agent{Hooks: []hook.Middleware{refuses}, Deciders: []agent.Decider{agent.HandoffDecider(c.hs)}}
			res := run(t, ag, handing(t, c.hs, c.calls...), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(&rejects{}))
			ev, ok := agent.HandoffFromResult(res)
			if !res.Committed || ok != (c.want != nil) {
				t.Fatalf("%+v %+v %v", res, ev, lines(res.Messages...))
			}
			end := last[journal.RunFinished](t, store, "s")
			if c.want == nil {
				if len(end.Handoff) > 0 || end.Reason != "" {
					t.Errorf("%+v", end)
				}
				return
			}
			same(t, "event", *c.want, ev)
			same(t, "reason", agent.HandoffFinalizeReason+c.want.ToAgentID, res.State[agent.StateFinalizeReason].(string))
			same(t, "on record", marshal(t, c.want), string(end.Handoff))
			if again, ok := agent.HandoffFromResult(new(backAndForth(t, *res))); !ok || again != ev {
				t.Error("after JSON:", again, ok)
			}
		})
	}
}

// rejects is a host where a person says no to everything.
type rejects struct{ engine.NoopHost }

func (rejects) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{}, nil
}

func TestAHandoffInARunThatDidNotCompleteDoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		status agent.Status
		want   bool
	}{"interrupted": {agent.StatusInterrupted, false}, "failed": {agent.StatusFailed, false}, "canceled": {agent.StatusCanceled, false}, "aborted": {agent.StatusAborted, false}, "completed": {agent.StatusCompleted, true}} {
		res := &agent.Result{Status: c.status, Messages: []message.Message{message.Assistant("", call("c", "transfer_to_b", `what?`)), message.Results(message.ToolResult{Call: "c"})}}
		before := marshal(t, res)
		d, err := agent.HandoffDecider(to("b")).BeforeFinalize(t.Context(), agent.RunInfo{}, nil, res)
		if _, got := d.State[agent.HandoffStateKey]; err != nil || got != c.want || d.DiscardOutput || d.Revise {
			t.Errorf("%s: %+v %v", name, d, err)
		}
		if c.want {
			same(t, "arguments that can't be read", agent.HandoffEvent{ToAgentID: "b", ToolName: "transfer_to_b", ToolCallID: "c"}, d.State[agent.HandoffStateKey].(agent.HandoffEvent))
		}
		same(t, "the Result is as it was", before, marshal(t, res))
	}
	for _, hs := range [][]agent.Handoff{nil, to("b")} {
		if d, err := agent.HandoffDecider(hs).BeforeFinalize(t.Context(), agent.RunInfo{}, nil, nil); err != nil || d.State != nil {
			t.Error(d, err)
		}
	}
}

func TestAParkedHandoffCountsOnceItIsApproved(t *testing.T) {
	hs, store := to("b"), journal.Memory()
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("may it?"), nil }}
	ag := agent.Agent{Hooks: []hook.Middleware{asks}, Deciders: []agent.Decider{agent.HandoffDecider(hs)}}
	eng := handing(t, hs, call("c1", "transfer_to_b", `{}`))
	res := run(t, ag, eng, asking("s", "go"), agent.WithJournal(store))
	if _, ok := agent.HandoffFromResult(res); ok || res.Status != agent.StatusInterrupted {
		t.Fatalf("%+v", res)
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err == nil {
		err = log.Answer(t.Context(), journal.Answered{ID: "c1", Approved: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	res = resume(t, ag, eng, "s", agent.WithJournal(disk{store}))
	if ev, ok := agent.HandoffFromResult(res); !ok || ev.ToAgentID != "b" {
		t.Errorf("%+v", res)
	}
}

func TestHandoffsWhoseToolsHaveOneNameAreRefused(t *testing.T) {
	never := func(context.Context, *agent.Request) bool { return false }
	for name, c := range map[string]struct {
		a, b agent.Handoff
		ok   bool
	}{
		"the same after it was made fit": {agent.Handoff{ToAgentID: "team-a"}, agent.Handoff{ToAgentID: "team.a"}, false},
		"in another case":                {agent.Handoff{ToAgentID: "Team-A"}, agent.Handoff{ToAgentID: "b", ToolName: "Transfer_to_team_a"}, false},
		"the same agent twice":           {agent.Handoff{ToAgentID: "a"}, agent.Handoff{ToAgentID: "a"}, false},
		"told apart":                     {agent.Handoff{ToAgentID: "team-a"}, agent.Handoff{ToAgentID: "team.a", ToolName: "transfer_to_the_other"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			hs := []agent.Handoff{c.a, c.b}
			_, err := loop.New(loop.Config{Model: script{}, Tools: agent.HandoffTools(t.Context(), nil, hs)})
			if (err == nil) != c.ok || err != nil && !errdefs.Conflict.Is(err) {
				t.Error("loop.New:", err)
			}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithDecider(agent.HandoffDecider(hs)))
			if (err == nil) != c.ok || err != nil && !errdefs.Conflict.Is(err) || res.Committed != c.ok {
				t.Error("the decider:", err)
			}
			hs[1].Filter = never
			if res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithDecider(agent.HandoffDecider(hs))); !res.Committed {
				t.Error("they are not open together, so it is no matter")
			}
		})
	}
}

func TestAHandoffIsReadFromNothingElse(t *testing.T) {
	with := func(v any) *agent.Result { return &agent.Result{State: map[string]any{agent.HandoffStateKey: v}} }
	for name, res := range map[string]*agent.Result{
		"nil": nil, "no state": {}, "another type": with(7), "text": with("b"), "no target": with(map[string]any{"tool_name": "x"}), "a target that is none": with(map[string]any{"to_agent_id": 7}),
		"what JSON can't say": with(map[string]any{"to_agent_id": func() {}}),
	} {
		if ev, ok := agent.HandoffFromResult(res); ok || ev != (agent.HandoffEvent{}) {
			t.Error(name, ev)
		}
	}
	if ev, ok := agent.HandoffFromResult(with(map[string]any{"to_agent_id": "b", "args": map[string]any{"note": "n"}})); !ok || ev.ToAgentID != "b" || ev.Args.Note != "n" {
		t.Error(ev, ok)
	}
}

func TestARunThatIsNotJudgedHandsNothingOver(t *testing.T) {
	hs, store := to("b"), journal.Memory()
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, handing(t, hs, call("c1", "transfer_to_b", `{}`)), asking("s", "go"), agent.WithJournal(store),
		agent.WithDecider(agent.HandoffDecider(hs)), agent.WithDecider(decider(errdefs.PolicyDenied.Errorf("no"))))
	if _, ok := agent.HandoffFromResult(res); ok || !errdefs.PolicyDenied.Is(err) || last[journal.RunFinished](t, store, "s").Handoff != nil {
		t.Errorf("%+v %v", res, err)
	}
}
