package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

var deletes = []check{
	{"what was deleted is gone", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1", "2")
		talk(t, s, "b", 0, "other")
		drop(t, s, "a")
		holds(t, s, "a")
		holds(t, s, "b", "other")
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"b"}) {
			t.Errorf("there are sessions %q", got)
		}
		refused(t, s.Append(context.Background(), "a", 2, said("x")), errdefs.Conflict, "append to what was deleted")
	}},
	{"deleting what is not there is NotFound", func(t *testing.T, s journal.Store) {
		refused(t, s.Delete(context.Background(), "none"), errdefs.NotFound, "delete")
		talk(t, s, "a", 0, "1")
		drop(t, s, "a")
		refused(t, s.Delete(context.Background(), "a"), errdefs.NotFound, "delete again")
	}},
	{"a session made again starts clean", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		add(t, s, "a", 0, run("agent", "user"), said("old"))
		if err := s.Lease(ctx, "a", "old owner", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		drop(t, s, "a")
		talk(t, s, "a", 0, "new")
		holds(t, s, "a", "new")
		if i := infos(t, s, journal.Query{})[0]; i.Agent != "" || i.User != "" || i.Status != "" || i.Seq != 1 {
			t.Errorf("it remembers: %+v", i)
		}
		if err := s.Lease(ctx, "a", "new owner", time.Now().Add(time.Hour)); err != nil {
			t.Errorf("its lease outlived it: %v", err)
		}
	}},
	{"with a cancelled context nothing is deleted", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Delete(ctx, "a"); !errdefs.Canceled(err) {
			t.Errorf("got %v", err)
		}
		holds(t, s, "a", "1")
	}},
}

// run opens a run.
func run(agent, user string) journal.Entry {
	return journal.Entry{Run: "r1", Data: journal.RunStarted{Agent: agent, User: user, Owner: "o", Attempt: 1}}
}

// at gives an entry a time, n seconds into some day.
func at(n int, e journal.Entry) journal.Entry {
	e.Time = time.Date(2026, 5, 6, 7, 8, n, 9, time.UTC)
	return e
}

var listings = []check{
	{"the one with the newest entry comes first", func(t *testing.T, s journal.Store) {
		if got := names(t, s, journal.Query{}); len(got) != 0 {
			t.Errorf("a new store has sessions %q", got)
		}
		add(t, s, "a", 0, at(1, said("x")))
		add(t, s, "b", 0, at(2, said("x")))
		add(t, s, "d", 0, at(3, said("x")))
		add(t, s, "c", 0, at(3, said("x")))
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"c", "d", "b", "a"}) {
			t.Errorf("got %q, want c, d, b, a", got)
		}
		add(t, s, "a", 1, at(4, said("x")))
		if got := names(t, s, journal.Query{}); !slices.Equal(got, []string{"a", "c", "d", "b"}) {
			t.Errorf("after an append to a: %q", got)
		}
	}},
	{"a line says what the entries say", func(t *testing.T, s journal.Store) {
		want := journal.Info{}
		step := func(what string, e journal.Entry) {
			t.Helper()
			e = at(int(want.Seq)+1, e)
			add(t, s, "a", want.Seq, e)
			e.Session, e.Seq = "a", want.Seq+1
			want.Apply(e)
			if got := infos(t, s, journal.Query{}); len(got) != 1 || !equal(got[0], want) {
				t.Fatalf("%s:\n got %+v\nwant %+v", what, got, want)
			}
		}
		step("created", journal.Entry{Data: journal.SessionCreated{}})
		step("running", run("ägent", "üser"))
		step("said", said("x"))
		step("parked", journal.Entry{Data: journal.Parked{Cause: "c"}})
		step("resumed", journal.Entry{Data: journal.Resumed{Owner: "o2"}})
		step("finished", journal.Entry{Data: journal.RunFinished{Status: "completed"}})
		step("another agent", run("other", ""))
		step("failed", journal.Entry{Data: journal.RunFinished{Status: "failed"}})
	}},
	{"one append of many entries says the same", func(t *testing.T, s journal.Store) {
		add(t, s, "a", 0, at(1, run("x", "u")), at(2, said("x")), at(3, journal.Entry{Data: journal.RunFinished{Status: "completed"}}), at(4, run("y", "v")), at(5, journal.Entry{Data: journal.Parked{}}))
		want := journal.Info{Session: "a", Agent: "y", User: "v", Status: "interrupted", Seq: 5, Created: at(1, said("")).Time, Updated: at(5, said("")).Time}
		if got := infos(t, s, journal.Query{}); len(got) != 1 || !equal(got[0], want) {
			t.Errorf("\n got %+v\nwant %+v", got, want)
		}
	}},
	{"a fork is who its parent was at that point, and has no run", func(t *testing.T, s journal.Store) {
		add(t, s, "p", 0, at(1, run("x", "u")), at(2, journal.Entry{Data: journal.RunFinished{Status: "completed"}}), at(3, run("y", "v")), at(4, said("1")), at(5, run("z", "w")))
		for i, want := range []journal.Info{
			{Session: "f0"}, {Session: "f1", Agent: "x", User: "u"}, {Session: "f2", Agent: "x", User: "u"}, {Session: "f3", Agent: "y", User: "v"}, {Session: "f4", Agent: "y", User: "v"},
		} {
			made := at(10+i, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: int64(i)}})
			add(t, s, want.Session, int64(i), made, at(20+i, said("x")))
			want.Parent, want.Seq, want.Created, want.Updated = "p", int64(i)+2, made.Time, at(20+i, said("x")).Time
			if got := infos(t, s, journal.Query{Limit: 1}); len(got) != 1 || !equal(got[0], want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
		}
		made := at(30, journal.Entry{Data: journal.SessionCreated{Parent: "f4", At: 3}})
		add(t, s, "g", 3, made)
		want := journal.Info{Session: "g", Agent: "y", User: "v", Parent: "f4", Seq: 4, Created: made.Time, Updated: made.Time}
		if got := infos(t, s, journal.Query{Limit: 1}); len(got) != 1 || !equal(got[0], want) {
			t.Errorf("fork of a fork:\n got %+v\nwant %+v", got, want)
		}
	}},
	{"a session is of the directory of its last run, a fork of the one at its cut", func(t *testing.T, s journal.Store) {
		in := func(dir string) journal.Entry {
			e := run("x", "u")
			d := e.Data.(journal.RunStarted)
			d.Dir = dir
			e.Data = d
			return e
		}
		fork := func(at int64) journal.Entry { return journal.Entry{Data: journal.SessionCreated{Parent: "p", At: at}} }
		want := func(when, dir string, sessions ...string) {
			t.Helper()
			if got := names(t, s, journal.Query{Dir: dir}); !slices.Equal(got, sessions) {
				t.Errorf("%s %s has %q, want %q", when, dir, got, sessions)
			}
			for _, i := range infos(t, s, journal.Query{Dir: dir}) {
				if i.Dir != dir {
					t.Errorf("%s %s says that it is of %q, not of %s", when, i.Session, i.Dir, dir)
				}
			}
		}
		add(t, s, "p", 0, at(1, journal.Entry{Data: journal.SessionCreated{}}))
		add(t, s, "p", 1, at(2, in("/src/a")), at(3, said("x")))
		add(t, s, "q", 0, at(4, in("/src/b")))
		add(t, s, "none", 0, at(5, run("x", "u")))
		want("at first", "/src/a", "p")
		want("at first", "/src/b", "q")
		want("at first", "/work")
		want("at first", "/src/a/")
		want("at first", "/WORK/A")
		if got := names(t, s, journal.Query{}); len(got) != 3 {
			t.Errorf("all: %q", got)
		}
		add(t, s, "p", 3, at(6, journal.Entry{Data: journal.RunFinished{Status: "completed"}}), at(7, in("/src/b")), at(8, said("y")))
		want("when it went on elsewhere", "/src/a")
		want("when it went on elsewhere", "/src/b", "p", "q")
		for n, cut := range []int64{1, 3, 4, 5, 6} {
			add(t, s, fmt.Sprint("f", cut), cut, at(10+n, fork(cut)))
		}
		want("forks", "/src/a", "f4", "f3")
		want("forks", "/src/b", "f6", "f5", "p", "q")
		if got := infos(t, s, journal.Query{Session: "f1"}); len(got) != 1 || got[0].Dir != "" {
			t.Errorf("a fork of before the first run: %+v", got)
		}
		add(t, s, "f3", 4, at(20, run("x", "u")))
		want("after a run that says none", "/src/a", "f4")
		drop(t, s, "p")
		add(t, s, "p", 0, at(21, said("x")))
		want("when it was made again", "/src/b", "f6", "f5", "q")
		add(t, s, "p", 1, at(22, in("/src/a")))
		want("when it was made again", "/src/a", "p", "f4")
		for q, n := range map[journal.Query]int{
			{Dir: "/src/a", Session: "p"}: 1, {Dir: "/src/b", Session: "p"}: 0, {Dir: "/src/b", Limit: 2}: 2, {Dir: "/src/b", Status: "running"}: 1, {Dir: "/src/b", Agent: "y"}: 0,
		} {
			if got := names(t, s, q); len(got) != n {
				t.Errorf("%+v: got %q, want %d", q, got, n)
			}
		}
	}},
	{"queries narrow, and the limit counts what matches", func(t *testing.T, s journal.Store) {
		n := 0
		for _, agent := range []string{"x", "y"} {
			for _, user := range []string{"u", "v"} {
				for _, status := range []string{"running", "failed"} {
					n++
					name := agent + user + status
					add(t, s, name, 0, at(n, run(agent, user)))
					if status != "running" {
						add(t, s, name, 1, at(n, journal.Entry{Data: journal.RunFinished{Status: status}}))
					}
				}
			}
		}
		for _, c := range []struct {
			q    journal.Query
			want []string
		}{
			{journal.Query{Agent: "x"}, []string{"xvfailed", "xvrunning", "xufailed", "xurunning"}},
			{journal.Query{User: "u"}, []string{"yufailed", "yurunning", "xufailed", "xurunning"}},
			{journal.Query{Status: "failed"}, []string{"yvfailed", "yufailed", "xvfailed", "xufailed"}},
			{journal.Query{Agent: "x", User: "u"}, []string{"xufailed", "xurunning"}},
			{journal.Query{Agent: "x", Status: "running", User: "v"}, []string{"xvrunning"}},
			{journal.Query{Agent: "x", Limit: 2}, []string{"xvfailed", "xvrunning"}},
			{journal.Query{Agent: "x", Status: "running", Limit: 5}, []string{"xvrunning", "xurunning"}},
			{journal.Query{Limit: 3}, []string{"yvfailed", "yvrunning", "yufailed"}},
			{journal.Query{Agent: "X"}, nil},
			{journal.Query{Agent: "%"}, nil},
			{journal.Query{Status: "completed"}, nil},
			{journal.Query{Session: "yufailed"}, []string{"yufailed"}},
			{journal.Query{Session: "yufailed", User: "u", Limit: 2}, []string{"yufailed"}},
			{journal.Query{Session: "yufailed", User: "v"}, nil},
			{journal.Query{Session: "yu"}, nil},
		} {
			if got := names(t, s, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%+v: got %q, want %q", c.q, got, c.want)
			}
		}
	}},
	{"a long list is whole, and may be left at any line", func(t *testing.T, s journal.Store) {
		const n = 600
		for i := range n {
			talk(t, s, fmt.Sprint("s", i), 0, "x")
		}
		if got := names(t, s, journal.Query{}); len(got) != n || len(slices.Compact(slices.Sorted(slices.Values(got)))) != n {
			t.Fatalf("%d sessions are listed, want %d", len(got), n)
		}
		for range 30 { // what stopping leaks would run out
			for _, stop := range []int{1, 256, 300} {
				k := 0
				for _, err := range s.Sessions(context.Background(), journal.Query{}) {
					if err != nil {
						t.Fatal(err)
					}
					if k++; k == stop {
						break
					}
				}
			}
		}
		if got := names(t, s, journal.Query{Limit: 257}); len(got) != 257 {
			t.Errorf("limit 257: %d", len(got))
		}
		talk(t, s, "s0", 1, "y")
	}},
}

// equal compares with times by their moment.
func equal(a, b journal.Info) bool {
	same := a.Created.Equal(b.Created) && a.Updated.Equal(b.Updated)
	a.Created, a.Updated, b.Created, b.Updated = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return same && a == b
}

var leases = []check{
	{"a lease keeps others out", func(t *testing.T, s journal.Store) {
		ctx, hour := context.Background(), time.Now().Add(time.Hour)
		talk(t, s, "a", 0, "1")
		talk(t, s, "b", 0, "1")
		allowed(t, s.Lease(ctx, "a", "me", hour), "the first")
		refused(t, s.Lease(ctx, "a", "you", hour), errdefs.Conflict, "another owner")
		refused(t, s.Lease(ctx, "a", "you", time.Now().Add(-time.Hour)), errdefs.Conflict, "another owner gives up what it has not")
		refused(t, s.Lease(ctx, "a", "ME", hour), errdefs.Conflict, "an owner of almost the same name")
		allowed(t, s.Lease(ctx, "a", "me", hour.Add(time.Hour)), "renewal")
		refused(t, s.Lease(ctx, "a", "you", hour), errdefs.Conflict, "another owner, after the renewal")
		allowed(t, s.Lease(ctx, "b", "you", hour), "another session")
	}},
	{"a lease can be given up", func(t *testing.T, s journal.Store) {
		ctx, hour := context.Background(), time.Now().Add(time.Hour)
		talk(t, s, "a", 0, "1")
		for _, past := range []time.Time{time.Now().Add(-time.Second), time.Unix(0, 0), {}} {
			allowed(t, s.Lease(ctx, "a", "me", hour), "me")
			allowed(t, s.Lease(ctx, "a", "me", past), "giving up")
			allowed(t, s.Lease(ctx, "a", "you", hour), "you")
			refused(t, s.Lease(ctx, "a", "me", hour), errdefs.Conflict, "me again")
			allowed(t, s.Lease(ctx, "a", "you", past), "you give up")
		}
	}},
	{"a lease runs out", func(t *testing.T, s journal.Store) {
		ctx := context.Background()
		talk(t, s, "a", 0, "1")
		until := time.Now().Add(300 * time.Millisecond)
		allowed(t, s.Lease(ctx, "a", "me", until), "me")
		if err := s.Lease(ctx, "a", "you", time.Now().Add(time.Hour)); time.Now().Before(until) {
			refused(t, err, errdefs.Conflict, "before it ran out")
		}
		time.Sleep(time.Until(until) + 50*time.Millisecond) // the store has the machine's clock
		allowed(t, s.Lease(ctx, "a", "you", time.Now().Add(time.Hour)), "after it ran out")
		refused(t, s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)), errdefs.Conflict, "the one before")
	}},
	{"a lease takes a session", func(t *testing.T, s journal.Store) {
		refused(t, s.Lease(context.Background(), "none", "me", time.Now().Add(time.Hour)), errdefs.NotFound, "no session")
		holds(t, s, "none")
		if got := names(t, s, journal.Query{}); len(got) != 0 {
			t.Errorf("there are sessions %q", got)
		}
	}},
	{"a lease is no fence", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		allowed(t, s.Lease(context.Background(), "a", "me", time.Now().Add(time.Hour)), "me")
		talk(t, s, "a", 1, "anybody's")
		holds(t, s, "a", "1", "anybody's")
		if i := infos(t, s, journal.Query{})[0]; i.Seq != 2 {
			t.Errorf("%+v", i)
		}
	}},
	{"with a cancelled context nothing is leased", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, "1")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)); !errdefs.Canceled(err) {
			t.Errorf("got %v", err)
		}
		allowed(t, s.Lease(context.Background(), "a", "you", time.Now().Add(time.Hour)), "you")
	}},
}

func allowed(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
