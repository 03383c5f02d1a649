package stream_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/stream"
	"github.com/pawl-dev/pawl/stream/postgres"
)

// each runs a test with each store.
func each(t *testing.T, keep stream.Retention, test func(t *testing.T, s stream.Store, again func() stream.Store)) {
	t.Run("memory", func(t *testing.T) {
		s := stream.Memory(keep)
		test(t, s, func() stream.Store { return s })
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.DSN(t)
		test(t, opened(t, dsn, keep), func() stream.Store { return opened(t, dsn, keep) })
	})
}

func opened(t *testing.T, dsn string, keep stream.Retention) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.WithRetention(keep))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var callKey = journal.Key{Op: "model", ID: "1"}

func item(session, by string, part int, text string) stream.Item {
	i := stream.Item{Session: session, Run: "r", Key: callKey, Attempt: 1, By: by, Part: part, Text: text}
	if text != "" {
		i.Runs = []stream.Run{{Kind: event.TextDelta, Bytes: len(text)}}
	}
	return i
}

func appends(t *testing.T, s stream.Store, items ...stream.Item) {
	t.Helper()
	if err := s.Append(t.Context(), items...); err != nil {
		t.Fatal(err)
	}
}

// all reads what there is after an offset.
func all(t *testing.T, s stream.Store, session string, after int64) (items []stream.Item) {
	t.Helper()
	for {
		next, err := s.Read(t.Context(), session, after)
		if err != nil {
			t.Fatal(err)
		}
		if len(next) == 0 {
			return items
		}
		items, after = append(items, next...), next[len(next)-1].Offset
	}
}

func TestAStoreGivesBackWhatItGot(t *testing.T) {
	each(t, stream.Retention{}, func(t *testing.T, s stream.Store, again func() stream.Store) {
		odd := "\x00 not \xff UTF-8, and é"
		want := stream.Item{
			Session: "s/é", Run: "r", Key: journal.Key{Scope: "a/b", Op: "tool", ID: "c1"}, Seq: 7, Behind: 9, ParentRun: "above", Attempt: 3, By: "me", Part: 1, Lost: 5, Text: odd + "!?",
			Runs: []stream.Run{{event.ToolOutput, "stderr", 0, len(odd), 0}, {event.Retry, "", 2, 1, 1500 * time.Millisecond}, {event.TextDelta, "", 2, 1, 0}},
		}
		end := item("s/é", "me", 2, "")
		end.End = true
		appends(t, s, want, item("other", "me too", 1, "x"), end)
		got := all(t, again(), "s/é", 0)
		if len(got) != 2 || !got[1].End || got[1].Text != "" || got[1].Offset <= got[0].Offset || time.Since(got[0].Time) > time.Minute {
			t.Fatalf("%+v", got)
		}
		want.Offset, want.Time = got[0].Offset, got[0].Time
		if fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v", got[0], want)
		}
		var texts []string
		for d := range got[0].Deltas() {
			texts = append(texts, d.Text)
		}
		if strings.Join(texts, "|") != odd+"|!|?" {
			t.Errorf("deltas %q", texts)
		}
		last, err := s.Last(t.Context(), "s/é")
		if err != nil || last != got[1].Offset || len(all(t, s, "s/é", last)) != 0 {
			t.Errorf("last %d, %v, want %d", last, err, got[1].Offset)
		}
		if last, err := s.Last(t.Context(), "nobody"); last != 0 || err != nil {
			t.Error(last, err)
		}
		if _, err := s.Read(t.Context(), "s/é", last+1); !errors.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), "begin after 0") {
			t.Errorf("after an offset that the stream has not: %v", err)
		}
	})
}

func TestWhatMayHaveBeenAppendedIsAppendedAgain(t *testing.T) {
	each(t, stream.Retention{}, func(t *testing.T, s stream.Store, again func() stream.Store) {
		appends(t, s, item("s", "a", 1, "one "))
		appends(t, again(), item("s", "a", 1, "one "), item("s", "a", 2, "two "))
		appends(t, s, item("s", "a", 2, "two "), item("s", "b", 1, "other "), item("s", "a", 3, "three"))
		text := ""
		for _, i := range all(t, s, "s", 0) {
			text += i.Text
		}
		if text != "one two other three" {
			t.Errorf("got %q", text)
		}
	})
}

// Writers of several processes append to the same sessions, while readers that go on from their last offsets look all the time. Nobody misses what commits later than its neighbour.
func TestNobodyMissesWhatOthersAppendAtTheSameTime(t *testing.T) {
	const writers, parts, sessions = 6, 60, 3
	each(t, stream.Retention{}, func(t *testing.T, s stream.Store, again func() stream.Store) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var wg sync.WaitGroup
		for w := range writers {
			st := again()
			wg.Go(func() {
				for p := 1; p <= parts; p++ {
					var items []stream.Item
					for n := range sessions {
						items = append(items, item(fmt.Sprint("s", n), fmt.Sprint("w", w, "s", n), p, fmt.Sprint(w, ".", p, " ")))
					}
					rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
					if err := st.Append(ctx, items...); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for n := range sessions {
			st := again()
			wg.Go(func() {
				newest, got, last := map[string]int{}, 0, int64(0)
				for i, err := range stream.Read(ctx, st, fmt.Sprint("s", n), 0) {
					if err != nil {
						t.Error(err)
						return
					}
					if i.Part != newest[i.By]+1 || i.Offset <= last {
						t.Errorf("after part %d of %s comes part %d, at %d after %d", newest[i.By], i.By, i.Part, i.Offset, last)
						return
					}
					newest[i.By], last = i.Part, i.Offset
					if got++; got == writers*parts {
						return
					}
				}
				t.Errorf("got %d items", got)
			})
		}
		wg.Wait()
	})
}

func TestAReaderIsWokenByOthers(t *testing.T) {
	each(t, stream.Retention{}, func(t *testing.T, s stream.Store, again func() stream.Store) {
		other := again()
		appends(t, s, item("s", "a", 1, "x"))
		began := time.Now()
		for i, err := range stream.Read(t.Context(), s, "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if i.Part == 8 {
				break
			}
			appends(t, other, item("s", "a", i.Part+1, "x"))
		}
		if took := time.Since(began); took > 6*time.Second { // who has to look by himself takes at least 1 s each time
			t.Errorf("8 items took %v", took)
		}
	})
}

func TestNobodyWhoAppendsNotifiesWhereNobodyFollows(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, other := opened(t, dsn, stream.Retention{}), opened(t, dsn, stream.Retention{})
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	if _, err := c.Exec(t.Context(), "LISTEN pawl_stream"); err != nil {
		t.Fatal(err)
	}
	_, stop := other.Watch(t.Context(), "followed")
	defer stop()
	_, stopOwn := s.Watch(t.Context(), "own") // by the one who appends
	defer stopOwn()
	appends(t, s, item("own", "a", 1, "x"), item("not", "b", 1, "x"))
	appends(t, s, item("followed", "c", 1, "x"))
	ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	n, err := c.WaitForNotification(ctx)
	if err != nil || n.Payload != "followed" {
		t.Errorf("notified of %+v, %v", n, err)
	}
}

func TestTheTablesAreMadeOnceHoweverManyOpenThem(t *testing.T) {
	dsn := pgtest.DSN(t)
	var wg sync.WaitGroup
	for n := range 10 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = s.Close() }()
			if err := s.Append(t.Context(), item("s", fmt.Sprint(n), 1, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := opened(t, dsn, stream.Retention{})
	if got := len(all(t, s, "s", 0)); got != 10 {
		t.Errorf("%d items", got)
	}
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
	if _, err := c.Exec(t.Context(), "UPDATE pawl_stream.schema_version SET version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), dsn); !errdefs.NotAvailable.Is(err) || !strings.Contains(err.Error(), "use a newer one") {
		t.Errorf("a newer version's: %v", err)
	}
	for _, wrong := range []string{"", "host=/nowhere dbname=x"} {
		if _, err := postgres.Open(t.Context(), wrong); errdefs.Of(err) == nil {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestWhatIsOverIsDeletedAndWhoComesBackIsToldWhereItGoesOn(t *testing.T) {
	keep := stream.Retention{Ended: 300 * time.Millisecond, Age: time.Hour}
	each(t, keep, func(t *testing.T, s stream.Store, _ func() stream.Store) {
		ended := item("s", "a", 2, "two")
		ended.End = true
		killed, second := item("s", "killed", 1, "killed"), item("s", "second", 1, "second")
		killed.Key.ID, second.Key.ID, second.Attempt, second.End = "2", "2", 2, true
		under := item("s", "under", 1, "under way")
		under.Key.ID = "3"
		behind := item("s", "behind", 1, "behind")
		behind.Key.ID, behind.End = "4", true
		appends(t, s, item("s", "a", 1, "one"), ended, killed, second, under, behind)
		items := all(t, s, "s", 0)
		if len(items) != 6 {
			t.Fatalf("%d items: who is cut off has some time to come back", len(items))
		}
		time.Sleep(keep.Ended)
		appends(t, s, item("s", "under", 2, "still"))
		got := all(t, s, "s", 0)
		if len(got) != 3 || got[0].By != "under" || got[1].By != "behind" {
			t.Fatalf("left: %+v", got)
		}
		var gone stream.GoneError
		if _, err := s.Read(t.Context(), "s", items[1].Offset); !errors.As(err, &gone) || gone.From != items[3].Offset || !errors.Is(err, errdefs.NotFound) {
			t.Errorf("after what was deleted: %v", err)
		}
		if next := all(t, s, "s", gone.From); len(next) != 3 || len(all(t, s, "s", items[4].Offset)) != 2 {
			t.Errorf("it goes on with %+v", next)
		}
		for _, err := range stream.Read(t.Context(), s, "s", items[1].Offset) {
			if !errors.As(err, &gone) {
				t.Errorf("a reader is told %v", err)
			}
		}
	})
}

func TestASessionKeepsTheNewestBytes(t *testing.T) {
	each(t, stream.Retention{Bytes: 20_000}, func(t *testing.T, s stream.Store, _ func() stream.Store) {
		text := strings.Repeat("x", 1000)
		for n := range 100 {
			appends(t, s, item("s", "a", n+1, text), item("short", "b", n+1, "y"))
		}
		items := all(t, s, "s", 0)
		if n := len(items); n < 10 || n > 21 || items[n-1].Part != 100 {
			t.Errorf("%d items are left", n)
		}
		if n := len(all(t, s, "short", 0)); n != 100 {
			t.Errorf("%d items are left of the other session", n)
		}
	})
}

func TestOldItemsOfSessionsThatNobodyWritesToGo(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := opened(t, dsn, stream.Retention{Ended: 50 * time.Millisecond, Age: 100 * time.Millisecond, Names: 100 * time.Millisecond})
	appends(t, s, item("killed", "a", 1, "x"))
	time.Sleep(150 * time.Millisecond)
	appends(t, s, item("other", "b", 1, "x")) // it looks around as it goes along
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		last, err := s.Last(t.Context(), "killed")
		if last == 0 && err == nil { // the name is forgotten, too
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d items are left, and %d, %v", len(all(t, s, "killed", 0)), last, err)
		}
	}
	before, _ := s.Last(t.Context(), "other")
	time.Sleep(150 * time.Millisecond)
	if err := s.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	appends(t, s, item("other", "c", 1, "x"))
	if items := all(t, s, "other", 0); len(items) != 1 || items[0].Offset <= before {
		t.Errorf("offsets went back from %d: %+v", before, items)
	}
}

// One append of a worker that has 64 effects speak, 1 KB each.
func BenchmarkAppend(b *testing.B) {
	dsn := pgtest.DSN(b)
	s, err := postgres.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	text := strings.Repeat("x", 1024)
	for n := 1; b.Loop(); n++ {
		var items []stream.Item
		for k := range 64 {
			items = append(items, item(fmt.Sprint("s", k), fmt.Sprint("w", k), n, text))
		}
		if err := s.Append(b.Context(), items...); err != nil {
			b.Fatal(err)
		}
	}
}
