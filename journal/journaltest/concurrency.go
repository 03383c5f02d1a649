package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

var races = []check{
	{"many sessions at once don't mix", func(t *testing.T, s journal.Store) {
		const sessions, each = 16, 20
		var wg sync.WaitGroup
		for i := range sessions {
			wg.Go(func() {
				name := fmt.Sprint("s", i)
				for n := range int64(each) {
					if err := s.Append(context.Background(), name, n*2, said(fmt.Sprint(i, ".", n)), said("too")); err != nil {
						t.Errorf("%s after %d: %v", name, n*2, err)
						return
					}
				}
			})
		}
		wg.Wait()
		for i := range sessions {
			var want []string
			for n := range each {
				want = append(want, fmt.Sprint(i, ".", n), "too")
			}
			holds(t, s, fmt.Sprint("s", i), want...)
		}
	}},
	{"one appender wins each position", func(t *testing.T, s journal.Store) { contend(t, s, s) }},
	{"a Conflict of one does not hurt its neighbours", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		for round := range 20 {
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					name := fmt.Sprint("s", round, ".", i)
					if i%2 == 0 {
						err := s.Append(context.Background(), "a", 7, said("wrong"))
						if !errdefs.Conflict.Is(err) {
							t.Errorf("wrong position: %v", err)
						}
						return
					}
					if err := s.Append(context.Background(), name, 0, said("right")); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			for i := 1; i < 8; i += 2 {
				holds(t, s, fmt.Sprint("s", round, ".", i), "right")
			}
		}
		holds(t, s, "a", "1")
	}},
	{"a reader sees whole appends only", func(t *testing.T, s journal.Store) {
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !done.Load() {
					var n int64
					for e, err := range s.Read(context.Background(), "a", 0) {
						if n++; err != nil || e.Seq != n {
							t.Errorf("entry %d where %d belongs: %v", e.Seq, n, err)
							return
						}
					}
					if n%3 != 0 {
						t.Errorf("a reader saw %d entries, appended by three", n)
						return
					}
				}
			})
		}
		for n := range int64(60) {
			talk(t, s, "a", n*3, "1", "2", "3")
		}
		done.Store(true)
		wg.Wait()
	}},
	{"one fork of a name wins", func(t *testing.T, s journal.Store) {
		talk(t, s, "p", 0, "1", "2")
		won := winners(8, func(i int) error {
			return s.Append(context.Background(), "f", 1, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 1}}, said(fmt.Sprint(i)))
		})
		one(t, won, "fork")
		if got := heard(t, s, "f", 0); len(got) != 3 {
			t.Errorf("the fork has %q", got)
		}
	}},
	{"one owner gets a lease", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		one(t, winners(8, func(i int) error {
			return s.Lease(context.Background(), "a", fmt.Sprint("owner ", i), time.Now().Add(time.Hour))
		}), "lease")
	}},
	{"one of many deletes finds the session", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		one(t, winners(8, func(int) error {
			err := s.Delete(context.Background(), "a")
			if errdefs.NotFound.Is(err) {
				return errdefs.Conflict.Errorf("%w", err)
			}
			return err
		}), "delete")
	}},
	{"an append whose context ends is there whole or not at all, as it says", func(t *testing.T, s journal.Store) {
		for round := range 40 {
			name := fmt.Sprint("s", round)
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			var err error
			wg.Go(func() { err = s.Append(ctx, name, 0, said("1"), said("2")) })
			wg.Go(func() { talk(t, s, "neighbour "+name, 0, "x") })
			wg.Go(cancel)
			wg.Wait()
			switch got := len(read(t, s, name, 0)); {
			case err == nil && got != 2, err != nil && got != 0:
				t.Errorf("%d entries of 2, and the error %v", got, err)
			case err != nil && !errdefs.Canceled(err):
				t.Errorf("got %v", err)
			}
			holds(t, s, "neighbour "+name, "x")
		}
	}},
}

// contend lets appenders fight for every position of a session, through all of these stores, which keep the same entries.
func contend(t *testing.T, stores ...journal.Store) {
	t.Helper()
	const rounds, appenders = 40, 8
	var want []string
	for n := range int64(rounds) {
		won := winners(appenders, func(i int) error {
			return stores[i%len(stores)].Append(context.Background(), "contended", n*2, said(fmt.Sprint(n, " by ", i)), said(fmt.Sprint(n, " too by ", i)))
		})
		if !one(t, won, fmt.Sprintf("append after %d", n*2)) {
			return
		}
		i := slices.Index(won, nil)
		want = append(want, fmt.Sprint(n, " by ", i), fmt.Sprint(n, " too by ", i))
	}
	for _, s := range stores {
		holds(t, s, "contended", want...)
	}
}

// winners does the same n times at once.
func winners(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = do(i)
		})
	}
	done.Wait()
	return errs
}

// one checks that one did it, and that the others got Conflict.
func one(t *testing.T, errs []error, what string) bool {
	t.Helper()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			refused(t, err, errdefs.Conflict, what)
		}
	}
	if won != 1 {
		t.Errorf("%s: %d of %d won, want 1 (%v)", what, won, len(errs), errors.Join(errs...))
	}
	return won == 1
}

var logs = []check{
	{"a Log over it folds, takes over and fences", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		open := func() *journal.Log {
			t.Helper()
			l, err := journal.Open(ctx, s, "a")
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		key := journal.Key{Op: "tool", ID: "c1"}
		call := message.ToolCall{ID: "c1", Name: "read", Input: "{}"}
		first := open()
		allowed(t, first.Drive(ctx, "o", run("x", "u"), said("hello")), "the first drives")
		allowed(t, first.Append(ctx, journal.Entry{Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.Assistant("", call)}}), "reply")
		allowed(t, first.Append(ctx, journal.Entry{Key: key, Data: journal.ToolStarted{Call: journal.CalledOf(call)}}), "start")
		second := open()
		if out, begun := second.Recorded(key); out != nil || !begun {
			t.Errorf("the second knows of the tool: outcome %v, begun %v", out, begun)
		}
		allowed(t, second.Drive(ctx, "second", journal.Entry{Run: "r1", Data: journal.Resumed{Owner: "second"}}), "the second takes over")
		done := journal.Entry{Key: key, Data: journal.ToolFinished{Call: "c1", Name: "read", Content: "found", Outcome: journal.OutcomeOK}}
		refused(t, first.Append(ctx, done), errdefs.Conflict, "the first, overtaken")
		allowed(t, second.Append(ctx, done), "the second finishes")
		refused(t, second.Append(ctx, done), errdefs.Conflict, "a second outcome")
		live, again := second.State(), open().State()
		if live.Messages.Len() != 3 || again.Messages.Len() != 3 || live.Seq != again.Seq || again.Driver != "second" || again.Run != "r1" {
			t.Errorf("folded again it differs:\n%+v\n%+v", live, again)
		}
	}},
	{"a Log that is opened again knows what came since, and a session that began anew", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		l, err := journal.Open(ctx, s, "a")
		if err != nil {
			t.Fatal(err)
		}
		again := func() *journal.Log {
			t.Helper()
			next, err := l.Reopen(ctx)
			if err != nil {
				t.Fatal(err)
			}
			l = next
			return l
		}
		if again().Seq() != 0 {
			t.Error("a session that isn't there has entries")
		}
		allowed(t, l.Drive(ctx, "o", run("x", "u"), said("hello")), "drive")
		add(t, s, "a", 2, said("from elsewhere"), said("and more"))
		if st := again().State(); st.Seq != 4 || st.Messages.Len() != 3 {
			t.Errorf("at entry %d with %d messages", st.Seq, st.Messages.Len())
		}
		for _, more := range []int{2, 0} { // as many entries as before, and fewer
			allowed(t, s.Delete(ctx, "a"), "delete")
			anew := append([]journal.Entry{run("x", "u"), said("anew")}, said("a"), said("b"))[:2+more]
			add(t, s, "a", 0, anew...)
			if st := again().State(); st.Seq != int64(2+more) || st.Messages.At(0).Text() != "anew" {
				t.Errorf("begun anew, it is at entry %d: %q", st.Seq, st.Messages.At(0).Text())
			}
		}
		allowed(t, s.Delete(ctx, "a"), "delete")
		if st := again().State(); st.Seq != 0 || st.Messages.Len() != 0 {
			t.Errorf("of a deleted session there are %d entries", st.Seq)
		}
	}},
	{"a Log over a fork begins with the parent's transcript", func(t *testing.T, s journal.Store) {
		add(t, s, "p", 0, run("x", "u"), said("hello"), journal.Entry{Data: journal.ModelFinished{Message: message.Assistant("hi")}})
		fork(t, s, "f", "p", 2)
		l, err := journal.Open(context.Background(), s, "f")
		if err != nil {
			t.Fatal(err)
		}
		if st := l.State(); st.Messages.Len() != 1 || st.Run != "" || st.Seq != 3 {
			t.Errorf("%+v", st)
		}
		allowed(t, l.Drive(context.Background(), "o", run("x", "u"), said("again")), "drive the fork")
	}},
}
