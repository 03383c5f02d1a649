package journaltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

var ( // the suite's own tests wait less
	// soon is how long ten appends may take to be seen by followers that are woken. Those who have to look by themselves take twice as long.
	soon = 5 * time.Second
	// comes is how long a case waits for what has to come.
	comes = 20 * time.Second
)

// following is a follower at work in a goroutine of its own.
type following struct {
	session string
	entries chan journal.Entry
	err     error // once entries is closed
	last    int64
	cancel  context.CancelFunc
}

// follow follows a session until the test is over.
func follow(t *testing.T, s journal.Store, session string, after int64) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &following{session: session, entries: make(chan journal.Entry), last: after, cancel: cancel}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(f.entries)
		for e, err := range journal.Follow(ctx, s, session, after) {
			if err != nil {
				f.err = err
				return
			}
			select {
			case f.entries <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return f
}

// gets takes the next entries and checks what they say.
func (f *following) gets(t *testing.T, texts ...string) {
	t.Helper()
	for _, want := range texts {
		select {
		case e, ok := <-f.entries:
			if f.last++; !ok || e.Seq != f.last || textOf(e) != want {
				t.Fatalf("follower of %q: entry %d that says %q, error %v; want entry %d that says %q", f.session, e.Seq, textOf(e), f.err, f.last, want)
			}
		case <-time.After(comes):
			t.Fatalf("follower of %q: entry %d did not come in %v", f.session, f.last+1, comes)
		}
	}
}

// ends takes what there still is, waits for the end, and gives its error.
func (f *following) ends(t *testing.T) error {
	t.Helper()
	for end := time.After(comes); ; {
		select {
		case _, ok := <-f.entries:
			if !ok {
				return f.err
			}
		case <-end:
			t.Fatalf("follower of %q did not end in %v", f.session, comes)
		}
	}
}

// push appends at the end of a session that others append to, too.
func push(s journal.Store, session, text string) error {
	for n := int64(0); ; {
		err := s.Append(context.Background(), session, n, said(text))
		if !errdefs.Conflict.Is(err) {
			return err
		}
		for e, err := range s.Read(context.Background(), session, n) {
			if err != nil {
				return err
			}
			n = e.Seq
		}
	}
}

// settles waits until there are no more goroutines than there were.
func settles(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(comes / 2); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			all := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before there were %d:\n%s", runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
		}
	}
}

var follows = []check{
	{"what is on record comes first, then what gets there", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1", "2", "3")
		talk(t, s, "b", 0, "not this")
		whole, rest := follow(t, s, "a", 0), follow(t, s, "a", 2)
		whole.gets(t, "1", "2", "3")
		rest.gets(t, "3")
		talk(t, s, "a", 3, "4")
		talk(t, s, "b", 1, "nor this")
		talk(t, s, "a", 4, "5", "6")
		whole.gets(t, "4", "5", "6")
		rest.gets(t, "4", "5", "6")
	}},
	{"nothing is missed and nothing comes twice, whoever appends and however often a follower begins again", func(t *testing.T, s journal.Store) {
		const appenders, each, followers = 4, 75, 3
		var wg sync.WaitGroup
		for i := range appenders {
			wg.Go(func() {
				for n := range each {
					if err := push(s, "a", fmt.Sprint(i, ".", n)); err != nil {
						t.Errorf("append: %v", err)
						return
					}
				}
			})
		}
		got := make([][]journal.Entry, followers)
		ctx, cancel := context.WithTimeout(context.Background(), 3*comes)
		defer cancel()
		for i := range followers {
			wg.Go(func() { got[i] = again(ctx, t, s, "a", appenders*each, uint64(i)) })
		}
		wg.Wait()
		want := read(t, s, "a", 0)
		for _, entries := range got {
			same(t, "a", 0, entries, want)
		}
	}},
	{"an append wakes its followers", func(t *testing.T, s journal.Store) {
		if _, ok := s.(journal.Watcher); !ok {
			t.Skip("the store is no journal.Watcher")
		}
		talk(t, s, "a", 0, "0")
		one, two := follow(t, s, "a", 0), follow(t, s, "a", 1)
		one.gets(t, "0")
		begun := time.Now()
		for n := range int64(10) {
			text := fmt.Sprint(n + 1)
			talk(t, s, "a", n+1, text)
			one.gets(t, text)
			two.gets(t, text)
			if took := time.Since(begun); took > soon {
				t.Fatalf("%d appends took %v to be seen: nobody was woken", n+1, took)
			}
		}
	}},
	{"a session that isn't there yet is waited for", func(t *testing.T, s journal.Store) {
		f := follow(t, s, "later", 0)
		talk(t, s, "sooner", 0, "x")
		talk(t, s, "later", 0, "1", "2")
		f.gets(t, "1", "2")
	}},
	{"a fork is followed from what it shares on", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2", "3")
		early := follow(t, s, "f", 0)
		fork(t, s, "f", "p", 2, "mine")
		late := follow(t, s, "f", 1)
		talk(t, s, "p", 3, "the parent's")
		talk(t, s, "f", 4, "mine too")
		early.gets(t, "1", "2", "[session.created]", "mine", "mine too")
		late.gets(t, "2", "[session.created]", "mine", "mine too")
	}},
	{"a context that ends ends it, without an error", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		for _, session := range []string{"a", "none"} {
			f := follow(t, s, session, 0)
			if session == "a" {
				f.gets(t, "1")
			}
			f.cancel()
			if err := f.ends(t); err != nil {
				t.Errorf("%q: %v", session, err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for e, err := range journal.Follow(ctx, s, "a", 0) {
			t.Errorf("with a context that had ended: entry %d, %v", e.Seq, err)
		}
	}},
	{"a session that is deleted ends it with NotFound, whatever has its name then", func(t *testing.T, s journal.Store) {
		for _, anew := range [][]string{nil, {"x"}, {"x", "y"}, {"x", "y", "z"}} {
			talk(t, s, "a", 0, "1", "2")
			f := follow(t, s, "a", 0)
			f.gets(t, "1", "2")
			allowed(t, s.Delete(context.Background(), "a"), "delete")
			if anew != nil {
				talk(t, s, "a", 0, anew...)
			}
			refused(t, f.ends(t), errdefs.NotFound, fmt.Sprintf("followed, deleted, and then there were %d others", len(anew)))
			if anew != nil {
				allowed(t, s.Delete(context.Background(), "a"), "delete")
			}
		}
		talk(t, s, "short", 0, "1")
		refused(t, follow(t, s, "short", 2).ends(t), errdefs.NotFound, "a position that the session has not got to")
	}},
	{"followers that stop leave no goroutine", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1", "2", "3")
		read(t, s, "a", 0)
		before := runtime.NumGoroutine()
		for e, err := range journal.Follow(context.Background(), s, "a", 0) {
			if err != nil || e.Seq == 2 {
				allowed(t, err, "follow")
				break
			}
		}
		settles(t, before)
		var all []*following
		for range 5 {
			all = append(all, follow(t, s, "a", 0), follow(t, s, "b", 0))
		}
		for _, f := range all {
			if f.session == "a" {
				f.gets(t, "1", "2")
			}
			f.cancel()
			allowed(t, f.ends(t), "follow")
		}
		settles(t, before)
	}},
}

// again follows a session up to an entry, and stops and begins anew at random.
func again(ctx context.Context, t *testing.T, s journal.Store, session string, upTo int64, seed uint64) (entries []journal.Entry) {
	chance := rand.New(rand.NewPCG(7, seed)) //nolint:gosec // it decides nothing but where to stop
	for last := int64(0); last < upTo && ctx.Err() == nil; {
		few, leave := context.WithCancel(ctx)
		for e, err := range journal.Follow(few, s, session, last) {
			if err != nil {
				t.Errorf("follow after %d: %v", last, err)
				leave()
				return entries
			}
			entries, last = append(entries, e), e.Seq
			if last == upTo || chance.IntN(20) == 0 {
				break
			}
			if chance.IntN(20) == 0 {
				leave()
			}
		}
		leave()
	}
	return entries
}
