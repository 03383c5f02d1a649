package postgres

import (
	"context"
	"testing"
)

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
