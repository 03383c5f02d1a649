package journaltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

var appends = []check{
	{"entries are numbered from 1 without a gap", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		talk(t, s, "a", 1, "2", "3", "4")
		talk(t, s, "b", 0, "other")
		talk(t, s, "a", 4, "5")
		holds(t, s, "a", "1", "2", "3", "4", "5")
		holds(t, s, "b", "other")
		for _, e := range read(t, s, "a", 0) {
			if e.Session != "a" || e.Run != "r1" {
				t.Errorf("entry %d bears session %q and run %q", e.Seq, e.Session, e.Run)
			}
		}
	}},
	{"every kind comes back byte for byte", func(t *testing.T, s journal.Store) {
		want := Samples()
		for i, e := range want {
			add(t, s, "kinds", int64(i), e)
		}
		same(t, "kinds", 0, read(t, s, "kinds", 0), want)
		add(t, s, "at once", 0, want...)
		same(t, "at once", 0, read(t, s, "at once", 0), want)
	}},
	{"an entry's own session and number don't count", func(t *testing.T, s journal.Store) {
		e := said("x")
		e.Session, e.Seq = "elsewhere", 77
		add(t, s, "a", 0, e)
		same(t, "a", 0, read(t, s, "a", 0), read(t, s, "a", 0))
		if got := read(t, s, "a", 0)[0]; got.Session != "a" || got.Seq != 1 {
			t.Errorf("got session %q, number %d", got.Session, got.Seq)
		}
		holds(t, s, "elsewhere")
	}},
	{"the caller's entries stay the caller's", func(t *testing.T, s journal.Store) {
		mine := []journal.Entry{said("1"), said("2")}
		add(t, s, "a", 0, mine...)
		if mine[0].Seq != 0 || mine[1].Session != "" || !mine[0].Time.IsZero() {
			t.Errorf("append wrote to its arguments: %+v", mine)
		}
		mine[0], mine[1] = said("x"), said("y")
		holds(t, s, "a", "1", "2")
	}},
	{"a time that is zero is now, any other one is kept to the nanosecond, in UTC", func(t *testing.T, s journal.Store) {
		given := said("given")
		given.Time = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("east", 2*60*60))
		before := time.Now()
		add(t, s, "a", 0, said("now"), given)
		after := time.Now()
		got := read(t, s, "a", 0)
		if n := got[0].Time; n.Before(before.Add(-time.Second)) || n.After(after.Add(time.Second)) {
			t.Errorf("now is %v, the entry says %v", after, n)
		}
		if !got[1].Time.Equal(given.Time) {
			t.Errorf("got %v, want %v", got[1].Time, given.Time)
		}
		for _, e := range got {
			if e.Time.Location() != time.UTC {
				t.Errorf("entry %d is in %v", e.Seq, e.Time.Location())
			}
		}
	}},
	{"an append that does not follow the last entry is a Conflict and leaves nothing", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1", "2", "3")
		for _, after := range []int64{-1, 0, 1, 2, 4, 100, math.MinInt64, math.MaxInt64 - 8} {
			refused(t, s.Append(context.Background(), "a", after, said("x"), said("y")), errdefs.Conflict, fmt.Sprintf("after %d of 3", after))
		}
		for _, after := range []int64{-1, 1, 5} {
			refused(t, s.Append(context.Background(), "new", after, said("x")), errdefs.Conflict, fmt.Sprintf("after %d of none", after))
		}
		holds(t, s, "a", "1", "2", "3")
		holds(t, s, "new")
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"a"}) {
			t.Errorf("there are sessions %q, want only a", got)
		}
		talk(t, s, "a", 3, "4")
		holds(t, s, "a", "1", "2", "3", "4")
	}},
	{"an append without sense is refused whole", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		refused(t, s.Append(ctx, "a", 0), errdefs.Validation, "no entries")
		refused(t, s.Append(ctx, "", 0, said("x")), errdefs.Validation, "no session")
		refused(t, s.Append(ctx, "a", 0, said("x"), journal.Entry{}), errdefs.Validation, "no data")
		refused(t, s.Append(ctx, "a", 0, said("x"), journal.Entry{Data: &journal.Resumed{}}), errdefs.Validation, "a pointer")
		refused(t, s.Append(ctx, "a", 0, said("x"), journal.Entry{Data: foreign{}}), errdefs.Validation, "a type that nobody knows")
		holds(t, s, "a")
		if got := names(t, s, journal.Query{}); len(got) != 0 {
			t.Errorf("there are sessions %q", got)
		}
	}},
	{"with a cancelled context nothing is added", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Append(ctx, "a", 1, said("x")); !errdefs.Canceled(err) {
			t.Errorf("got %v, want the context's error", err)
		}
		holds(t, s, "a", "1")
	}},
	{"a session's name is any text, and means itself only", func(t *testing.T, s journal.Store) {
		all := []string{
			"a", "A", "a ", " a", "ä", "a\u0308", "../a", "a/b", `a\b`, "a'; DROP TABLE sessions; --", `"`, "%", "_", "*", "会話/👋", "\n", strings.Repeat("long", 200),
		}
		for _, name := range all {
			talk(t, s, name, 0, "of "+name)
		}
		for _, name := range all {
			holds(t, s, name, "of "+name)
		}
		if got := names(t, s, journal.Query{}); len(got) != len(all) {
			t.Errorf("%d sessions are listed, want %d: %q", len(got), len(all), got)
		}
	}},
	{"large entries come back whole", func(t *testing.T, s journal.Store) {
		rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
		noise := make([]byte, 1<<20)
		for i := range noise {
			noise[i] = byte(rnd.Uint32())
		}
		want := []journal.Entry{
			said("before"),
			{Time: time.Unix(1, 0), Data: journal.ToolFinished{Call: "c", Name: "bash", Outcome: journal.OutcomeOK, Content: strings.Repeat("5 MB of \"text\"\n — 好", 5<<20/22)}},
			{Time: time.Unix(2, 0), Data: journal.ToolFinished{Call: "d", Name: "shot", Outcome: journal.OutcomeOK, Files: []message.File{{MIME: "image/png", Data: string(noise)}}}},
			said("after"),
		}
		want[0].Time, want[3].Time = time.Unix(0, 1), time.Unix(3, 0)
		add(t, s, "a", 0, want...)
		same(t, "a", 0, read(t, s, "a", 0), want)
	}},
	{"many entries in one append stay in order", func(t *testing.T, s journal.Store) {
		want := make([]string, 3000)
		for i := range want {
			want[i] = fmt.Sprint(i)
		}
		talk(t, s, "a", 0, want...)
		holds(t, s, "a", want...)
	}},
}

// foreign is data that no reader understands.
type foreign struct{}

func (foreign) Kind() journal.Kind { return "foreign" }
