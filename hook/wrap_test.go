package hook_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// all four points call f.
func everywhere(f func(ctx context.Context, point string) error) hook.Middleware {
	return hook.Middleware{
		Name:          "m",
		PreGeneration: func(ctx context.Context, _ *hook.Generation) error { return f(ctx, "before agent") },
		PreToolUse: func(ctx context.Context, _ *hook.ToolUse) (hook.Decision, error) {
			return hook.Allowed("fine"), f(ctx, "before tool")
		},
		PostToolUse:    func(ctx context.Context, _ *hook.ToolUse) error { return f(ctx, "after tool") },
		PostGeneration: func(ctx context.Context, _ *hook.Generation) error { return f(ctx, "after agent") },
	}
}

// round has a middleware go through a run with one call, and gives what came of it.
func round(ctx context.Context, m hook.Middleware, w hook.Where, call string) (d hook.Decision, result string, errs []error, prepared error) {
	hooks := []hook.Middleware{m}
	g := &hook.Generation{Where: w}
	prepared = hook.Prepare(ctx, hooks, g)
	u := &hook.ToolUse{Where: w, Call: message.ToolCall{ID: call, Name: "x", Input: "{}"}}
	d = hook.Judge(ctx, hooks, u, nil)
	u.Result = &tool.Result{Content: "out"}
	_ = hook.After(ctx, hooks, u)
	_, errs = hook.Finish(ctx, hooks, g)
	return d, u.Result.Content, errs, prepared
}

func TestAFunctionThatOverrunsHasFailed(t *testing.T) {
	for name, sleep := range map[string]func(context.Context) error{
		"it looks at its context": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"it does not":             func(context.Context) error { time.Sleep(2 * time.Second); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := hook.Timeout(time.Second, everywhere(func(ctx context.Context, _ string) error { return sleep(ctx) }))
				d, result, errs, err := round(t.Context(), m, where, "c")
				const says = "it was not done after 1s: make it faster, or give it a longer timeout"
				if !errdefs.Timeout.Is(err) || !strings.HasSuffix(err.Error(), says) {
					t.Error(err)
				}
				if d != hook.Denied("hook m: "+says) || result != "The result was withheld by m." || len(errs) != 1 || !errdefs.Timeout.Is(errs[0]) {
					t.Error(d, result, errs)
				}
			})
		})
	}
}

func TestAFunctionInTimeIsAsItWas(t *testing.T) {
	m := hook.Timeout(time.Hour, everywhere(func(ctx context.Context, _ string) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("no deadline")
		}
		return nil
	}))
	d, result, errs, err := round(t.Context(), m, where, "c")
	if err != nil || d != hook.Allowed("fine") || result != "out" || errs != nil || m.Name != "m" {
		t.Error(err, d, result, errs)
	}
	boom := hook.Timeout(time.Hour, everywhere(func(context.Context, string) error { panic("boom") }))
	if d, _, _, _ := round(t.Context(), boom, where, "c"); d != hook.Denied("hook m panicked: boom") {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	own := hook.Timeout(time.Hour, everywhere(func(ctx context.Context, _ string) error { return ctx.Err() }))
	if _, _, _, err := round(ctx, own, where, "c"); !errors.Is(err, context.Canceled) || errdefs.Timeout.Is(err) {
		t.Error("a cancel is no timeout:", err)
	}
	if m := hook.Timeout(time.Hour, hook.Middleware{}); m.PreGeneration != nil || m.PreToolUse != nil || m.PostToolUse != nil || m.PostGeneration != nil {
		t.Error("a point without a function has one now")
	}
}

func TestOnceIsOnceInASession(t *testing.T) {
	var order []string
	m := hook.Once(everywhere(func(_ context.Context, point string) error { order = append(order, point); return nil }))
	four := []string{"before agent", "before tool", "after tool", "after agent"}
	for _, c := range []struct {
		session, run, call string
		want               []string
	}{
		{"s", "r", "c1", four},
		{"s", "r", "c2", nil},
		{"s", "r2", "c3", nil},
		{"s2", "r", "c1", four},
		{"", "r", "c1", four},
		{"", "r", "c2", nil},
		{"", "r2", "c1", four},
		{"", "", "c1", four},
		{"", "", "c1", four},
	} {
		order = nil
		d, _, _, _ := round(t.Context(), m, hook.Where{Session: c.session, Run: c.run}, c.call)
		if diff := cmp.Diff(c.want, order); diff != "" || (d.Verdict == hook.Allow) != (c.want != nil) {
			t.Error(c, d, diff)
		}
	}
}

func TestOnceThatFailedIsNotDone(t *testing.T) {
	times := 0
	m := hook.Once(everywhere(func(context.Context, string) error {
		if times++; times == 2 {
			panic("boom")
		}
		return errors.New("not now")
	}))
	for _, id := range []string{"c1", "c2"} {
		if _, _, errs, err := round(t.Context(), m, where, id); err == nil || len(errs) != 1 {
			t.Error(errs, err)
		}
	}
	if times != 8 {
		t.Error(times)
	}
}

func TestOnceIsHeardToTheEndOfItsCall(t *testing.T) {
	asks := hook.Once(hook.Middleware{PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("sure?"), nil }})
	changes := hook.Middleware{PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		return hook.Decision{Input: "new"}, nil
	}}
	u := &hook.ToolUse{Where: where, Call: message.ToolCall{ID: "c", Input: "old"}}
	if d := hook.Judge(t.Context(), []hook.Middleware{asks, changes}, u, nil); d.Verdict != hook.Ask || d.Input != "new" {
		t.Error("a rewrite must not get round it:", d)
	}
}

func TestTheFourStagesAreTheFourPoints(t *testing.T) {
	var order []string
	stage := func(name string) error { order = append(order, name); return nil }
	f := hook.Funcs{
		Name:        "f",
		BeforeAgent: func(context.Context, *hook.Generation) error { return stage("before agent") },
		BeforeTool:  func(context.Context, *hook.ToolUse) error { return stage("before tool") },
		AfterTool:   func(context.Context, *hook.ToolUse) error { return stage("after tool") },
		AfterAgent:  func(context.Context, *hook.Generation) error { return stage("after agent") },
	}
	d, _, _, _ := round(t.Context(), f.Middleware(), where, "c")
	if diff := cmp.Diff([]string{"before agent", "before tool", "after tool", "after agent"}, order); diff != "" || d != (hook.Decision{}) {
		t.Error(d, diff)
	}
	f.BeforeTool = func(context.Context, *hook.ToolUse) error { return errors.New("not on Sundays") }
	if d, _, _, _ := round(t.Context(), f.Middleware(), where, "c"); d != hook.Denied("hook f: not on Sundays") {
		t.Error(d)
	}
	if d, result, errs, err := round(t.Context(), hook.Funcs{}.Middleware(), where, "c"); err != nil || d != (hook.Decision{}) || result != "out" || errs != nil {
		t.Error("none of them:", err, d, result, errs)
	}
}

func TestWrappersHoldForWhatStandsAroundRunsBelow(t *testing.T) {
	calls, m := 0, everywhere(func(context.Context, string) error { return nil })
	m.Below = func(above hook.Where, agent string) hook.Middleware {
		return everywhere(func(_ context.Context, point string) error {
			if calls++; agent != "kid" || above != where || !strings.HasSuffix(point, "agent") {
				t.Errorf("%s of %s below %+v", point, agent, above)
			}
			return nil
		})
	}
	kept := hook.Gates([]hook.Middleware{hook.Once(m), {Name: "only below", Below: m.Below}, {Name: "nothing below", PreGeneration: m.PreGeneration}})
	below := hook.Below(kept, where, "kid")
	if len(kept) != 2 || len(below) != 2 || below[0].PreToolUse != nil || below[0].PostToolUse != nil { // those are inherited as they are
		t.Fatalf("%+v %+v", kept, below)
	}
	for range 2 {
		g := &hook.Generation{Where: hook.Where{Session: "s/c1", Run: "r"}}
		if err := hook.Prepare(t.Context(), below, g); err != nil {
			t.Fatal(err)
		}
		if _, errs := hook.Finish(t.Context(), below, g); errs != nil {
			t.Fatal(errs)
		}
	}
	if calls != 6 { // two of the one that is called once, four of the other
		t.Errorf("%d calls", calls)
	}
}

func TestWhatIsKeptOfSessionsThatHaveEndedIsForgotten(t *testing.T) {
	n := map[string]int{}
	count := func(name string) hook.Middleware {
		return hook.Middleware{Name: name, PreGeneration: func(_ context.Context, g *hook.Generation) error { n[name+" "+g.Session]++; return nil }}
	}
	m := hook.Timeout(time.Minute, hook.Once(hook.Once(count("m"))))
	run := func(session string) {
		if err := hook.Prepare(t.Context(), []hook.Middleware{m}, &hook.Generation{Where: hook.Where{Session: session, Run: "r"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		run("a")
		run("b")
	}
	m.Forget(func(session string) bool { return session == "a" })
	run("a")
	run("b")
	if d := cmp.Diff(map[string]int{"m a": 2, "m b": 1}, n); d != "" {
		t.Error(d)
	}
}
