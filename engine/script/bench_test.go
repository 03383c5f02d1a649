package script_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

// recorded is a run of so many effects that are all on record: going on with it gives them again.
type recorded struct {
	eng *script.Engine
	log *journal.Log
	did *int
}

func record(t testing.TB, calls int) recorded {
	t.Helper()
	did := new(int)
	count := tool.Func("count", "", func(context.Context, struct{}) (string, error) { *did++; return "ok", nil }, tool.Idempotent)
	eng, err := script.New(script.Config{Source: fmt.Sprintf("for i in range(%d): tool('count')", calls), Loop: loop.Config{Tools: []tool.Tool{count}}})
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Open(t.Context(), journal.Memory(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Drive(t.Context(), "d", journal.Entry{Data: journal.SessionCreated{}}, journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "d", Attempt: 1}}); err != nil {
		t.Fatal(err)
	}
	r := recorded{eng, log, did}
	r.goOn(t)
	if *did != calls {
		t.Fatal(*did, "calls")
	}
	return r
}

func (r recorded) goOn(t testing.TB) {
	run := engine.Run{ID: "r", Session: "s", Attempt: 1, Log: r.log, Values: new(engine.Values)}
	if _, err := r.eng.Execute(t.Context(), run, engine.NoopHost{}, engine.NewBoard(engine.Snapshot{})); err != nil {
		t.Fatal(err)
	}
}

// TestGoingOnCostsWhatIsOnRecord: an effect on record costs the same, however many there are.
func TestGoingOnCostsWhatIsOnRecord(t *testing.T) {
	perCall := func(calls int) float64 {
		r := record(t, calls)
		return testing.AllocsPerRun(2, func() { r.goOn(t) }) / float64(calls)
	}
	few, many := perCall(1_000), perCall(10_000)
	t.Logf("allocations a call: %.1f of 1,000, %.1f of 10,000", few, many)
	if many > 1.3*few {
		t.Errorf("%.1f allocations a call of 10,000, %.1f of 1,000: at most 1.3 times as many", many, few)
	}
}

// BenchmarkGoingOn is a run of 10,000 effects (5,000 calls, each judged and done) that goes on at its end.
func BenchmarkGoingOn(b *testing.B) {
	for _, effects := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(effects, " effects"), func(b *testing.B) {
			r := record(b, effects/2)
			before := *r.did
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.goOn(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*effects), "ns/effect")
			if *r.did != before {
				b.Error("something was done again")
			}
		})
	}
}
