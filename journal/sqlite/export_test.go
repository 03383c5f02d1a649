package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/journal"
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

// Parts counts the parts that are kept, and the references to them.
func Parts(s *Store) string {
	var parts, counted, refs int
	err := s.reader.QueryRowContext(context.Background(), "SELECT (SELECT count(*) FROM parts), (SELECT count(*) FROM part_refs), (SELECT coalesce(sum(refs), 0) FROM part_refs)").Scan(&parts, &counted, &refs)
	if err != nil || parts != counted {
		return fmt.Sprint(parts, " parts, ", counted, " counters: ", err)
	}
	return fmt.Sprint(parts, "/", refs)
}

// LimitEntries lowers the limit of an entry's size until the function that it gives is called.
func LimitEntries(n int) (restore func()) {
	before := maxEntry
	maxEntry = n
	return func() { maxEntry = before }
}

// Checkpoint moves all of the write-ahead log into the file and leaves the log empty. From then on the log only grows, until the next call.
// Nobody may be writing.
func Checkpoint(s *Store) error {
	var busy, pages, moved int64
	if err := s.tx.run("PRAGMA wal_autocheckpoint=0"); err != nil {
		return err
	}
	err := s.tx.ask("PRAGMA wal_checkpoint(TRUNCATE)", &busy, &pages, &moved)
	if err == nil && busy != 0 {
		err = errors.New("somebody reads or writes")
	}
	return err
}

// Setting is a setting of the connection that writes.
func Setting(s *Store, name string) (value int64, err error) {
	return value, s.tx.ask("PRAGMA "+name, &value)
}

// Busy does something while a transaction of the store is under way.
func Busy(t testing.TB, s *Store, do func()) {
	t.Helper()
	err := s.write(context.Background(), "test", 0, wish(func(*writing) error {
		do()
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// Forget empties the memory of the connection that writes, and leaves it room for a few pages only, so that it reads from the file what it
// looks at.
func Forget(s *Store) error {
	return s.tx.run("PRAGMA cache_size=10; PRAGMA shrink_memory")
}

// Statements is how many statements the connection that writes has executed.
func Statements(s *Store) int64 { return s.tx.statements }

// TakeBack appends in a transaction that fails then.
func TakeBack(t testing.TB, s *Store, session string, after int64, e journal.Entry) {
	t.Helper()
	data, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	e.Session, e.Seq = session, after+1
	failed := errors.New("failed")
	err = s.write(context.Background(), "test", 0, wish(func(tx *writing) error {
		a := addition{session: session, after: after, entries: []encoded{{Entry: e, data: data}}}
		if err := a.do(tx); err != nil {
			t.Error(err)
		}
		return failed
	}))
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
}

// Lookout gives what a store looks for others' writes with, while the sessions 0 to n-1 are followed.
func Lookout(t testing.TB, s *Store, n int) (look func() error, end func()) {
	t.Helper()
	s.bell.Listen = nil // the benchmark looks
	for i := range n {
		_, _ = s.bell.Watch(fmt.Sprint(i))
	}
	l, err := s.newLookout()
	if err != nil {
		t.Fatal(err)
	}
	return l.look, l.close
}
