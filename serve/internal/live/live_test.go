package live_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/serve/internal/live"
)

// held is an agent whose runs begin when hold says so.
type held struct {
	serve.Agent
	hold chan struct{} // nil: at once
	then func()        // what happens before a run is resumed, as when its session has to be waited for
}

func (h *held) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	if h.then != nil {
		h.then()
	}
	return h.Agent.Resume(ctx, session, opts...)
}

func (h *held) Run(ctx context.Context, req pawl.Request, opts ...agent.RunOption) (*agent.Result, error) {
	if h.hold != nil {
		<-h.hold
	}
	return h.Agent.Run(ctx, req, opts...)
}

func opened(t *testing.T, turns ...scripted.Turn) (*held, *live.Runs) {
	t.Helper()
	e, err := loop.New(loop.Config{Model: scripted.New(turns...)})
	if err != nil {
		t.Fatal(err)
	}
	h := &held{Agent: serve.Of(agent.Agent{ID: "a"}, e, journal.Memory())}
	return h, live.New(h, nil, 10, slog.New(slog.DiscardHandler))
}

func named(session, run string) pawl.Request {
	req := pawl.Request{SessionID: session}
	req.RunID, req.Message = run, message.User("Hello")
	return req
}

// Whoever asks for a run that is on record gets it, also while somebody else is about to learn that it is there.
func TestARunThatIsAskedForByManyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, runs := opened(t, scripted.Text("Hi."))
		first, err := runs.Start(t.Context(), named("s", "r"))
		if err != nil {
			t.Fatal(err)
		}
		<-first.Done()
		h.hold = make(chan struct{})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if run, err := runs.Start(t.Context(), named("s", "r")); err != nil || !run.Known {
					t.Errorf("%+v %v", run, err)
				}
			})
			synctest.Wait()
		}
		close(h.hold)
		all.Wait()
		runs.Close(t.Context())
	})
}

// What is to end is the run that was named, and no other one that has begun in its session since.
func TestAnEndIsOfTheRunThatWasNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, runs := opened(t, scripted.Turn{Text: "Hi.", Delay: 1e9})
		run, err := runs.Start(t.Context(), named("s", "new"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := runs.End(t.Context(), "s", "old"); !errdefs.NotFound.Is(err) {
			t.Error(err)
		}
		<-run.Done()
		if res, err := run.Result(); err != nil || res.Status != agent.StatusCompleted {
			t.Errorf("%+v %v", res, err)
		}
		runs.Close(t.Context())
	})
}

// A cancel that has to wait for the session meets the run that it was meant for, or none.
func TestACancelMeetsNoLaterRun(t *testing.T) {
	for _, id := range []string{"", "r1"} {
		h, runs := opened(t, scripted.Text("Hi."))
		store := h.Journal()
		add := func(after int64, run string, all ...journal.Data) {
			t.Helper()
			var entries []journal.Entry
			for _, d := range all {
				e := journal.Entry{Run: run, Data: d}
				if _, ok := d.(journal.SessionCreated); ok {
					e.Run = ""
				}
				entries = append(entries, e)
			}
			if err := store.Append(t.Context(), "s", after, entries...); err != nil {
				t.Fatal(err)
			}
		}
		begun := []journal.Data{journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}, journal.Said{Message: message.User("Hello")}, journal.Parked{Cause: "host_shutdown"}}
		add(0, "r1", append([]journal.Data{journal.SessionCreated{}}, begun...)...)
		h.then = func() {
			add(4, "r1", journal.Resumed{Owner: "p"}, journal.RunFinished{Status: "completed"})
			add(6, "r2", begun...)
		}
		if run, err := runs.End(t.Context(), "s", id); !errdefs.NotFound.Is(err) {
			t.Errorf("%q: %+v %v", id, run, err)
		}
		if run := runs.Of("s"); run != nil {
			<-run.Done()
		}
		log, err := journal.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		if st := log.State(); st.Status == "canceled" {
			t.Errorf("%q: the later run is %s", id, st.Status)
		}
		runs.Close(t.Context())
	}
}

// lingering is an observer that delays the return of a run whose end is recorded.
type lingering struct {
	agent.BaseObserver
	until chan struct{}
}

func (l lingering) OnRunEnd(context.Context, agent.RunInfo, *agent.Result) { <-l.until }

func TestRuns_StartAfterARecordedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := loop.New(loop.Config{Model: scripted.New(scripted.Turn{Text: "One."}, scripted.Turn{Text: "Two."})})
		if err != nil {
			t.Fatal(err)
		}
		l := lingering{until: make(chan struct{})}
		a := serve.Of(agent.Agent{ID: "a", Observers: []agent.Observer{l}}, e, journal.Memory())
		runs := live.New(a, nil, 10, slog.New(slog.DiscardHandler))
		if _, err := runs.Start(t.Context(), named("s", "one")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the run's end is recorded and its observer blocks
		var second *live.Run
		var wg sync.WaitGroup
		wg.Go(func() { second, err = runs.Start(t.Context(), named("s", "two")) })
		synctest.Wait()
		if second != nil || err != nil {
			t.Fatalf("the second run did not wait for the first to return: %v, %v", second, err)
		}
		close(l.until)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		<-second.Done()
		if res, err := second.Result(); err != nil || res.Text() != "Two." {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
