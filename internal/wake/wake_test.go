package wake_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/internal/wake"
)

func rung(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestABellWakesThoseWhoWatch(t *testing.T) {
	var b wake.Bell
	b.Ring("a") // nobody
	a1, stop1 := b.Watch("a")
	a2, stop2 := b.Watch("a")
	other, stop := b.Watch("b")
	defer stop()
	defer stop2()
	for range 3 { // nobody looks meanwhile, and nobody waits for them
		b.Ring("a")
	}
	if !rung(a1) || rung(a1) || !rung(a2) || rung(other) {
		t.Error("a ring is for all who watch the session, once, and for nobody else")
	}
	stop1()
	stop1()
	b.Ring("a")
	if rung(a1) || !rung(a2) {
		t.Error("who stopped is not woken, and the others are")
	}
	b.RingAll()
	if rung(a1) || !rung(a2) || !rung(other) {
		t.Error("all are woken who watch")
	}
	if got := b.Sessions(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("watched: %v", got)
	}
}

func TestItListensWhileSomebodyWatches(t *testing.T) {
	var listening, began atomic.Int64
	var b wake.Bell
	b.Listen = func(ctx context.Context) {
		began.Add(1)
		listening.Add(1)
		<-ctx.Done()
		listening.Add(-1)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				_, stop := b.Watch("a")
				stop()
			}
		})
	}
	wg.Wait()
	if n := listening.Load(); n != 0 {
		t.Errorf("%d listen, and nobody watches", n)
	}
	before := began.Load()
	_, stop1 := b.Watch("a")
	woken, stop2 := b.Watch("b")
	stop1()
	b.Close()
	if n := listening.Load(); n != 0 || began.Load() != before+1 {
		t.Errorf("%d listen on a closed one, after %d began for two who watch", n, began.Load()-before)
	}
	if !rung(woken) {
		t.Error("nobody was told that it was closed")
	}
	stop2()
	_, stop := b.Watch("c")
	stop()
	if began.Load() != before+1 {
		t.Error("a closed one listens again")
	}
}
