package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// runs makes a function that does a whole run of n steps with a tool call each.
func runs(t testing.TB, n int, opts ...agent.RunOption) func() *agent.Result {
	t.Helper()
	var s script
	for i := range n {
		s = append(s, message.Assistant("a", call(fmt.Sprint("c", i), "x", `{}`)))
	}
	x := tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	eng, err := loop.New(loop.Config{Model: append(s, message.Assistant("end")), Tools: []tool.Tool{x}, Limits: loop.Limits{Steps: -1, Repeats: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return func() *agent.Result {
		res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, asking("s", "go"), opts...)
		if err != nil || res.Text() != "end" {
			t.Fatal(res, err)
		}
		return res
	}
}

func TestAStepOfALongRunAllocatesAsMuchAsOneOfAShortRun(t *testing.T) {
	cost := func(n int) float64 {
		run := runs(t, n)
		return testing.AllocsPerRun(20, func() { run() })
	}
	a, b, c := cost(0), cost(50), cost(100)
	early, late := (b-a)/50, (c-b)/50
	t.Logf("allocations: a run %.0f, each further step %.1f up to 50, %.1f up to 100", a, early, late)
	if late > 1.1*early || late > 45 {
		t.Errorf("a step costs %.1f allocations up to 50, %.1f up to 100", early, late)
	}
}

func TestAStepOfALongRunPutsAsManyBytesOnRecordAsOneOfAShortRun(t *testing.T) {
	record := func(n int) (bytes, entries int) {
		store := journal.Memory()
		runs(t, n, agent.WithJournal(store))()
		for e, err := range store.Read(t.Context(), "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			data, err := journal.EncodeData(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			bytes += len(data)
			entries++
		}
		return bytes, entries
	}
	step := func(n int) (bytes, entries float64) {
		b0, e0 := record(0)
		b, e := record(n)
		return float64(b-b0) / float64(n), float64(e-e0) / float64(n)
	}
	few, entries := step(100)
	many, more := step(1000)
	t.Logf("a step of 100 is %.1f entries of %.0f bytes in all, one of 1,000 %.1f of %.0f", entries, few, more, many)
	if many > 1.1*few || more > 1.1*entries {
		t.Errorf("a step of 100 is %.1f entries of %.0f bytes in all, one of 1,000 %.1f of %.0f", entries, few, more, many)
	}
}

func BenchmarkRun(b *testing.B) {
	for _, n := range []int{0, 10, 100, 400} {
		b.Run(fmt.Sprint("of ", n, " steps"), func(b *testing.B) {
			f := runs(b, n)
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}

// A run opens its session, which reads and folds all of it.
func BenchmarkRunOfASession(b *testing.B) {
	eng := looping(b, constantly{message.Assistant("", call("c", "x", `{}`)), message.Assistant("end")}, new(works).tool("x"))
	for _, n := range []int{0, 10, 100} {
		b.Run(fmt.Sprint("after ", n, " runs"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				store := journal.Memory()
				for range n {
					run(b, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
				}
				b.StartTimer()
				run(b, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
			}
		})
	}
}

// around makes a function that does a run whose engine returns at once, with n messages on the board.
func around(t testing.TB, n int) func() {
	t.Helper()
	var h message.History
	for i := range n / 2 {
		h = h.Append(message.User(fmt.Sprint("question ", i)), message.Assistant("answer"))
	}
	eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		return b, nil
	})
	seed := agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		return agent.BoardWith(h, req), nil
	})
	return func() {
		res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, asking("s", "go"), seed)
		if err != nil || res.Status != agent.StatusCompleted || res.LastBoard.Channel(engine.MainChannel).Len() != n+1 {
			t.Fatal(res, err)
		}
	}
}

func TestARunAroundALongTranscriptAllocatesAsMuchAsOneAroundNone(t *testing.T) {
	cost := func(n int) float64 { return testing.AllocsPerRun(20, around(t, n)) }
	none, some, many := cost(0), cost(1000), cost(10_000)
	t.Logf("allocations with 0, 1,000 and 10,000 messages on the board: %.0f, %.0f, %.0f", none, some, many)
	if many > 1.3*none || some > 1.3*none {
		t.Errorf("a run allocates %.0f with no message on its board, %.0f with 1,000 and %.0f with 10,000", none, some, many)
	}
}

func BenchmarkRunAround(b *testing.B) {
	for _, n := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint(n, " messages"), func(b *testing.B) {
			f := around(b, n)
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
