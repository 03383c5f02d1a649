package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

func TestTwoAttemptsAtOneEffectRunItOnceAndAgree(t *testing.T) {
	for range 200 {
		store := journal.Memory()
		begun(t, store)
		var runs atomic.Int64
		p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
			runs.Add(1)
			return fine(e), nil
		})
		var got [4]journal.Data
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { // another worker, which drives nothing
				run := engine.Run{ID: "r", Log: open(t, store)}
				got[i], _ = engine.Do[journal.Data](context.Background(), engine.Local(run, engine.NoopHost{}, p), use("a", writes))
			})
		}
		wg.Wait()
		want, _ := open(t, store).Recorded(use("a", writes).Key())
		for _, g := range got {
			if runs.Load() != 1 || g == nil || fmt.Sprint(g) != fmt.Sprint(want) {
				t.Fatal(runs.Load(), got, want)
			}
		}
	}
}

func TestTheFirstOutcomeCounts(t *testing.T) {
	store := journal.Memory()
	begun(t, store)
	first, second := engine.Run{ID: "r", Log: open(t, store)}, engine.Run{ID: "r", Log: open(t, store)}
	e := use("a", readOnly) // may be run by both
	answer := func(text string, before func()) performs {
		return func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
			before()
			return journal.ToolFinished{Call: "a", Content: text, Outcome: journal.OutcomeOK}, nil
		}
	}
	var inner journal.ToolFinished
	outer, err := engine.Do[journal.ToolFinished](t.Context(), engine.Local(first, engine.NoopHost{}, answer("late", func() {
		var err error
		if inner, err = engine.Do[journal.ToolFinished](t.Context(), engine.Local(second, engine.NoopHost{}, answer("early", func() {})), e); err != nil {
			t.Error(err)
		}
	})), e)
	if err != nil || outer.Content != "early" || inner.Content != "early" {
		t.Error(err, outer, inner)
	}
}

// overtakes lets another driver take the session over, with a run that is as far as this one.
func overtakes(t *testing.T, store journal.Store, first journal.Data, then ...journal.Entry) {
	t.Helper()
	log, run := open(t, store), "r2"
	if _, resumes := first.(journal.Resumed); resumes {
		run = "r"
	}
	if err := log.Drive(t.Context(), "other", append([]journal.Entry{{Run: run, Data: first}}, then...)...); err != nil {
		t.Fatal(err)
	}
}

func TestAnOvertakenDriverStartsNothingAndTakesNothingOver(t *testing.T) {
	key := use("a", writes).Key()
	started := journal.Entry{Run: "r2", Key: key, Data: journal.ToolStarted{Call: journal.Called{ID: "a"}}}
	finished := journal.Entry{Run: "r2", Key: key, Data: journal.ToolFinished{Call: "a", Content: "the other's"}}
	fresh := journal.RunStarted{Owner: "other", Attempt: 1}
	for name, c := range map[string]struct {
		first journal.Data
		then  []journal.Entry
	}{
		"by a run that has begun nothing":         {fresh, nil},
		"by a run that has begun the same":        {fresh, []journal.Entry{started}},
		"by a run that has done the same":         {fresh, []journal.Entry{started, finished}},
		"by a resume that has begun nothing":      {journal.Resumed{Owner: "other"}, nil},
		"by a resume that has begun the same":     {journal.Resumed{Owner: "other"}, []journal.Entry{started}},
		"by a resume that has it done and dusted": {journal.Resumed{Owner: "other"}, []journal.Entry{started, finished}},
	} {
		for ann, a := range map[string]engine.UseTool{"writes": use("a", writes), "read-only": use("a", readOnly)} {
			t.Run(name+", "+ann, func(t *testing.T) {
				store := journal.Memory()
				run := begun(t, store)
				ran := false
				p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
					ran = true
					return fine(e), nil
				})
				steps := engine.Local(run, engine.NoopHost{}, p)
				overtakes(t, store, c.first, c.then...)
				before := read(t, store)
				out, err := engine.Do[journal.ToolFinished](t.Context(), steps, a)
				if !errdefs.Conflict.Is(err) || ran || out.Content != "" {
					t.Errorf("%v, ran: %t, outcome: %+v", err, ran, out)
				}
				same(t, "journal", before, read(t, store))
			})
		}
	}
}

func TestAnOvertakenDriversOutcomeIsNotRecordedNorReplacedByAnothersOfTheSameName(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		overtakes(t, store, journal.RunStarted{Owner: "other", Attempt: 1}, journal.Entry{Run: "r2", Key: e.Key(), Data: journal.Stopped{Again: "the other's"}})
		return fine(e), nil
	})
	out, err := engine.Do[journal.Stopped](t.Context(), engine.Local(run, engine.NoopHost{}, p), engine.Stop{Step: 1})
	if !errdefs.Conflict.Is(err) || out.Again == "the other's" {
		t.Error(err, out)
	}
	same(t, "journal", []string{"stopped stop/1"}, read(t, store))
}

func TestAnAnswerFromElsewhereDoesNotFenceTheDriverOff(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	ask := engine.Ask{Asked: journal.Asked{ID: "q", Prompt: "?"}}
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		if e.Key() == ask.Key() {
			if err := open(t, store).Answer(t.Context(), journal.Answered{ID: "q", Approved: true, By: "ada"}); err != nil {
				t.Error(err)
			}
			return journal.Answered{ID: "q", By: "host"}, nil
		}
		return fine(e), nil
	})
	steps := engine.Local(run, engine.NoopHost{}, p)
	answer, err := engine.Do[journal.Answered](t.Context(), steps, ask)
	if err != nil || answer.By != "ada" {
		t.Error("the first answer counts:", err, answer)
	}
	if _, err := engine.Do[journal.ToolFinished](t.Context(), steps, use("a", writes)); err != nil {
		t.Error(err)
	}
}
