package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pgstore"
)

// Renew changes how long others notify a store, and how often it renews that, until the function that it gives is called.
func Renew(lasts, every time.Duration) (restore func()) {
	f, r := pgstore.FollowedFor, pgstore.RenewEvery
	pgstore.FollowedFor, pgstore.RenewEvery = lasts, every
	return func() { pgstore.FollowedFor, pgstore.RenewEvery = f, r }
}

// Setting asks a connection of the store for a setting.
func Setting(t testing.TB, s *Store, name string) (value string) {
	t.Helper()
	if err := s.pool.QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Limit lowers the limits of an entry's and an append's size until the function that it gives is called.
func Limit(entry, all int) (restore func()) {
	e, a := maxEntry, maxAppend
	maxEntry, maxAppend = entry, all
	return func() { maxEntry, maxAppend = e, a }
}

// Touched is how many pages of tables and indexes were looked at, by a store with one connection and those before it.
func Touched(t testing.TB, s *Store) (pages int64) {
	t.Helper()
	const count = "SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint FROM pg_statio_user_tables"
	if _, err := s.pool.Exec(context.Background(), "SELECT pg_stat_force_next_flush()"); err != nil { // else it tells once a second
		t.Fatal(err)
	}
	if err := s.pool.QueryRow(context.Background(), count).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	return pages
}

// Made is the SQL that makes the schema pawl of this version, and its number.
func Made() (sql string, v int) {
	s := pgstore.Schema{Name: "pawl", Migrations: migrations}
	return s.SQL(0), s.Version()
}
