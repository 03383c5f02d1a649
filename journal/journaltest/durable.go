package journaltest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// RunDurable checks that a store outlives its process and is shared by several. open opens the store that lives in dir (make dir the
// name of a schema when it is a server's); it is called several times for one dir, also while an earlier store is open, as another
// process would. Stores must have a Close, which may be called twice.
func RunDurable(t *testing.T, open func(t *testing.T, dir string) journal.Store) {
	t.Helper()
	for _, c := range durables {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.run(t, func() journal.Store {
				t.Helper()
				s := open(t, dir)
				if _, ok := s.(io.Closer); !ok {
					t.Fatalf("%T has no Close", s)
				}
				t.Cleanup(func() { shut(t, s) })
				return s
			})
		})
	}
}

var durables = []struct {
	name string
	run  func(t *testing.T, open func() journal.Store)
}{
	{"everything is there after closing and opening", func(t *testing.T, open func() journal.Store) {
		want := Samples()
		s := open()
		add(t, s, "a", 0, want...)
		talk(t, s, "p", 0, "1", "2", "3")
		fork(t, s, "f", "p", 2, "f4")
		talk(t, s, "gone", 0, "x")
		drop(t, s, "gone")
		drop(t, s, "p")
		before := infos(t, s, journal.Query{})
		for range 2 {
			shut(t, s)
			s = open()
			same(t, "a", 0, read(t, s, "a", 0), want)
			holds(t, s, "f", "1", "2", "[session.created]", "f4")
			holds(t, s, "p")
			holds(t, s, "gone")
			if after := infos(t, s, journal.Query{}); !slices.EqualFunc(after, before, equal) {
				t.Errorf("the list changed:\n got %+v\nwant %+v", after, before)
			}
		}
		refused(t, s.Append(context.Background(), "a", 3, said("x")), errdefs.Conflict, "a stale position after opening")
		talk(t, s, "a", int64(len(want)), "more")
	}},
	{"each append is there when it returned, without a close", func(t *testing.T, open func() journal.Store) {
		writer, reader := open(), open()
		var want []string
		for n := range int64(20) {
			want = append(want, fmt.Sprint(n))
			talk(t, writer, "a", n, want[n])
			holds(t, reader, "a", want...)
		}
	}},
	{"two stores on one place are one", func(t *testing.T, open func() journal.Store) {
		a, b := open(), open()
		talk(t, a, "s", 0, "1")
		talk(t, b, "s", 1, "2")
		refused(t, a.Append(context.Background(), "s", 1, said("stale")), errdefs.Conflict, "a stale writer")
		talk(t, a, "s", 2, "3")
		holds(t, b, "s", "1", "2", "3")
		hour := time.Now().Add(time.Hour)
		allowed(t, a.Lease(context.Background(), "s", "me", hour), "lease")
		refused(t, b.Lease(context.Background(), "s", "you", hour), errdefs.Conflict, "another's lease")
		drop(t, b, "s")
		holds(t, a, "s")
		refused(t, a.Append(context.Background(), "s", 3, said("x")), errdefs.Conflict, "append to what another deleted")
	}},
	{"one appender wins each position, whichever store it has", func(t *testing.T, open func() journal.Store) { contend(t, open(), open()) }},
	{"a closed store refuses, and closing twice is fine", func(t *testing.T, open func() journal.Store) {
		s := open()
		talk(t, s, "a", 0, "1")
		shut(t, s)
		shut(t, s)
		ctx := context.Background()
		for what, err := range map[string]error{
			"append": s.Append(ctx, "a", 1, said("x")),
			"delete": s.Delete(ctx, "a"),
			"lease":  s.Lease(ctx, "a", "me", time.Now()),
		} {
			if err == nil {
				t.Errorf("%s worked on a closed store", what)
			}
		}
		for _, err := range s.Read(ctx, "a", 0) {
			if err == nil {
				t.Error("a closed store gave an entry")
			}
		}
		for _, err := range s.Sessions(ctx, journal.Query{}) {
			if err == nil {
				t.Error("a closed store gave a session")
			}
		}
		holds(t, open(), "a", "1")
	}},
	{"closing while appends run leaves each whole or not there, as it said", func(t *testing.T, open func() journal.Store) {
		for round := range 5 {
			s := open()
			const appenders = 8
			var done [appenders]int64 // positions that were reported
			var begun, wg sync.WaitGroup
			begun.Add(appenders)
			for i := range appenders {
				wg.Go(func() {
					name := fmt.Sprint("s", round, ".", i)
					for n := int64(0); ; n += 2 {
						err := s.Append(context.Background(), name, n, said("1"), said("2"))
						if n == 0 {
							begun.Done()
						}
						if err != nil {
							return
						}
						done[i] = n + 2
					}
				})
			}
			begun.Wait()
			shut(t, s)
			wg.Wait()
			s = open()
			for i := range appenders {
				name := fmt.Sprint("s", round, ".", i)
				if got := int64(len(read(t, s, name, 0))); got != done[i] {
					t.Errorf("%s: %d entries are there, %d were reported", name, got, done[i])
				}
			}
			shut(t, s)
		}
	}},
}
