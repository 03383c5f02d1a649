package agenttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/message"
)

// Decider checks a decider. An error of it is its own affair: agent.Run commits nothing then. What it must not do is panic, wait, change what it judges, or judge the same
// twice differently while others use it.
func Decider(t *testing.T, factory func(t *testing.T) agent.Decider) {
	t.Helper()
	ask := func(ctx context.Context, d agent.Decider, info agent.RunInfo, req *agent.Request, res *agent.Result) string {
		got, err := d.BeforeFinalize(ctx, info, req, res)
		return fmt.Sprintf("%+v %v", got, err)
	}
	cases := map[string]func(t *testing.T, d agent.Decider){
		"it takes the least that a run gives": func(t *testing.T, d agent.Decider) {
			info, req, res := zero()
			soon(t, "BeforeFinalize", func() { ask(t.Context(), d, info, req, res) })
		},
		"it returns when the context has ended": func(t *testing.T, d agent.Decider) {
			info, req, res := given(agent.StatusCompleted)
			soon(t, "BeforeFinalize", func() { ask(ended(t), d, info, req, res) })
		},
		"it changes nothing that it is given, nor later": func(t *testing.T, d agent.Decider) {
			for _, status := range statuses {
				info, req, res := given(status)
				var got agent.FinalizeDecision
				stays(t, "BeforeFinalize", req, res, func() { soon(t, "BeforeFinalize", func() { got, _ = d.BeforeFinalize(t.Context(), info, req, res) }) })
				stays(t, "the decision's State", req, res, func() { // Run merges it into the Result: it must not be the Result's
					for name := range got.State {
						got.State[name] = "changed"
					}
				})
			}
		},
		"it has something to say to every status, and the same each time": func(t *testing.T, d agent.Decider) {
			for _, status := range statuses {
				info, req, res := given(status)
				soon(t, "BeforeFinalize", func() {
					if first, second := ask(t.Context(), d, info, req, res), ask(t.Context(), d, info, req, res); first != second {
						t.Errorf("a run that is %s was judged as %s, and then as %s", status, first, second)
					}
				})
			}
		},
		"runs ask it at the same time": func(t *testing.T, d agent.Decider) {
			atOnce(t, "BeforeFinalize", func(i int) {
				for range 10 {
					info, req, res := given(statuses[i%len(statuses)])
					ask(t.Context(), d, info, req, res)
				}
			})
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) { run(t, factory(t)) })
	}
}

// HandoffDecider checks a decider that finds handoffs, as agent.HandoffDecider does, on the transcripts that a tool loop leaves. factory makes it of the handoffs that
// are open.
func HandoffDecider(t *testing.T, factory func(t *testing.T, hs []agent.Handoff) agent.Decider) {
	t.Helper()
	call := func(id, name, input string) message.ToolCall {
		return message.ToolCall{ID: id, Name: name, Input: input}
	}
	result := func(id string, failed bool) message.Message {
		return message.Results(message.ToolResult{Call: id, Content: "x", IsError: failed})
	}
	closed := func(context.Context, *agent.Request) bool { return false }
	hs := []agent.Handoff{{ToAgentID: "billing"}, {ToAgentID: "tech", ToolName: "ask_tech"}, {ToAgentID: "boss", Filter: closed}}
	says := func(ms ...message.Message) []message.Message { return ms }
	billing, tech := call("c1", "transfer_to_billing", `{"reason":"r","note":"n"}`), call("c2", "ask_tech", `{}`)
	for _, c := range []struct {
		name     string
		status   agent.Status
		messages []message.Message
		want     string // whom it hands over to; "": nobody
	}{
		{"a call, its result, and words after it", agent.StatusCompleted, says(message.Assistant("", billing), result("c1", false), message.Assistant("bye")), "billing"},
		{"a call, and its result at the end", agent.StatusCompleted, says(message.Assistant("", billing), result("c1", false)), "billing"},
		{"a call in the middle of others", agent.StatusCompleted, says(message.Assistant("", call("c0", "look", `{}`)), result("c0", false), message.Assistant("", billing), result("c1", false), message.Assistant("", call("c3", "look", `{}`)), result("c3", false), message.Assistant("bye")), "billing"},
		{"the first of two calls", agent.StatusCompleted, says(message.Assistant("", tech, billing), message.Results(message.ToolResult{Call: "c2"}, message.ToolResult{Call: "c1"}), message.Assistant("bye")), "tech"},
		{"the second of two calls, when the first failed", agent.StatusCompleted, says(message.Assistant("", billing), result("c1", true), message.Assistant("", tech), result("c2", false), message.Assistant("bye")), "tech"},
		{"a call that failed", agent.StatusCompleted, says(message.Assistant("", billing), result("c1", true), message.Assistant("sorry")), ""},
		{"a call that is not open to the request", agent.StatusCompleted, says(message.Assistant("", call("c1", "transfer_to_boss", `{}`)), result("c1", false), message.Assistant("bye")), ""},
		{"a call that nobody knows", agent.StatusCompleted, says(message.Assistant("", call("c1", "transfer_to_moon", `{}`)), result("c1", false), message.Assistant("bye")), ""},
		{"arguments that can't be read", agent.StatusCompleted, says(message.Assistant("", call("c1", "transfer_to_billing", `{"reason":7`)), result("c1", false), message.Assistant("bye")), "billing"},
		{"words only", agent.StatusCompleted, says(message.Assistant("transfer_to_billing")), ""},
		{"nothing", agent.StatusCompleted, nil, ""},
		{"a run that did not complete", agent.StatusCanceled, says(message.Assistant("", billing), result("c1", false)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			info, req, res := given(c.status)
			res.Messages, res.State = c.messages, map[string]any{}
			d, err := factory(t, hs).BeforeFinalize(t.Context(), info, req, res)
			if err != nil {
				t.Fatal(err)
			}
			ev, ok := agent.HandoffFromResult(&agent.Result{State: d.State})
			if ok != (c.want != "") || ev.ToAgentID != c.want {
				t.Errorf("it hands over to %q, want %q", ev.ToAgentID, c.want)
			}
			if want := agent.HandoffFinalizeReason + c.want; ok && d.Reason != want || !ok && strings.HasPrefix(d.Reason, agent.HandoffFinalizeReason) {
				t.Errorf("the reason is %q, want %q", d.Reason, want)
			}
		})
	}
}
