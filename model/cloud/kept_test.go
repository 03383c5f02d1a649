package cloud

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fetcher counts fetches, each of which takes a second.
type fetcher struct {
	mu    sync.Mutex
	n     int
	lasts time.Duration
	err   error
}

func (f *fetcher) fetch(ctx context.Context) (int, time.Time, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
	if f.err != nil {
		return 0, time.Time{}, f.err
	}
	until := time.Time{}
	if f.lasts > 0 {
		until = time.Now().Add(f.lasts)
	}
	return n, until, nil
}

func TestATokenIsKeptUntilAMinuteBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fetcher{lasts: time.Hour}
		k := keep(f.fetch)
		want := func(value, fetches int) {
			t.Helper()
			if v, _, err := k.get(t.Context(), 0); v != value || err != nil || f.n != fetches {
				t.Errorf("%d %v after %d fetches", v, err, f.n)
			}
		}
		want(1, 1)
		time.Sleep(time.Hour - time.Minute - time.Second)
		want(1, 1)
		time.Sleep(time.Second)
		want(2, 2)
	})
}

func TestManyWhoWaitFetchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []*fetcher{{lasts: time.Hour}, {}, {err: errors.New("refused")}} {
			k := keep(f.fetch)
			began := time.Now()
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					v, _, err := k.get(t.Context(), 0)
					if !errors.Is(err, f.err) || f.err == nil && v == 0 {
						t.Error(v, err)
					}
				})
			}
			all.Wait()
			// Who came after the first fetch had begun, has to have another where nothing is kept.
			if f.n > 2 || f.lasts > 0 && f.n != 1 || time.Since(began) > 2*time.Second {
				t.Errorf("%d fetches in %v", f.n, time.Since(began))
			}
		}
	})
}

func TestWhoIsCancelledStopsWaitingAndHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fetcher{lasts: time.Hour}
		k := keep(f.fetch)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { // it fetches
			if _, _, err := k.get(ctx, 0); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		all.Go(func() { // it waits
			if _, _, err := k.get(ctx, 0); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		all.Go(func() { // it waits, too, and then fetches
			if v, _, err := k.get(t.Context(), 0); v != 2 || err != nil {
				t.Error(v, err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		if f.n != 2 {
			t.Error(f.n)
		}
	})
}

func TestWhatWasRefusedIsFetchedAnewByOneOfThoseItWasRefusedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fetcher{lasts: time.Hour}
		k := keep(f.fetch)
		if _, n, _ := k.get(t.Context(), 0); n != 0 {
			t.Error("a value that was just fetched has the number of one that was kept")
		}
		_, n, _ := k.get(t.Context(), 0)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if v, _, err := k.get(t.Context(), n); v != 2 || err != nil {
					t.Error(v, err)
				}
			})
		}
		all.Wait()
		if v, _, err := k.get(t.Context(), n); v != 2 || err != nil || f.n != 2 {
			t.Error(v, err, f.n)
		}
	})
}
