package loop_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// steps plays a run of n model calls with a tool call each.
func steps(t testing.TB, n int, host engine.Host, hooks ...hook.Middleware) func() {
	rs := make([]reply, 0, n+1)
	for i := range n {
		rs = append(rs, uses(call(fmt.Sprint("c", i), "x", `{"a":1}`)))
	}
	x := tool.Func("x", "", func(context.Context, map[string]any) (string, error) { return "ok", nil })
	m := &stub{replies: append(rs, says("done"))}
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{x}, Hooks: hooks, Limits: loop.Limits{Steps: -1, Repeats: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		m.asked = m.asked[:0]
		if err := once(t, eng, host); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCostOfAStepDoesNotGrowWithTheHistory(t *testing.T) {
	for name, host := range map[string]engine.Host{"nobody listens": engine.NoopHost{}, "somebody does": deaf{}} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 { return testing.AllocsPerRun(20, steps(t, n, host)) }
			a, b, c := cost(0), cost(50), cost(100)
			early, late := (b-a)/50, (c-b)/50
			t.Logf("allocations: run %.0f, a further step %.1f at 50, %.1f at 100", a, early, late)
			if late > 1.1*early {
				t.Errorf("a step costs %.1f allocations at 50 and %.1f at 100", early, late)
			}
			if early > 80 {
				t.Errorf("a step costs %.1f allocations", early)
			}
		})
	}
}

// idle are n hooks that look at everything and do nothing; calls counts how often they were asked.
func idle(n int, calls *int) (hooks []hook.Middleware) {
	for i := range n {
		hooks = append(hooks, hook.Middleware{
			Name:          fmt.Sprint("idle", i),
			PreGeneration: func(context.Context, *hook.Generation) error { return nil },
			PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
				*calls += len(u.Call.Name)
				return hook.Decision{}, nil
			},
			PostToolUse: func(_ context.Context, u *hook.ToolUse) error {
				*calls += len(u.Call.Name)
				return nil
			},
			PostGeneration: func(context.Context, *hook.Generation) error { return nil },
		})
	}
	return hooks
}

// allocated is what f allocates each time after the first, in pieces and in bytes.
func allocated(f func()) (pieces, size float64) {
	f()
	const runs = 5
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs, float64(after.TotalAlloc-before.TotalAlloc) / runs
}

func TestACallWithHooksThatDoNothingCostsLittleMoreThanOneWithout(t *testing.T) {
	asked := 0
	hooks := idle(10, &asked)
	// cost is what a run of n calls allocates, in pieces and in bytes.
	cost := func(n int, hooks ...hook.Middleware) (pieces, size float64) {
		return allocated(steps(t, n, engine.NoopHost{}, hooks...))
	}
	for _, n := range []int{50, 400} {
		pieces, size := cost(n)
		with, sizeWith := cost(n, hooks...)
		more, bytes := (with-pieces)/float64(n), (sizeWith-size)/float64(n)
		t.Logf("run of %d calls: ten hooks cost %.1f allocations and %.0f bytes more for each", n, more, bytes)
		if more > 4.1 { // the reply as hooks see it, the call as they see it before and after, and the result, which they may change
			t.Errorf("%d calls: ten hooks cost %.1f allocations more for each, want at most 4", n, more)
		}
		if bytes > 1100 { // a copy of the history would be one allocation, of a size that grows with n
			t.Errorf("%d calls: ten hooks cost %.0f bytes more for each, want at most 1100", n, bytes)
		}
	}
	if want := (1 + 5) * (50 + 400) * 10 * 2; asked != want {
		t.Errorf("hooks were asked %d times, want %d", asked, want)
	}
}

func BenchmarkToolCall(b *testing.B) {
	for _, n := range []int{0, 10} {
		b.Run(fmt.Sprintf("%d hooks", n), func(b *testing.B) {
			const calls = 100
			f := steps(b, calls, engine.NoopHost{}, idle(n, new(int))...)
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N*calls), "µs/call")
		})
	}
}

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint("of ", n), func(b *testing.B) {
			f := steps(b, n, engine.NoopHost{})
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	m := streams{pieces: []model.StreamResult{{Text: "word "}}, final: message.Assistant("x"), n: 10_000}
	eng, err := loop.New(loop.Config{Model: m})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := once(b, eng, deaf{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*m.n), "ns/delta")
}
