package engine

import (
	"context"
	"errors"
	"time"
)

// TimerKey is the key under which the context of a path that is on a clock of its own, in a workflow, has a [Timer].
type TimerKey struct{}

// Timer gives a context that ends after a time, by the clock of the path that it is of, and says whether it has ended so.
type Timer func(d time.Duration) (ctx context.Context, cancel func(), over func() bool)

// Within limits the time of a path, by the path's own clock: an engine uses it in place of context.WithTimeout. over reports whether the time was up.
func Within(ctx context.Context, d time.Duration) (_ context.Context, cancel func(), over func() bool) {
	if t, ok := ctx.Value(TimerKey{}).(Timer); ok {
		return t(d)
	}
	outer := ctx
	ctx, stop := context.WithTimeoutCause(ctx, d, errTime)
	return ctx, stop, func() bool { return outer.Err() == nil && errors.Is(context.Cause(ctx), errTime) }
}

var errTime = errors.New("engine: the time of the path is up")

// Pausing is an effect that waits for a moment and does nothing else: a place that has clocks of its own waits there before it does the effect.
type Pausing interface{ PausesUntil() time.Time }
