package sqlite_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// begun is what a run begins with, and driven an entry of it.
func begun() journal.Entry {
	return journal.Entry{Run: "r1", Data: journal.RunStarted{Agent: "a", User: "ann", Owner: "o"}}
}

func driven(n int64) journal.Entry {
	return journal.Entry{Run: "r1", Key: journal.Key{Op: "tool", ID: fmt.Sprint("call", n)}, Data: journal.ToolStarted{}}
}

// running opens a session in which a run is under way, at entry n.
func running(t testing.TB, path, session string, n int64) *sqlite.Store {
	t.Helper()
	s := open(t, path)
	must(t, s.Append(ctx, session, 0, begun()))
	for i := int64(1); i < n; i++ {
		must(t, s.Append(ctx, session, i, driven(i)))
	}
	return s
}

// line is what Sessions says of one.
func line(t testing.TB, s journal.Store, session string) journal.Info {
	t.Helper()
	for i, err := range s.Sessions(ctx, journal.Query{}) {
		must(t, err)
		if i.Session == session {
			return i
		}
	}
	t.Fatalf("no session %s", session)
	return journal.Info{}
}

// A store that went on with a session knows how it left it. What others did since counts all the same.
func TestWhatAStoreKnowsOfASessionIsNeverTakenForWhatIsThere(t *testing.T) {
	const n = 3
	for name, others := range map[string]struct {
		do   func(s journal.Store) error
		want int64 // the last entry of the session then
	}{
		"went on":          {func(s journal.Store) error { return s.Append(ctx, "a", n, driven(n)) }, n + 1},
		"went on by three": {func(s journal.Store) error { return s.Append(ctx, "a", n, driven(1), driven(2), driven(3)) }, n + 3},
		"finished the run": {func(s journal.Store) error {
			return s.Append(ctx, "a", n, journal.Entry{Run: "r1", Data: journal.RunFinished{Status: "completed"}})
		}, n + 1},
		"deleted it":                   {func(s journal.Store) error { return s.Delete(ctx, "a") }, 0},
		"made it anew":                 {func(s journal.Store) error { return again(s, 1) }, 1},
		"deleted a parent":             {func(s journal.Store) error { return forked(s, n) }, 0},
		"deleted a parent's beginning": {func(s journal.Store) error { return forked(s, 1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.db")
			s := running(t, path, "a", n)
			other := open(t, path)
			must(t, others.do(other))
			for _, entries := range [][]journal.Entry{{driven(9)}, {driven(9), driven(10)}, {shot(10_000)}, {begun()}} {
				if err := s.Append(ctx, "a", n, entries...); !errdefs.Conflict.Is(err) {
					t.Errorf("an append behind entry %d: %v, want Conflict", n, err)
				}
			}
			if got := count(t, s, "a"); got != others.want {
				t.Errorf("%d entries, want %d", got, others.want)
			}
			if others.want > 0 { // and it goes on from what is there
				must(t, s.Append(ctx, "a", others.want, driven(9)))
				must(t, s.Append(ctx, "a", others.want+1, driven(10)))
			}
			if got := sqlite.Parts(s); got != "0/0" {
				t.Errorf("what was refused left %s parts/references", got)
			}
		})
	}
}

// again deletes session a, and makes it anew with n entries.
func again(s journal.Store, n int64) error {
	err := s.Delete(ctx, "a")
	for i := int64(0); i < n && err == nil; i++ {
		err = s.Append(ctx, "a", i, begun())
	}
	return err
}

// forked deletes session a, of which a fork keeps what is before and at an entry.
func forked(s journal.Store, at int64) error {
	if err := s.Append(ctx, "f", at, journal.Entry{Data: journal.SessionCreated{Parent: "a", At: at}}); err != nil {
		return err
	}
	return s.Delete(ctx, "a")
}

func TestASessionMadeAnewIsNotTakenForTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := running(t, path, "a", 3)
	other := open(t, path)
	must(t, again(other, 3))
	must(t, s.Append(ctx, "a", 3, driven(4))) // it has three entries, whoever wrote them
	var got []journal.Kind
	for e, err := range other.Read(ctx, "a", 0) {
		must(t, err)
		got = append(got, e.Data.Kind())
	}
	if fmt.Sprint(got) != "[run.started run.started run.started tool.started]" {
		t.Errorf("got %v", got)
	}
}

func TestWhatWasTakenBackIsNotKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := running(t, path, "a", 3)
	sqlite.TakeBack(t, s, "a", 3, driven(4))
	if err := s.Append(ctx, "a", 4, driven(5)); !errdefs.Conflict.Is(err) {
		t.Errorf("behind an entry that is not there: %v", err)
	}
	must(t, s.Append(ctx, "a", 3, driven(4)))
	if n := count(t, s, "a"); n != 4 {
		t.Errorf("%d entries", n)
	}
}

// While a run is under way the row of its session is not written with each entry. Nobody sees that, and others that open the file don't.
func TestASessionIsListedAsFarAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := running(t, path, "a", 1)
	other := open(t, path)
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	check := func(seq int64, status string) {
		t.Helper()
		for _, s := range []journal.Store{s, other} {
			if got := line(t, s, "a"); got.Seq != seq || !got.Updated.Equal(at) || got.Status != status || got.Agent != "a" || got.User != "ann" {
				t.Errorf("got %+v, want entry %d of %v, %s", got, seq, at, status)
			}
			if n := count(t, s, "a"); n != seq {
				t.Errorf("%d entries, want %d", n, seq)
			}
		}
	}
	put := func(after int64, data journal.Data) {
		t.Helper()
		at = at.Add(time.Hour)
		must(t, s.Append(ctx, "a", after, journal.Entry{Run: "r1", Time: at, Data: data}))
	}
	put(1, journal.ToolStarted{})
	check(2, "running")
	put(2, journal.Parked{})
	check(3, "interrupted")
	put(3, journal.Answered{})
	check(4, "interrupted")
	put(4, journal.Resumed{Owner: "o"})
	put(5, journal.ToolStarted{})
	check(6, "running")
	put(6, journal.RunFinished{Status: "completed"})
	check(7, "completed")
	must(t, s.Append(ctx, "b", 0, said("x")))
	var names []string
	for i, err := range other.Sessions(ctx, journal.Query{}) {
		must(t, err)
		names = append(names, i.Session)
	}
	if fmt.Sprint(names) != "[a b]" {
		t.Errorf("the newest is first: %v", names)
	}
}

// A file of version 1 has how far a session is in its row, always.
func TestAFileOfVersion1GoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := running(t, path, "a", 3)
	must(t, s.Append(ctx, "done", 0, begun(), journal.Entry{Run: "r1", Data: journal.RunFinished{Status: "completed"}}))
	must(t, s.Close())
	change(t, path, "UPDATE sessions SET seq = 3, updated = (SELECT time FROM entries WHERE id = num << 32 | 3) WHERE id = 'a'", "ALTER TABLE sessions DROP COLUMN dir", "PRAGMA user_version = 1")
	s = open(t, path)
	must(t, s.Append(ctx, "a", 3, driven(4)))
	must(t, s.Append(ctx, "done", 2, said("x")))
	if a, done := line(t, s, "a"), line(t, s, "done"); a.Seq != 4 || done.Seq != 3 || count(t, s, "a") != 4 || count(t, s, "done") != 3 {
		t.Errorf("got %+v and %+v", a, done)
	}
	must(t, s.Close())
	if v := raw(t, path, "PRAGMA user_version"); v != "3" {
		t.Errorf("version %s: a program that knows version 1 only would go on with it", v)
	}
}

// What an append takes while a run is under way: three statements, one page of the file, and so many allocations.
func TestWhatAnAppendTakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := running(t, path, "a", 3)
	must(t, sqlite.Checkpoint(s))
	const appends = 200
	statements, seq, allocs := sqlite.Statements(s), int64(3), math.Inf(1)
	for range appends / 2 {
		allocs = min(allocs, testing.AllocsPerRun(1, func() { // which does it twice
			must(t, s.Append(ctx, "a", seq, driven(seq)))
			seq++
		}))
	}
	if got := float64(sqlite.Statements(s)-statements) / appends; got != 3 {
		t.Errorf("%.2f statements", got)
	}
	if got := commits(t, path); got != appends {
		t.Errorf("%d commits of %d appends", got, appends)
	}
	// Now and then a page is full: then its neighbour and what is above them change, too.
	if got := float64(len(frames(t, path))) / appends; got > 1.2 {
		t.Errorf("%.2f pages", got)
	}
	const most = 24
	if allocs > most {
		t.Errorf("%.0f allocations, %d were enough", allocs, most)
	}
}

// A file of version 2 knows no directories: they are those of the last runs on record.
func TestAFileOfVersion2GetsItsDirectories(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	directories(t, s)
	before := all(t, s)
	for i := range before {
		if strings.HasPrefix(before[i].Session, "b/call") { // runs of tasks said none then
			before[i].Dir = "/work/b"
		}
	}
	must(t, s.Close())
	change(t, path, "ALTER TABLE sessions DROP COLUMN dir", "PRAGMA user_version = 2")
	s = open(t, path)
	if diff := cmp.Diff(before, all(t, s)); diff != "" {
		t.Errorf("the sessions changed:\n%s", diff)
	}
	must(t, s.Append(ctx, "long", 102, driven(102)))
	if i := line(t, s, "long"); i.Seq != 103 || i.Dir != "/work/b" {
		t.Errorf("it goes on as %+v", i)
	}
	must(t, s.Close())
	if v := raw(t, path, "PRAGMA user_version"); v != "3" {
		t.Errorf("version %s", v)
	}
	change(t, path, "ALTER TABLE sessions DROP COLUMN dir", "UPDATE entries SET data = CAST('x' AS BLOB) WHERE kind = 'run.started' AND id >> 32 = 1", "PRAGMA user_version = 2")
	s = open(t, path)
	if long, task := line(t, s, "long"), line(t, s, "b/call_1"); long.Dir != "" || task.Dir != "/work/b" {
		t.Errorf("beside one that can't be read: %+v, %+v", long, task)
	}
}

// directories makes sessions of all kinds.
func directories(t *testing.T, s journal.Store) {
	t.Helper()
	in := func(dir string) journal.Entry {
		return journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "x", Owner: "o", Attempt: 1, Dir: dir, Inputs: journal.Vars{"dir": "/no", "nul": "\x00"}}}
	}
	add := func(session string, after int64, entries ...journal.Entry) {
		t.Helper()
		must(t, s.Append(ctx, session, after, entries...))
	}
	add("long", 0, in("/work/a"), in("/work/b"))
	for n := range int64(100) {
		add("long", n+2, driven(n+2))
	}
	add("b", 0, journal.Entry{Data: journal.SessionCreated{}}, in("/work/b"))
	add("b/call_1", 0, journal.Entry{Data: journal.SessionCreated{TaskOf: "b"}}, in(""))
	add("b/call_1/call_2", 0, journal.Entry{Data: journal.SessionCreated{TaskOf: "b/call_1"}}, in(""))
	add("b/no task", 0, journal.Entry{Data: journal.SessionCreated{}}, in(""))
	add("none", 0, in("/work/a"), in(""))
	add("empty", 0, said("x"))
	add("gone", 0, in("/work/a"), said("x"), in("/work/b"))
	for name, at := range map[string]int64{"f1": 1, "f2": 2, "f3": 3} {
		add(name, at, journal.Entry{Data: journal.SessionCreated{Parent: "gone", At: at}})
	}
	add("f of f", 2, journal.Entry{Data: journal.SessionCreated{Parent: "f3", At: 2}})
	must(t, s.Delete(ctx, "gone"))
}

func all(t *testing.T, s journal.Store) (all []journal.Info) {
	t.Helper()
	for i, err := range s.Sessions(ctx, journal.Query{}) {
		must(t, err)
		all = append(all, i)
	}
	return all
}
