package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

func uses(id string) engine.UseTool {
	return engine.UseTool{Call: journal.Called{ID: id, Name: "work"}}
}

// path asks for one, for two beside each other in branches, and for one more.
func path(ctx context.Context, run engine.Run, _ engine.Host, board *engine.Board) (*engine.Board, error) {
	do := engine.StepsOf(run, engine.NoopHost{}, nil)
	if _, err := do.Do(ctx, uses("1")); err != nil {
		return board, err
	}
	branch := func(id string) engine.Branch {
		return engine.Branch{Scope: id, Run: func(ctx context.Context, s engine.Steps) error { _, err := s.Do(ctx, uses(id)); return err }}
	}
	if err := do.Branch(ctx, branch("2"), branch("3")); err != nil {
		return board, err
	}
	_, err := do.Do(ctx, uses("4"))
	return board, err
}

// What an effect is can be found again from what is on record before it, with the scopes that it is in.
func TestAnEffectIsFoundByTheRecord(t *testing.T) {
	key := func(id, scope string) journal.Key { return journal.Key{Scope: scope, Op: "tool", ID: id} }
	all := []journal.Key{key("1", ""), key("2", "2"), key("3", "3"), key("4", "")}
	for n, want := range all {
		given := func(k journal.Key) journal.Data {
			if i := slices.Index(all, k); i >= 0 && i < n {
				return journal.ToolFinished{Call: k.ID}
			}
			return nil
		}
		e, err := engine.Find(t.Context(), engine.Func(path), engine.Run{ID: "r"}, new(engine.Board), given, want)
		if err != nil || e.Key() != want || engine.Alone(e) != (want.Scope == "") {
			t.Errorf("%v: %v, %v", want, e, err)
		}
	}
	nothing := func(journal.Key) journal.Data { return nil }
	for what, k := range map[string]journal.Key{"what is not on record yet leads to it": all[3], "the path never asks for it": key("9", "")} {
		if e, err := engine.Find(t.Context(), engine.Func(path), engine.Run{ID: "r"}, new(engine.Board), nothing, k); !errdefs.NotFound.Is(err) {
			t.Errorf("%s: %v, %v", what, e, err)
		}
	}
	if e, err := engine.Find(t.Context(), engine.Func(path), engine.Run{ID: "r"}, new(engine.Board), nothing, all[0]); err != nil || e == nil {
		t.Errorf("the first: %v", err)
	}
}

// On record, each branch goes as far as it gets, and all that is missing is shown.
func TestWhatIsMissingIsShown(t *testing.T) {
	var shown []string
	stop := errors.New("stop")
	steps := engine.OnRecord(func(k journal.Key) journal.Data {
		if k.ID == "1" {
			return journal.ToolFinished{Call: "1"}
		}
		return nil
	}, func(e engine.Effect) error {
		shown = append(shown, e.Key().String())
		return stop
	})
	_, err := path(t.Context(), engine.Run{ID: "r", Steps: steps}, engine.NoopHost{}, new(engine.Board))
	if !errors.Is(err, stop) || !slices.Equal(shown, []string{"2:tool/2", "3:tool/3"}) {
		t.Errorf("%v: %v", shown, err)
	}
}

func TestWhatGoesOnElsewhereIsNotedAndNotDone(t *testing.T) {
	b := engine.BackgroundElsewhere(t.Context(), "mine")
	did := ""
	work := func(name string) func(context.Context) error {
		return func(context.Context) error { did += name; return nil }
	}
	never := func() bool { return false }
	if err := b.Wait(t.Context(), engine.NoopHost{}, never); err != nil {
		t.Errorf("there is nothing to wait for: %v", err)
	}
	if err := b.Do(t.Context()); err != nil || did != "" {
		t.Errorf("nothing is to be done: %q, %v", did, err)
	}
	for range 2 {
		b.Start("theirs", work("theirs"))
		b.Start("mine", work("mine"))
	}
	if got := b.Noted(); !slices.Equal(got, []string{"theirs"}) || did != "" {
		t.Errorf("noted %v, did %q", got, did)
	}
	intr := engine.InterruptedError{}
	if err := b.Wait(t.Context(), engine.NoopHost{}, never); !errors.As(err, &intr) || intr.Cause != engine.CauseBackground {
		t.Errorf("waiting: %v", err)
	}
	if err := b.Wait(t.Context(), engine.NoopHost{}, func() bool { return true }); err != nil {
		t.Errorf("what is ready is not waited for: %v", err)
	}
	if err := b.Do(t.Context()); err != nil || did != "mine" {
		t.Errorf("did %q, %v", did, err)
	}
	panics := engine.BackgroundElsewhere(t.Context(), "mine")
	panics.Start("mine", func(context.Context) error { panic("oh") })
	if err := panics.Do(t.Context()); !errdefs.Internal.Is(err) {
		t.Errorf("a panic: %v", err)
	}
	panics.End()
	b.End()
}

func TestAPathsTimeIsByItsOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel, over := engine.Within(t.Context(), time.Minute)
		defer cancel()
		if over() {
			t.Error("it is over at once")
		}
		<-ctx.Done()
		if !over() {
			t.Error("its end is not that of the time")
		}
		outer, stop := context.WithCancel(t.Context())
		ctx, cancel, over = engine.Within(outer, time.Minute)
		defer cancel()
		if stop(); ctx.Err() == nil || over() {
			t.Error("a cancel is taken for the end of the time")
		}
		mine := context.WithValue(t.Context(), engine.TimerKey{}, engine.Timer(func(d time.Duration) (context.Context, func(), func() bool) {
			return context.WithValue(t.Context(), engine.TimerKey{}, d), func() {}, func() bool { return d == time.Hour }
		}))
		if ctx, _, over := engine.Within(mine, time.Hour); ctx.Value(engine.TimerKey{}) != time.Hour || !over() {
			t.Error("the path's own clock is not asked")
		}
	})
}
