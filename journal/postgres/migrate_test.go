package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
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
