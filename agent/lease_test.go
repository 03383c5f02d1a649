package agent_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// driven is a session in which a run goes on until hold is closed.
func driven(t *testing.T, store journal.Store) (hold chan struct{}, over chan error) {
	hold, over = make(chan struct{}), make(chan error)
	busy := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		<-hold
		return b, nil
	})
	go func() {
		_, err := agent.Run(t.Context(), agent.Agent{ID: "first"}, busy, asking("s", "go"), agent.WithJournal(store))
		over <- err
	}()
	return hold, over
}

func TestASessionThatALiveDriverHasIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.Memory()
		hold, over := driven(t, store)
		time.Sleep(time.Minute) // of the bubble's clock: much longer than a lease that nobody renews
		synctest.Wait()
		_, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store))
		if !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), "wait until that is over") {
			t.Error(err)
		}
		if _, err := agent.Resume(t.Context(), agent.Agent{ID: "third"}, saying(t, "hi"), "s", agent.WithJournal(store)); !errdefs.Conflict.Is(err) && !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
		close(hold)
		if err := <-over; err != nil {
			t.Error(err)
		}
		if res, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store)); err != nil || res.Status != agent.StatusCompleted {
			t.Error("when it is over:", res, err)
		}
	})
}

// listening hears warnings.
type listening struct {
	engine.NoopHost
	warnings []string
	waits    []time.Duration // what is waited for: how long at most
}

func (l *listening) Listening() bool { return true }

func (l *listening) Publish(_ context.Context, e event.Event) error {
	if e.Delta == event.Warning {
		l.warnings = append(l.warnings, e.Text)
	}
	if e.Delta == event.Waiting && e.Text == "the session" {
		l.waits = append(l.waits, e.Wait)
	}
	return nil
}

func TestWhoIsAskedToWaitsAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.Memory()
		hold, over := driven(t, store)
		synctest.Wait()
		time.AfterFunc(20*time.Second, func() { close(hold) })
		host := &listening{}
		began := time.Now()
		res, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store), agent.WithWait(), agent.WithEngineHost(host))
		if err != nil || res.Status != agent.StatusCompleted || time.Since(began) < 20*time.Second || len(host.warnings) != 1 || len(host.waits) != 1 || host.waits[0] != 0 {
			t.Error(res, err, time.Since(began), host.warnings, host.waits)
		}
		if err := <-over; err != nil {
			t.Error(err)
		}

		hold, over = driven(t, store)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := agent.Run(ctx, agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store), agent.WithWait()); !errdefs.Canceled(err) {
			t.Error(err)
		}
		close(hold)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// frozen is a store whose renewals do not arrive: its driver seems dead after a while.
type frozen struct {
	journal.Store
	taken bool
}

func (f *frozen) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if f.taken {
		return errdefs.NotAvailable.Errorf("cut off")
	}
	f.taken = true
	return f.Store.Lease(ctx, session, owner, until)
}

func TestADriverThatSeemsDeadIsTakenOverAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.Memory()
		hold, over := driven(t, &frozen{Store: store})
		synctest.Wait()
		began := time.Now()
		res, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store), agent.WithWait())
		if waited := time.Since(began); err != nil || res.Status != agent.StatusCompleted || waited < 9*time.Second || waited > 11*time.Second {
			t.Error(res, err, waited)
		}
		close(hold)
		if err := <-over; !errdefs.Conflict.Is(err) {
			t.Error("it was overtaken, and has to be told:", err)
		}
	})
}

// blind is a store that can't tell whether a driver's process lives.
type blind struct {
	journal.Store
	mu    sync.Mutex
	until time.Time
}

func (b *blind) Lease(ctx context.Context, session, owner string, until time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.Store.Lease(ctx, session, owner, until)
	if err == nil {
		b.until = until
	} else if errdefs.Conflict.Is(err) {
		err = errdefs.Conflict.Errorf("%w: %w", err, &journal.Leased{Owner: "first", Left: time.Until(b.until)})
	}
	return err
}

func TestEveryRunWaitsForTheLeaseOfOneWhoMayBeGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &blind{Store: journal.Memory()}
		hold, over := driven(t, &frozen{Store: store})
		synctest.Wait()
		time.Sleep(2 * time.Second)
		host := &listening{}
		began := time.Now()
		res, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store), agent.WithEngineHost(host))
		if waited := time.Since(began); err != nil || res.Status != agent.StatusCompleted || waited < 7*time.Second || waited > 9*time.Second || len(host.warnings) != 2 || !strings.Contains(host.warnings[1], "closes the unfinished run") || len(host.waits) != 1 || host.waits[0] != 8*time.Second {
			t.Error(res, err, waited, host.warnings, host.waits)
		}
		close(hold)
		if err := <-over; !errdefs.Conflict.Is(err) {
			t.Error("it was overtaken:", err)
		}
	})
}

func TestADriverWhoRenewsHisLeaseIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &blind{Store: journal.Memory()}
		hold, over := driven(t, store)
		synctest.Wait()
		began := time.Now()
		_, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store))
		if waited := time.Since(began); !errdefs.Conflict.Is(err) || waited > 4*time.Second {
			t.Error(err, waited)
		}
		close(hold)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// A resume that waited for the one who finished the run has nothing to do, and leaves no trace.
func TestAResumeThatComesTooLateWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.Memory()
		hold, over := driven(t, store)
		synctest.Wait()
		late := make(chan error)
		go func() {
			_, err := agent.Resume(t.Context(), agent.Agent{ID: "first"}, saying(t, "hi"), "s", agent.WithJournal(store), agent.WithWait())
			late <- err
		}()
		time.Sleep(time.Second)
		close(hold)
		if err := <-over; err != nil {
			t.Error(err)
		}
		if err := <-late; !errdefs.NotFound.Is(err) && !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
		if es := read(t, store, "s"); es[len(es)-1].Data.Kind() != "run.finished" {
			t.Errorf("%v", kinds(es))
		}
	})
}

func TestARunIsResumedByItsOwnAgent(t *testing.T) {
	store := journal.Memory()
	ask := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, new(works).tool("pay", tool.RequiresApproval))
	run(t, agent.Agent{ID: "payer"}, ask, asking("s", "go"), agent.WithJournal(store))
	n := len(read(t, store, "s"))
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "pawl"}, saying(t, "hi"), "s", agent.WithJournal(store)); !errdefs.Conflict.Is(err) || !strings.Contains(err.Error(), `"payer"`) || len(read(t, store, "s")) != n {
		t.Error(err)
	}
}

func TestAPromptThatClosesAnUnfinishedRunSaysSo(t *testing.T) {
	store := journal.Memory()
	ask := looping(t, script{message.Assistant("", call("c1", "pay", `{}`), call("c2", "pay", `{}`)), message.Assistant("end")}, new(works).tool("pay", tool.RequiresApproval))
	run(t, agent.Agent{}, ask, agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
	for _, want := range []string{"this prompt closes the unfinished run r, which waited for: c1, c2", ""} {
		host := &listening{}
		run(t, agent.Agent{}, saying(t, "", "", "ok", "ok"), asking("s", "never mind"), agent.WithJournal(store), agent.WithEngineHost(host))
		if got := strings.Join(host.warnings, "; "); got != want {
			t.Errorf("%q", got)
		}
	}
}

// choosy is an engine that goes on from checkpoints of its own version only.
type choosy struct{ describes }

func (choosy) CanResume(cp engine.Checkpoint) error {
	if cp.SpecVersion != "2" {
		return errdefs.NotAvailable.Errorf("choosy: the checkpoint is of version %q, this is 2", cp.SpecVersion)
	}
	return nil
}

func TestAnEngineThatCannotGoOnIsNotAskedTo(t *testing.T) {
	store := journal.Memory()
	ask := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, new(works).tool("pay", tool.RequiresApproval))
	run(t, agent.Agent{}, ask, agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
	n := len(read(t, store, "s"))
	eng := choosy{describes{Engine: ask, can: engine.CapabilitiesOf(ask)}}
	for version, class := range map[string]*errdefs.Class{"1": errdefs.NotAvailable, "2": nil} {
		cp := &engine.Checkpoint{ExecID: "r", Session: "s", SpecVersion: version}
		_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{}, agent.WithJournal(store), agent.WithResumeFrom(cp))
		if class == nil && err != nil || class != nil && (!class.Is(err) || len(read(t, store, "s")) < n) {
			t.Errorf("version %s: %v", version, err)
		}
	}
}
