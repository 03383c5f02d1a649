package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// steps plays a run of n model calls with a tool call each.
func steps(t testing.TB, n int, host engine.Host) func() {
	rs := make([]reply, 0, n+1)
	for i := range n {
		rs = append(rs, uses(call(fmt.Sprint("c", i), "x", `{"a":1}`)))
	}
	x := tool.Func("x", "", func(context.Context, map[string]any) (string, error) { return "ok", nil })
	m := &stub{replies: append(rs, says("done"))}
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{x}, Limits: loop.Limits{Steps: -1, Repeats: -1}})
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
			if early > 150 {
				t.Errorf("a step costs %.1f allocations", early)
			}
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
