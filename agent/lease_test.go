package agent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// driven is a session in which a run goes on until hold is closed.
func driven(t *testing.T, store journal.Store) (hold chan struct{}, over chan struct{}) {
	hold, over = make(chan struct{}), make(chan struct{})
	busy := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		<-hold
		return b, nil
	})
	go func() {
		defer close(over)
		if _, err := agent.Run(t.Context(), agent.Agent{ID: "first"}, busy, asking("s", "go"), agent.WithJournal(store)); err != nil {
			t.Error(err)
		}
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
		<-over
		if res, err := agent.Run(t.Context(), agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store)); err != nil || res.Status != agent.StatusCompleted {
			t.Error("when it is over:", res, err)
		}
	})
}

// listening hears warnings.
type listening struct {
	engine.NoopHost
	warnings []string
}

func (l *listening) Listening() bool { return true }

func (l *listening) Publish(_ context.Context, e event.Event) error {
	if e.Delta == event.Warning {
		l.warnings = append(l.warnings, e.Text)
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
		if err != nil || res.Status != agent.StatusCompleted || time.Since(began) < 20*time.Second || len(host.warnings) != 1 {
			t.Error(res, err, time.Since(began), host.warnings)
		}
		<-over

		hold, over = driven(t, store)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := agent.Run(ctx, agent.Agent{ID: "second"}, saying(t, "hi"), asking("s", "me"), agent.WithJournal(store), agent.WithWait()); !errdefs.Canceled(err) {
			t.Error(err)
		}
		close(hold)
		<-over
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
		hold := make(chan struct{})
		busy := engine.Func(func(_ context.Context, run engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
			<-hold
			return b, nil
		})
		over := make(chan error)
		go func() {
			_, err := agent.Run(t.Context(), agent.Agent{ID: "first"}, busy, asking("s", "go"), agent.WithJournal(&frozen{Store: store}))
			over <- err
		}()
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
