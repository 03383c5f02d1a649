package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// How a driver says that it is alive: for so long, renewed so often. Whoever comes after a crash waits no longer than that, and not at
// all where the store can tell that the process is gone.
const (
	leaseFor   = 10 * time.Second
	renewEvery = 3 * time.Second
	askEvery   = 100 * time.Millisecond // when waiting for another driver's lease to end
)

// lease keeps other live drivers out of the session. That one that is overtaken all the same can do no harm is the journal's promise.
type lease struct {
	store   journal.Store
	session string
	owner   string
	stop    chan struct{}
	wg      sync.WaitGroup
}

// take leases the session and keeps it leased until release. While another driver has it, it waits, or fails with Conflict. It waits in any case for the lease of
// one who may be gone, until that ends, or is renewed.
func (l *lease) take(ctx context.Context, wait bool, waiting func(why error)) error {
	var other doubt
	for told := false; ; told = true {
		err := l.store.Lease(ctx, l.session, l.owner, time.Now().Add(leaseFor))
		switch {
		case err == nil:
			l.stop = make(chan struct{})
			l.wg.Go(l.renew)
			return nil
		case !errdefs.Conflict.Is(err):
			return err
		case !wait && !other.lasts(err):
			return errdefs.Conflict.Errorf("agent: session %s is being driven by somebody else: wait until that is over (agent.WithWait, --wait), or end it: %w", l.session, err)
		}
		if !told {
			waiting(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askEvery):
		}
	}
}

// doubt is about a driver who may be gone.
type doubt struct {
	owner string
	end   time.Time // of the lease
}

// lasts reports whether he may be gone still: nothing says that he renewed his lease.
func (d *doubt) lasts(err error) bool {
	var held *journal.Leased
	if !errors.As(err, &held) {
		return false
	}
	end := time.Now().Add(held.Left)
	if d.owner == "" {
		d.owner, d.end = held.Owner, end
	}
	return d.owner == held.Owner && end.Before(d.end.Add(renewEvery/2)) // clocks and answers differ by less
}

func (l *lease) renew() {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			// A renewal that fails ends in a takeover at worst, and then the fence holds.
			l.say(time.Now().Add(leaseFor))
		}
	}
}

// release gives the session up, if it was taken.
func (l *lease) release() {
	if l.stop == nil {
		return
	}
	close(l.stop)
	l.wg.Wait()
	l.stop = nil
	l.say(time.Time{}) // else it runs out by itself
}

// say tells the store until when the driver is alive. A store that does not answer keeps nobody.
func (l *lease) say(until time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), renewEvery)
	defer cancel()
	_ = l.store.Lease(ctx, l.session, l.owner, until)
}

// own leases the session for the turn. A store that nobody else has needs no lease.
func (t *turn) own(ctx context.Context) error {
	if t.private || t.lease.stop != nil {
		return nil
	}
	if t.relay == nil {
		t.lease.owner = t.driver() // those who do the run's effects elsewhere lease the session, too, as the same
	}
	return t.take(ctx, t.lease, t.info.ContextID, t.info.RunID)
}

// take leases a session, and tells who listens when it has to wait.
func (c *config) take(ctx context.Context, l *lease, session, run string) error {
	return l.take(ctx, c.wait, func(why error) {
		if !engine.Listening(c.host) {
			return
		}
		e := event.Event{Entry: journal.Entry{Session: session, Run: run}, Delta: event.Warning, ParentRun: c.parent, Text: "waiting for the session: another process drives it"}
		engine.Publish(ctx, c.host, e)
		e.Delta, e.Text = event.Waiting, "the session"
		if held := (*journal.Leased)(nil); errors.As(why, &held) && !c.wait { // else he may renew it
			e.Wait = held.Left
		}
		engine.Publish(ctx, c.host, e)
	})
}
