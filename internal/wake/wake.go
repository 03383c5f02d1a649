// Package wake is how a store wakes those who follow its sessions.
package wake

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Bell wakes those who watch sessions. Ringing costs nothing while nobody does. The zero Bell is ready. Safe for concurrent use.
type Bell struct {
	// Listen, if there is one, rings for what others than this store do. It runs in a goroutine of its own from the first watcher's coming to the
	// last one's going, or to Close, when its context ends.
	Listen func(ctx context.Context)

	watched atomic.Int64 // watchers
	mu      sync.Mutex
	by      map[string][]chan struct{} // watchers by session
	end     func()                     // ends Listen and waits for it; nil while it does not run
	closed  bool
}

// Watch gives a channel that has something in it once the session was rung for, until stop is called, which may be done again.
func (b *Bell) Watch(session string) (woken <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by = map[string][]chan struct{}{}
	}
	b.by[session] = append(b.by[session], c)
	b.watched.Add(1)
	if b.Listen != nil && b.end == nil && !b.closed {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); b.Listen(ctx) }()
		b.end = func() { cancel(); <-done }
	}
	return c, sync.OnceFunc(func() { b.leave(session, c) })
}

func (b *Bell) leave(session string, c chan struct{}) {
	b.mu.Lock()
	if b.by[session] = slices.DeleteFunc(b.by[session], func(o chan struct{}) bool { return o == c }); len(b.by[session]) == 0 {
		delete(b.by, session)
	}
	end := func() {}
	if b.watched.Add(-1) == 0 && b.end != nil {
		end, b.end = b.end, nil
	}
	b.mu.Unlock()
	end()
}

// Ring wakes those who watch a session. It waits for nobody: who has not looked since the last time is woken once.
func (b *Bell) Ring(session string) {
	if b.watched.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ring(b.by[session])
}

// RingAll wakes everybody.
func (b *Bell) RingAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, all := range b.by {
		ring(all)
	}
}

func ring(all []chan struct{}) {
	for _, c := range all {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Sessions are those that are watched, in their order.
func (b *Bell) Sessions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]string, 0, len(b.by))
	for s := range b.by {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// Close ends Listen for good, and then wakes everybody: the store is closed, and tells them.
func (b *Bell) Close() {
	b.mu.Lock()
	end := b.end
	b.end, b.closed = nil, true
	b.mu.Unlock()
	if end != nil {
		end()
	}
	b.RingAll()
}
