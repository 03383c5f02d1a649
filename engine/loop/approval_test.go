package loop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

func TestAToolThatRequiresApprovalWaitsForAPersonWhateverHooksAllow(t *testing.T) {
	ran := ""
	refund := tool.Func("refund", "", func(_ context.Context, in struct{ Amount int }) (string, error) {
		ran += strings.Repeat("$", in.Amount)
		return "refunded", nil
	}, tool.RequiresApproval)
	allows := hook.Middleware{Name: "yes", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Allowed(""), nil }}
	denies := hook.Middleware{Name: "no", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Denied("never"), nil }}
	start := func(hooks ...hook.Middleware) played {
		ran = ""
		m := plays(uses(call("c1", "refund", `{"Amount":5}`)), says("done"))
		return play{cfg: loop.Config{Model: m, Tools: []tool.Tool{refund}, Hooks: hooks}}.do(t)
	}
	if d := start(denies); d.err != nil || ran != "" || entries[journal.ToolJudged](t, d)[0].Verdict != "deny" {
		t.Error("a denial needs no person:", d.err, ran)
	}
	for name, c := range map[string]struct {
		answer journal.Answered
		ran    string
		result string
	}{
		"approved":                {journal.Answered{ID: "c1", Approved: true}, "$$$$$", "refunded"},
		"edited":                  {journal.Answered{ID: "c1", Approved: true, Input: `{"Amount":2}`}, "$$", "refunded"},
		"rejected":                {journal.Answered{ID: "c1", Text: "too much"}, "", "Rejected by a person: too much"},
		"edited to what is wrong": {journal.Answered{ID: "c1", Approved: true, Input: `{"Amount":"2"}`}, "", "want integer"},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(allows)
			if p := d.log.State().Pending; !errdefs.Interrupted.Is(d.err) || ran != "" || len(p) != 1 || p[0].Call.Name != "refund" || !strings.Contains(p[0].Prompt, "requires approval") {
				t.Fatal(d.err, ran, p)
			}
			if err := d.log.Answer(t.Context(), c.answer); err != nil {
				t.Fatal(err)
			}
			d.execute(t, t.Context(), engine.NoopHost{})
			if d.err != nil || ran != c.ran || !strings.Contains(strings.Join(d.since(), "\n"), c.result) {
				t.Error(d.err, ran, d.since())
			}
		})
	}
}

// An approval for the session settles a question only when all who ask heed it, the tool among them.
func TestAQuestionSaysWhetherItIsAskedEachTime(t *testing.T) {
	heeds := hook.Middleware{PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Decision{Verdict: hook.Ask, Reason: "?", Session: true}, nil
	}}
	for name, c := range map[string]struct {
		hooks []hook.Middleware
		tool  []tool.Option
		once  bool
	}{
		"a hook that heeds it": {[]hook.Middleware{heeds}, nil, false},
		"one that doesn't":     {[]hook.Middleware{heeds, asks("read")}, nil, true},
		"the tool":             {nil, []tool.Option{tool.RequiresApproval}, true},
		"the tool, behind a hook that would heed it": {[]hook.Middleware{heeds}, []tool.Option{tool.RequiresApproval}, true},
	} {
		var got []string
		d := play{cfg: loop.Config{Model: plays(uses(call("c", "read", `{"path":"a"}`))), Tools: []tool.Tool{reads(&got, c.tool...)}, Hooks: c.hooks}}.do(t)
		if p := d.log.State().Pending; len(p) != 1 || p[0].Once != c.once {
			t.Errorf("%s: %+v %v", name, p, d.err)
		}
	}
}

func TestWhatAPersonEditsIsJudgedAsWhatTheModelWrote(t *testing.T) {
	ran := ""
	pay := tool.Func("pay", "", func(_ context.Context, in struct{ Amount int }) (string, error) {
		ran += strings.Repeat("$", in.Amount)
		return "paid", nil
	})
	judges := hook.Middleware{Name: "judge", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		switch {
		case strings.Contains(u.Call.Input, "666"):
			return hook.Denied("never so much"), nil
		case strings.Contains(u.Call.Input, "777"):
			return hook.Decision{Verdict: hook.Ask, Reason: "really?", Input: `{"Amount":3}`}, nil
		}
		return hook.Asking("may I?"), nil
	}}
	for input, want := range map[string]string{`{"Amount":2}`: "$$", `{"Amount":666}`: "", `{"Amount":777}`: "$$$", `{"Amount":5}`: "$$$$$"} {
		ran = ""
		m := plays(uses(call("c1", "pay", `{"Amount":5}`)), says("done"))
		d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{pay}, Hooks: []hook.Middleware{judges}}}.do(t)
		if err := d.log.Answer(t.Context(), journal.Answered{ID: "c1", Approved: true, Input: input}); err != nil {
			t.Fatal(err)
		}
		d.execute(t, t.Context(), engine.NoopHost{})
		if d.err != nil || ran != want || want == "" && !strings.Contains(strings.Join(d.since(), "\n"), "never so much") {
			t.Errorf("%s: %q %v %v", input, ran, d.err, d.since())
		}
	}
}
