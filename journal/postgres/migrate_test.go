package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
)

// first makes a journal of version 1 with a session of three entries.
func first(t *testing.T) (dsn string) {
	t.Helper()
	dsn = pgtest.DSN(t)
	s := open(t, dsn)
	must(t, s.Append(ctx, "old", 0, said("1"), said("2"), said("3")))
	must(t, s.Close())
	execute(t, dsn, "DROP TABLE pawl.followed", "ALTER TABLE pawl.sessions DROP COLUMN dir", "UPDATE pawl.schema_version SET version = 1")
	return dsn
}

func greet(s *postgres.Store, name string, _ func(...any)) error {
	return s.Append(ctx, name, 0, said("hello"))
}

func TestAnOlderJournalIsBroughtUpToDateOnceHoweverManyOpenIt(t *testing.T) {
	dsn := first(t)
	var wg sync.WaitGroup
	var names []string
	for i := range 3 {
		name := fmt.Sprint("process ", i)
		names = append(names, name)
		cmd, _, stderr := startChild(t, "greet", dsn, name)
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, stderr)
			}
		})
	}
	for i := range 12 {
		name := fmt.Sprint("store ", i)
		names = append(names, name)
		wg.Go(func() {
			s, err := postgres.Open(ctx, dsn)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer func() { _ = s.Close() }()
			if err := greet(s, name, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	s := open(t, dsn)
	for _, name := range names {
		if n := count(t, s, name); n != 1 {
			t.Errorf("%s has %d entries", name, n)
		}
	}
	must(t, s.Append(ctx, "old", 3, said("4")))
	if got := ask(t, dsn, "SELECT string_agg(version::text, ',') FROM pawl.schema_version"); got != "3" || count(t, s, "old") != 4 {
		t.Errorf("version %s, %d entries", got, count(t, s, "old"))
	}
}

func TestWhoMayNotBringItUpToDateIsToldWhoMay(t *testing.T) {
	dsn := first(t)
	execute(t, dsn, "CREATE ROLE newcomer LOGIN", "GRANT USAGE ON SCHEMA pawl TO newcomer", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pawl TO newcomer")
	_, err := postgres.Open(ctx, dsn+" user=newcomer")
	fails(t, "open", err, errdefs.Unauthorized, "as the role that owns the schema")
	if got := ask(t, dsn, "SELECT version::text FROM pawl.schema_version"); got != "1" {
		t.Errorf("version %s, and nothing was done", got)
	}
}

// A journal of version 2 knows no directories: they are those of the last runs on record.
func TestAJournalOfVersion2GetsItsDirectories(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	directories(t, s)
	before := all(t, s)
	for i := range before {
		if strings.HasPrefix(before[i].Session, "b/call") { // runs of tasks said none then
			before[i].Dir = "/work/b"
		}
	}
	must(t, s.Close())
	old := []string{"ALTER TABLE pawl.sessions DROP COLUMN dir", "UPDATE pawl.schema_version SET version = 2"}
	execute(t, dsn, old...)
	s = open(t, dsn)
	if diff := cmp.Diff(before, all(t, s)); diff != "" {
		t.Errorf("the sessions changed:\n%s", diff)
	}
	must(t, s.Append(ctx, "long", 12, said("x")))
	if i := line(t, s, "long"); i.Seq != 13 || i.Dir != "/work/b" {
		t.Errorf("it goes on as %+v", i)
	}
	must(t, s.Close())
	execute(t, dsn, append(old, "UPDATE pawl.entries SET data = 'x' WHERE kind = 'run.started' AND session = (SELECT num FROM pawl.sessions WHERE id = 'long')")...)
	s = open(t, dsn)
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
	for n := range int64(10) {
		add("long", n+2, said("x"))
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
