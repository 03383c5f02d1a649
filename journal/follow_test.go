package journal_test

import (
	"context"
	"iter"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/journaltest"
)

// plain is a store that is no Watcher.
type plain struct{ journal.Store }

func TestAStoreThatTellsNobodyIsFollowedTheSame(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journal.Store { return plain{journal.Memory()} })
}

// silent is a Watcher that wakes nobody.
type silent struct {
	journal.Store
	looks *[]time.Duration
}

func (silent) Watch(context.Context, string) (<-chan struct{}, func()) { return nil, func() {} }

func (s silent) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	*s.looks = append(*s.looks, time.Since(epoch))
	return s.Store.Read(ctx, session, after)
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when the clock of a bubble begins

func TestFollowLooksByItselfAsOftenAsItSays(t *testing.T) {
	for name, c := range map[string]struct {
		store func(silent) journal.Store
		want  []time.Duration // since the beginning; an entry comes after 20 s
	}{
		"a store that tells nobody": {func(s silent) journal.Store { return struct{ journal.Store }{s} }, every(250*time.Millisecond, 21*time.Second)},
		"one whose hints are lost": {
			func(s silent) journal.Store { return s },
			[]time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 25 * time.Second, 26 * time.Second, 28 * time.Second, 32 * time.Second},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := silent{journal.Memory(), new([]time.Duration)}
			must(t, s.Append(ctx, "s", 0, journal.Entry{Data: tick}))
			time.AfterFunc(20*time.Second, func() { must(t, s.Append(ctx, "s", 1, journal.Entry{Data: tick})) })
			limited, cancel := context.WithTimeout(ctx, c.want[len(c.want)-1]+time.Millisecond)
			defer cancel()
			last := int64(0)
			for e, err := range journal.Follow(limited, c.store(s), "s", 0) {
				must(t, err)
				last = e.Seq
			}
			if got := *s.looks; last != 2 || len(got) != len(c.want) {
				t.Fatalf("%s: to entry %d, it looked at %v, want %v", name, last, got, c.want)
			}
			for i, got := range *s.looks {
				if got != c.want[i] {
					t.Errorf("%s: look %d at %v, want %v", name, i, got, c.want[i])
				}
			}
		})
	}
}

func every(d, until time.Duration) (all []time.Duration) {
	for at := time.Duration(0); at <= until; at += d {
		all = append(all, at)
	}
	return all
}

// A follower in memory is woken without any time going by.
func TestAFollowerInMemoryIsWokenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := journal.Memory()
		begun, n := time.Now(), int64(0)
		must(t, s.Append(ctx, "s", 0, journal.Entry{Data: tick}))
		for e, err := range journal.Follow(ctx, s, "s", 0) {
			must(t, err)
			if n = e.Seq; n == 100 {
				break
			}
			go func() { must(t, s.Append(ctx, "s", n, journal.Entry{Data: tick})) }()
			synctest.Wait()
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// gapped loses an entry.
type gapped struct{ journal.Store }

func (s gapped) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, session, after) {
			if e.Seq != 2 && !yield(e, err) {
				return
			}
		}
	}
}

func TestFollowTellsOfErrorsAndEndsWithThem(t *testing.T) {
	s := journal.Memory()
	must(t, s.Append(ctx, "s", 0, journal.Entry{Data: tick}, journal.Entry{Data: tick}, journal.Entry{Data: tick}))
	for name, c := range map[string]struct {
		store journal.Store
		class *errdefs.Class
		seen  int
	}{
		"an entry is missing":  {gapped{s}, errdefs.Internal, 1},
		"it can't be read":     {unreadable{s}, errdefs.NotAvailable, 0},
		"it is not that there": {s, errdefs.NotFound, 0},
	} {
		after := int64(0)
		if c.class == errdefs.NotFound {
			after = 4
		}
		seen, failed := 0, 0
		for _, err := range journal.Follow(ctx, c.store, "s", after) {
			switch {
			case err == nil:
				seen++
			case !c.class.Is(err):
				t.Errorf("%s: %v", name, err)
				fallthrough
			default:
				failed++
			}
		}
		if seen != c.seen || failed != 1 {
			t.Errorf("%s: %d entries and %d errors", name, seen, failed)
		}
	}
}

type unreadable struct{ journal.Store }

func (unreadable) Read(context.Context, string, int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		yield(journal.Entry{}, errdefs.NotAvailable.Errorf("gone"))
	}
}

// What an append takes when nobody follows, and when somebody follows another session, is the same.
func TestFollowingCostsAppendsNothing(t *testing.T) {
	takes := func(s journal.Store) float64 {
		least, seq := math.Inf(1), int64(0)
		for range 200 {
			least = min(least, testing.AllocsPerRun(1, func() {
				must(t, s.Append(ctx, "s", seq, journal.Entry{Data: tick}))
				seq++
			}))
		}
		return least
	}
	alone := journal.Memory()
	followed := journal.Memory()
	for _, session := range []string{"s", "other"} {
		_, stop := followed.(journal.Watcher).Watch(ctx, session)
		defer stop()
	}
	const most = 1 // the slice of entries
	if a, f := takes(alone), takes(followed); a > most || f > most {
		t.Errorf("an append takes %.0f allocations, and %.0f when it is followed; %d was enough", a, f, most)
	}
}
