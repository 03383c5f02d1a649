package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// draw is a number from 0 to below n, by chance.
func draw(n int) int { return rand.IntN(n) } //nolint:gosec // a load needs no secrets

// share reports true in so many of 1 cases, by chance.
func share(of float64) bool { return draw(10000) < int(10000*of) }

// pause waits for a time from least to below most, by chance, or until ctx ends.
func pause(ctx context.Context, least, most time.Duration) {
	t := time.NewTimer(least + rand.N(most-least)) //nolint:gosec // as above
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
