package temporal

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/journal"
)

// leases say of sessions whose effects are done here that somebody is at work, so that a prompt in another process waits, and does not close the run. They are a courtesy: what keeps a run from harm that was overtaken is the
// journal's fence. All who work for a run lease its session as one.
type leases struct {
	store journal.Store
	mu    sync.Mutex
	said  map[string]time.Time // when it was leased last
}

const (
	leaseFor   = 10 * time.Second
	leaseEvery = 3 * time.Second
)

// say leases a session, unless that was done a moment ago.
func (l *leases) say(ctx context.Context, session, driver string) {
	now := time.Now()
	l.mu.Lock()
	if l.said == nil {
		l.said = map[string]time.Time{}
	}
	if now.Sub(l.said[session]) < leaseEvery {
		l.mu.Unlock()
		return
	}
	for s, at := range l.said { // those that nobody works at any more
		if now.Sub(at) > leaseFor {
			delete(l.said, s)
		}
	}
	l.said[session] = now
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseEvery) // the effect may be over before it is said
	defer cancel()
	_ = l.store.Lease(ctx, session, driver, now.Add(leaseFor))
}

// end gives a lease up: the path is at its end, and nobody is at work on it.
func (l *leases) end(ctx context.Context, session, driver string) {
	l.mu.Lock()
	delete(l.said, session)
	l.mu.Unlock()
	_ = l.store.Lease(ctx, session, driver, time.Time{})
}
