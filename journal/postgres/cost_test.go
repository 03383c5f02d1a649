package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/costs"
	"github.com/pawl-dev/pawl/journal/postgres"
)

// still keeps the server from cleaning up on its own account in a database, which writes too.
const still = "ALTER TABLE pawl.entries SET (autovacuum_enabled = off); ALTER TABLE pawl.sessions SET (autovacuum_enabled = off)"

func TestAnAppendCostsAsMuchAfterManyEntriesAsAfterFew(t *testing.T) {
	costs.OneMore(t, func(t *testing.T, length int) costs.Meter {
		dsn := pgtest.DSN(t)
		s := open(t, dsn+" pool_max_conns=1")
		execute(t, dsn, still)
		costs.Fill(t, s, "a", length)
		execute(t, dsn, "CHECKPOINT") // none will come soon: the first change of a page after one writes all of it
		n := int64(length)
		return costs.Meter{
			Append:  func(e journal.Entry) error { n++; return s.Append(ctx, "a", n-1, e) },
			Written: func() int64 { return number(t, dsn, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint") },
			Read:    func() int64 { return postgres.Touched(t, s) },
		}
	})
}

// number asks the database directly.
func number(t testing.TB, dsn, query string) (n int64) {
	t.Helper()
	c, err := pgx.Connect(ctx, dsn)
	must(t, err)
	must(t, c.QueryRow(ctx, query).Scan(&n))
	must(t, c.Close(ctx))
	return n
}

func TestAStepOfALongRunTakesAsManyBytesAsOneOfAShortRun(t *testing.T) {
	s, stored := growing(t)
	costs.Steps(t, s, stored)
}

// growing gives a store, and a function for the size of its tables and indexes, without the maps of free space, which begin with three pages.
func growing(t testing.TB) (*postgres.Store, func() int64) {
	t.Helper()
	const size = `SELECT sum(pg_relation_size(oid))::bigint FROM pg_class WHERE relnamespace = 'pawl'::regnamespace
		OR oid IN (SELECT reltoastrelid FROM pg_class WHERE relnamespace = 'pawl'::regnamespace)`
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	execute(t, dsn, still)
	return s, func() int64 { return number(t, dsn, size) }
}

func BenchmarkStep(b *testing.B) {
	s, stored := growing(b)
	costs.Grow(b, s, stored)
}

func BenchmarkResume(b *testing.B) { costs.Resume(b, open(b, pgtest.DSN(b))) }
