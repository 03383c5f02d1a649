package cloud

import (
	"context"
	"sync"
	"time"
)

// margin is how long before its end a token is not used any more: it has to arrive, and clocks differ.
const margin = time.Minute

// kept is a value that is fetched when it is needed, and kept for as long as it is good. One fetch is under way at a time, on the context of one of those who wait; what it comes to is
// everybody's who waited while it began, an error too. Where it was cancelled, the next one fetches. Safe for concurrent use.
type kept[T any] struct {
	fetch func(ctx context.Context) (v T, until time.Time, err error)
	turn  chan struct{}

	mu    sync.Mutex
	begun int // fetches
	done  int // the number of the last one that came to something; it is also the value's
	value T
	until time.Time
	err   error
}

func keep[T any](fetch func(ctx context.Context) (v T, until time.Time, err error)) *kept[T] {
	return &kept[T]{fetch: fetch, turn: make(chan struct{}, 1)}
}

// get gives the value; and its number, which is not refused, if it was fetched for an earlier call, else 0.
func (k *kept[T]) get(ctx context.Context, refused int) (v T, number int, err error) {
	k.mu.Lock()
	if k.good(refused) {
		defer k.mu.Unlock()
		return k.value, k.done, nil
	}
	arrived := k.begun
	k.mu.Unlock()
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return v, 0, ctx.Err()
	}
	defer func() { <-k.turn }()
	if err := ctx.Err(); err != nil {
		return v, 0, err
	}
	k.mu.Lock()
	if k.done > arrived || k.good(refused) {
		defer k.mu.Unlock()
		return k.value, 0, k.err
	}
	k.begun++
	begun := k.begun
	k.mu.Unlock()
	v, until, err := k.fetch(ctx)
	if err != nil && ctx.Err() != nil { // it says nothing about the value
		return v, 0, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done, k.value, k.until, k.err = begun, v, until, err
	return v, 0, err
}

// good reports whether the value can be used.
func (k *kept[T]) good(refused int) bool {
	return k.done > 0 && k.err == nil && k.done != refused && time.Until(k.until) > margin
}
