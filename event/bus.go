package event

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Bus hands events to everybody who subscribed. The zero value works. It has no goroutine of its own. Safe for concurrent use, also from predicates and
// from inside of a reader's loop. Don't copy it.
type Bus struct {
	subs   atomic.Pointer[[]*Subscription] // replaced and never changed, so that publishing holds no lock; those that block stand last
	mu     sync.Mutex                      // whoever replaces it
	closed bool
}

// Publish hands e to each subscription that wants it, in the caller's goroutine, and returns when all have it or lost it. Events that are published
// one after the other are read in that order; of those published at the same time each subscription has an order of its own. It waits only for
// subscriptions that Block, after all others have the event, and not longer than ctx lasts; where there is room, an ended ctx is no matter.
// After Close it does nothing.
func (b *Bus) Publish(ctx context.Context, e Event) {
	for _, s := range b.list() {
		if s.over() {
			b.sweep()
		} else if s.wants(e) {
			s.put(ctx, &e)
		}
	}
}

// Listening reports whether there is a subscription, whatever it wants. Where there is none, no event need be built.
func (b *Bus) Listening() bool {
	list := b.list()
	for _, s := range list {
		if !s.over() {
			return true
		}
	}
	if len(list) > 0 {
		b.sweep()
	}
	return false
}

// Subscribe begins to collect the events that match; nil is all. The subscription lasts until ctx ends, the bus or it itself is closed, or
// its reader leaves the loop; one of these has to come, and until then it keeps the bus listening. match is called by those who publish, without
// a lock and possibly by several at once, and should be quick; when it panics, it did not match.
func (b *Bus) Subscribe(ctx context.Context, match func(Event) bool, p Policy) *Subscription {
	if p.Buffer < 1 {
		p.Buffer = DefaultBuffer
	}
	s := &Subscription{
		bus: b, ctx: ctx, match: match, policy: p,
		ready: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end(true)
		return s
	}
	list := b.live()
	at := slices.IndexFunc(list, (*Subscription).blocks)
	if at < 0 || s.blocks() {
		at = len(list)
	}
	list = slices.Insert(list, at, s)
	b.subs.Store(&list)
	return s
}

// Close ends all subscriptions: what they have is still read, then their loops end. Whoever waits in Publish goes on. Later subscriptions have ended
// from the beginning. Closing again does nothing.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.list() {
		s.end(false)
	}
	b.subs.Store(nil)
}

func (b *Bus) list() []*Subscription {
	if l := b.subs.Load(); l != nil {
		return *l
	}
	return nil
}

// sweep forgets the subscriptions that are over. Those whose context ended are found by whoever publishes, subscribes or asks next: to
// watch each context would take a goroutine or a callback.
func (b *Bus) sweep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.live()
	b.subs.Store(&list)
}

// live is a fresh list of the subscriptions that are not over. b.mu is held.
func (b *Bus) live() (list []*Subscription) {
	for _, s := range b.list() {
		if s.over() {
			s.end(true)
		} else {
			list = append(list, s)
		}
	}
	return list
}
