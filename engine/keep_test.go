package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// tries asks for a call until it succeeds, as an engine with retries does; the path is told of failures by Keep alone.
func tries(ctx context.Context, do engine.Steps) (failures []string, err error) {
	for n := 1; n <= 3; n++ {
		err = do.Branch(ctx, engine.Branch{Scope: strings.Repeat("~", n), Run: func(ctx context.Context, do engine.Steps) error {
			_, err := engine.Do[journal.ModelFinished](ctx, engine.Keep(do), engine.Generate{Step: 1})
			return err
		}})
		if err == nil {
			return failures, nil
		}
		failures = append(failures, err.Error())
	}
	return failures, err
}

func TestAFailureThatIsKeptIsTheSameForARunThatResumesAndInReplay(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	calls := 0
	fails := performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
		if calls++; calls < 3 {
			return nil, errdefs.RateLimit.Errorf("busy %d", calls)
		}
		return journal.ModelFinished{}, nil
	})
	want := []string{"busy 1", "busy 2"}
	got, err := tries(t.Context(), engine.Local(run, engine.NoopHost{}, fails))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "failures", want, got)
	entries := read(t, store)
	run.Log = open(t, store)
	got, err = tries(t.Context(), engine.Local(run, engine.NoopHost{}, fails))
	if same(t, "failures of the resumed run", want, got); err != nil || calls != 3 {
		t.Error(err, calls)
	}
	same(t, "entries after the resume", entries, read(t, store))
	same(t, "entries", []string{
		"model.started ~:model/1", "model.failed ~:model/1", "failed ~:model/1", "model.started ~~:model/1", "model.failed ~~:model/1", "failed ~~:model/1", "model.started ~~~:model/1", "model.finished ~~~:model/1",
	}, entries)
	if err := run.Log.Append(t.Context(), journal.Entry{Run: run.ID, Data: journal.RunFinished{Status: "completed"}}); err != nil {
		t.Fatal(err)
	}
	all, err := journal.Attempts(t.Context(), store, "s")
	if err != nil || len(all) != 1 {
		t.Fatal(err)
	}
	replay := engine.NewReplay(all[0])
	got, err = tries(t.Context(), replay)
	same(t, "failures of the replay", want, got)
	if err := replay.End(engine.NewBoard(engine.Snapshot{}), err); err != nil {
		t.Error(err)
	}
}

func TestWhatEndsARunIsNotKept(t *testing.T) {
	gone := errdefs.NotAvailable.Errorf("the disk is full")
	for name, c := range map[string]struct {
		err  error
		stop bool
		lose bool
	}{
		"a cancel":              {err: errdefs.RateLimit.Errorf("busy"), stop: true},
		"an interrupt":          {err: engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseUserInput}}},
		"another driver":        {err: errdefs.Conflict.Errorf("taken")},
		"a budget":              {err: errdefs.BudgetExceeded.Errorf("used up")},
		"a journal that failed": {err: errdefs.RateLimit.Errorf("busy"), lose: true},
	} {
		store := journal.Memory()
		run := begun(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := engine.Keep(engine.Local(run, engine.NoopHost{}, performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
			if c.stop {
				cancel()
			}
			if c.lose {
				run.Log.Fail(gone)
			}
			return nil, c.err
		}))).Do(ctx, engine.Generate{Step: 1})
		if cancel(); err == nil || c.stop && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		for _, line := range read(t, store) {
			if strings.HasPrefix(line, "failed ") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestBranchesOfOneCallAreBoundedAndNestedOnesDoNotWaitForThem(t *testing.T) {
	run := begun(t, journal.Memory())
	var now, most atomic.Int64
	inner := make([]engine.Branch, 40)
	outer := make([]engine.Branch, 40)
	for i := range inner {
		inner[i] = engine.Branch{Scope: "i" + strings.Repeat("x", i), Run: func(context.Context, engine.Steps) error { return nil }}
		outer[i] = engine.Branch{Scope: "o" + strings.Repeat("x", i), Run: func(ctx context.Context, do engine.Steps) error {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return do.Branch(ctx, inner...)
		}}
	}
	if err := engine.Local(run, &place{}, performs(nil)).Branch(t.Context(), outer...); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n > 16 {
		t.Errorf("%d branches of one call ran at a time", n)
	}
}

// In a replay, a branch whose record ends does not hide what the branches beside it did.
func TestAReplayGoesThroughEveryBranch(t *testing.T) {
	for failed, want := range map[bool]error{false: nil, true: errdefs.Conflict} {
		store := journal.Memory()
		run := begun(t, store)
		work := func(do engine.Steps, other string) error {
			branch := func(scope string, effects ...engine.Effect) engine.Branch {
				return engine.Branch{Scope: scope, Run: func(ctx context.Context, do engine.Steps) error {
					for _, e := range effects {
						if _, err := do.Do(ctx, e); err != nil {
							return err
						}
					}
					return nil
				}}
			}
			return do.Branch(t.Context(), branch("a", use("breaks", idempotent)), branch("b", use("c1", writes), use(other, writes)))
		}
		err := work(engine.Local(run, engine.NoopHost{}, performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
			if e.Key().ID == "breaks" {
				return nil, errdefs.Internal.Errorf("broken")
			}
			return fine(e), nil
		})), "c2")
		if !errdefs.Internal.Is(err) {
			t.Fatal(err)
		}
		if err := run.Log.Append(t.Context(), journal.Entry{Run: run.ID, Data: journal.RunFinished{Status: "failed", Class: "internal", Error: "broken"}}); err != nil {
			t.Fatal(err)
		}
		all, err := journal.Attempts(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		more := all[0]
		more.End = journal.RunFinished{Status: "completed"}
		whole := engine.NewReplay(more)
		if err := whole.End(engine.NewBoard(engine.Snapshot{}), work(whole, "c2")); !errdefs.Conflict.Is(err) {
			t.Errorf("the run was completed, the code asks for more: %v", err)
		}
		replay := engine.NewReplay(all[0])
		other := "c2"
		if failed {
			other = "c3"
		}
		if err := replay.End(engine.NewBoard(engine.Snapshot{}), work(replay, other)); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", other, err, want)
		}
	}
}

func TestAnIDOfACallIsItsRunsOwnAndFitForProviders(t *testing.T) {
	one := engine.Run{ID: "r", Attempt: 1}
	id := one.CallID("review#2:search the web#3")
	if !strings.HasPrefix(id, "search_the_web_3_") || len(id) > 40 || strings.ContainsAny(id, "/:# ") {
		t.Error(id)
	}
	if again := one.CallID("review#2:search the web#3"); again != id {
		t.Error(again, id)
	}
	for _, other := range []string{engine.Run{ID: "r", Attempt: 2}.CallID("review#2:search the web#3"), engine.Run{ID: "s", Attempt: 1}.CallID("review#2:search the web#3"), one.CallID("review:search the web#3")} {
		if other == id {
			t.Error(other)
		}
	}
}
