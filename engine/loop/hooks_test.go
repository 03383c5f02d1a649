package loop_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestWhatHooksTellTheModelStandsBehindTheResult(t *testing.T) {
	yes := func(engine.Prompt) (engine.Reply, error) {
		return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
	}
	broken := tool.Func("read", "", func(context.Context, path) (string, error) { return "half", errors.New("broken") })
	for name, c := range map[string]struct {
		says   hook.Decision
		tool   tool.Tool
		result string
		judged journal.ToolJudged
	}{
		"allowed":  {hook.Decision{Context: "main is frozen"}, nil, "[c content of a\nmain is frozen]", journal.ToolJudged{Call: "c", Verdict: "allow", Context: "main is frozen"}},
		"approved": {hook.Decision{Verdict: hook.Ask, Reason: "ok?", Context: "main is frozen"}, nil, "[c content of a\nmain is frozen]", journal.ToolJudged{Call: "c", Verdict: "ask", Reason: "ok?", Context: "main is frozen", Once: true}},
		"denied":   {hook.Decision{Verdict: hook.Deny, Reason: "no", Context: "main is frozen"}, nil, "[c no\nmain is frozen !]", journal.ToolJudged{Call: "c", Name: "read", Verdict: "deny", Reason: "no\nmain is frozen"}},
		"failed":   {hook.Decision{Context: "main is frozen"}, broken, "[c broken\nmain is frozen !]", journal.ToolJudged{Call: "c", Verdict: "allow", Context: "main is frozen"}},
		"nothing":  {hook.Decision{}, nil, "[c content of a]", journal.ToolJudged{Call: "c", Verdict: "allow"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			asked := 0
			h := hook.Middleware{Name: "h", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { asked++; return c.says, nil }}
			if c.tool == nil {
				c.tool = reads(&got)
			}
			d := play{
				cfg:  loop.Config{Model: plays(uses(call("c", "read", `{"path":"a"}`)), says("done")), Tools: []tool.Tool{c.tool}, Hooks: []hook.Middleware{h}},
				host: &listener{ask: yes},
			}.do(t)
			if diff := cmp.Diff("tool:  "+c.result, d.since()[1]); diff != "" || d.err != nil {
				t.Error(d.err, diff)
			}
			if diff := cmp.Diff([]journal.ToolJudged{c.judged}, entries[journal.ToolJudged](t, d)); diff != "" {
				t.Error(diff)
			}
			d.execute(t, t.Context(), engine.NoopHost{})
			if diff := cmp.Diff("tool:  "+c.result, d.since()[1]); diff != "" || asked != 1 {
				t.Error("resumed:", asked, diff)
			}
		})
	}
}

func TestAHookAtAToolSeesWhatTheModelWasAskedAndItsReply(t *testing.T) {
	var got []string
	m := plays(uses(call("c", "read", `{"path":"a"}`)), uses(call("d", "read", `{"path":"b"}`)), says("done"))
	seen := 0
	look := func(u *hook.ToolUse) {
		asked := m.asked[len(m.asked)-1]
		if n := u.Messages.Len() - 1; u.System != asked.System || n < 1 || !slices.Equal(u.Messages.Slice(0, n).Messages(), asked.Messages.Messages()) || u.Messages.Last() != u.Response.Message {
			t.Errorf("%s: %+v, and the model was asked %+v", u.Call.ID, u, asked)
		}
		if calls := u.Response.Message.ToolCalls(); len(calls) != 1 || calls[0].ID != u.Call.ID || u.Response.Stop != model.StopTools {
			t.Errorf("%s: the reply is %+v", u.Call.ID, u.Response)
		}
		seen++
	}
	h := hook.Middleware{
		Name:        "h",
		PreToolUse:  func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) { look(u); return hook.Allowed(""), nil },
		PostToolUse: func(_ context.Context, u *hook.ToolUse) error { look(u); return nil },
	}
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{h}}}.do(t)
	if d.err != nil || seen != 4 {
		t.Error(d.err, seen)
	}
}

func TestAHookEndsTheRunBeforeATool(t *testing.T) {
	n := 0
	ends := hook.Middleware{Name: "h", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.ID == "b" {
			u.EndRun("the budget is spent")
		}
		return hook.Allowed(""), nil
	}}
	d := play{cfg: loop.Config{
		Model: plays(uses(call("a", "x", `{}`), call("b", "x", `{}`), call("c", "x", `{}`)), says("never")), Tools: []tool.Tool{counted("x", &n)}, Hooks: []hook.Middleware{ends},
	}}.do(t)
	wantErr(t, d.err, errdefs.Aborted, "a hook ended the run: the budget is spent")
	const not = "Not run: the run ended before its turn came. !"
	if diff := cmp.Diff("tool:  [a "+not+"] [b the budget is spent !] [c "+not+"]", d.since()[1]); diff != "" || n != 0 {
		t.Error(n, diff)
	}
	if j := entries[journal.ToolJudged](t, d); j[1].Ends != "the budget is spent" || j[0].Ends != "" {
		t.Error(j)
	}
	d.execute(t, t.Context(), engine.NoopHost{})
	wantErr(t, d.err, errdefs.Aborted, "the budget is spent")
}

func TestAHookEndsTheRunAfterATool(t *testing.T) {
	ends := hook.Middleware{Name: "h", PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
		if u.Call.ID == "b" {
			u.EndRun("seen enough")
		}
		return nil
	}}
	n := 0
	d := play{cfg: loop.Config{
		Model: plays(uses(call("a", "x", `{}`), call("b", "x", `{}`), call("c", "x", `{}`)), says("never")), Tools: []tool.Tool{counted("x", &n)}, Hooks: []hook.Middleware{ends},
	}}.do(t)
	wantErr(t, d.err, errdefs.Aborted, "seen enough")
	if diff := cmp.Diff("tool:  [a x 1] [b x 2] [c Not run: the run ended before its turn came. !]", d.since()[1]); diff != "" || n != 2 {
		t.Error("what was done stands:", n, diff)
	}
	d.execute(t, t.Context(), engine.NoopHost{})
	if wantErr(t, d.err, errdefs.Aborted, "seen enough"); n != 2 {
		t.Error("resumed, it goes on:", n)
	}
}

func TestWhatAHookSaysWhenItIsCancelledIsNotOnRecord(t *testing.T) {
	for name, stop := range map[string]bool{"a judge": false, "a stop hook": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			times, n := 0, 0
			hangs := func(ctx context.Context) error {
				if times++; times == 1 {
					cancel()
				}
				return ctx.Err()
			}
			h := hook.Middleware{Name: "h"}
			if stop {
				h.PostGeneration = func(ctx context.Context, _ *hook.Generation) error { return hangs(ctx) }
			} else {
				h.PreToolUse = func(ctx context.Context, _ *hook.ToolUse) (hook.Decision, error) { return hook.Decision{}, hangs(ctx) }
			}
			d := play{ctx: ctx, cfg: loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{counted("x", &n)}, Hooks: []hook.Middleware{h}}}.do(t)
			if !errors.Is(d.err, context.Canceled) {
				t.Error(d.err)
			}
			d.execute(t, t.Context(), engine.NoopHost{})
			if diff := cmp.Diff([]string{"assistant:  <c x {}>", "tool:  [c x 1]", "assistant: done"}, d.since()); diff != "" || d.err != nil || times != 2 || n != 1 {
				t.Error(d.err, times, n, diff)
			}
		})
	}
}

func TestAStopHookKnowsHowOftenTheModelWasSentBack(t *testing.T) {
	var sent []int
	nag := hook.Middleware{Name: "nag", PostGeneration: func(_ context.Context, g *hook.Generation) error {
		sent = append(sent, g.Sent)
		g.Again("more")
		return nil
	}}
	d := play{cfg: loop.Config{Model: plays(says("a"), says("b"), says("c"), says("d")), Hooks: []hook.Middleware{nag}}}.do(t)
	if diff := cmp.Diff([]int{0, 1, 2, 3}, sent); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
}

func TestAHookKnowsHowLongAToolTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Func("x", "", func(context.Context, none) (string, error) { time.Sleep(3 * time.Second); return "ok", nil })
		var took time.Duration
		h := hook.Middleware{Name: "h", PostToolUse: func(_ context.Context, u *hook.ToolUse) error { took = u.Took; return nil }}
		d := play{cfg: loop.Config{Model: plays(uses(call("c", "x", `{}`)), says("done")), Tools: []tool.Tool{slow}, Hooks: []hook.Middleware{h}}}.do(t)
		if took != 3*time.Second || d.err != nil {
			t.Error(took, d.err)
		}
	})
}

func TestAnEffectOfACallCarriesWhatHooksTellTheModel(t *testing.T) {
	var got []string
	eng, err := loop.New(loop.Config{Model: plays(), Tools: []tool.Tool{reads(&got)}})
	if err != nil {
		t.Fatal(err)
	}
	u := engine.UseTool{Call: journal.CalledOf(message.ToolCall{ID: "c", Name: "read", Input: `{"path":"a"}`}), Context: "note"}
	out, err := eng.Perform(t.Context(), begun(t, journal.Memory(), engine.Run{}), engine.NoopHost{}, u)
	if err != nil || out.(journal.ToolFinished).Content != "content of a\nnote" {
		t.Error(out, err)
	}
}
