package sqlite

import (
	"context"
	"fmt"
)

// Commits is how many transactions were tried.
func Commits(s *Store) int64 {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return s.queue.commits
}

// Waiting is how many writers are queued, the leader included while it waits for the file.
func Waiting(s *Store) int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.waiting)
}

// Rows counts what the tables have.
func Rows(s *Store) string {
	var sessions, entries int
	err := s.reader.QueryRowContext(context.Background(), "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM entries)").Scan(&sessions, &entries)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(sessions, "/", entries)
}

// LimitEntries lowers the limit of an entry's size until the function that it gives is called.
func LimitEntries(n int) (restore func()) {
	before := maxEntry
	maxEntry = n
	return func() { maxEntry = before }
}
