package a2aserver

import (
	"context"
	"testing"
	"testing/synctest"
)

// A host that doesn't answer holds up what is for itself, and when nobody waits for it any more it is forgotten.
func TestASilentHostHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(8, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go func() {
				give, err := s.take(ctx, "silent.example")
				if err == nil {
					<-ctx.Done()
					give()
				}
			}()
		}
		synctest.Wait()
		if n := len(s.all); n != 2 {
			t.Errorf("the silent host has %d", n)
		}
		give, err := s.take(ctx, "good.example")
		if err != nil {
			t.Fatal(err)
		}
		give()
		cancel()
		synctest.Wait()
		if len(s.of) != 0 || len(s.all) != 0 {
			t.Errorf("%d hosts, %d taken", len(s.of), len(s.all))
		}
	})
}
