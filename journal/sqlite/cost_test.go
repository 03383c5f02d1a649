package sqlite_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/costs"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

func TestAnAppendCostsAsMuchAfterManyEntriesAsAfterFew(t *testing.T) {
	costs.OneMore(t, func(t *testing.T, length int) costs.Meter {
		path := filepath.Join(t.TempDir(), "j.db")
		s := open(t, path)
		costs.Fill(t, s, "a", length)
		must(t, sqlite.Forget(s))
		n := int64(length)
		return costs.Meter{
			Append:  func(e journal.Entry) error { n++; return s.Append(ctx, "a", n-1, e) },
			Settle:  func() { must(t, sqlite.Checkpoint(s)) },
			Written: func() int64 { return size(t, path+"-wal") },
			Read:    pagesRead(t),
		}
	})
}

// pagesRead counts what this process reads, of files of any kind, where the system counts it.
func pagesRead(t *testing.T) func() int64 {
	const system = "/proc/self/io"
	if _, err := os.Stat(system); err != nil {
		return nil
	}
	return func() (bytes int64) {
		b, err := os.ReadFile(system)
		must(t, err)
		_, err = fmt.Sscanf(string(b), "rchar: %d", &bytes)
		must(t, err)
		return bytes / 4096
	}
}

func TestAStepOfALongRunTakesAsManyBytesAsOneOfAShortRun(t *testing.T) {
	s, stored := growing(t)
	costs.Steps(t, s, stored)
}

// growing gives a store, and a function for the size of its file.
func growing(t testing.TB) (*sqlite.Store, func() int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	return s, func() int64 {
		must(t, sqlite.Checkpoint(s))
		return size(t, path)
	}
}

func TestAForkCostsAsMuchOfManyEntriesAsOfFew(t *testing.T) {
	s, _ := growing(t)
	costs.Forks(t, s, nil)
}

func BenchmarkStep(b *testing.B) {
	s, stored := growing(b)
	costs.Grow(b, s, stored)
}

// The store does something else whenever they append, as it does with many at work: all that come meanwhile share the next transaction.
func TestSessionsThatAppendAtOnceShareTheirCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	const sessions, rounds = 64, 5
	round := func(n int64) {
		var wg sync.WaitGroup
		defer wg.Wait()
		sqlite.Busy(t, s, func() {
			for i := range sessions {
				wg.Go(func() {
					if err := s.Append(ctx, fmt.Sprint("s", i), n, said(text)); err != nil {
						t.Error(err)
					}
				})
			}
			for sqlite.Waiting(s) < sessions {
				runtime.Gosched()
			}
		})
	}
	round(0)
	must(t, sqlite.Checkpoint(s))
	before := sqlite.Commits(s)
	for n := range int64(rounds) {
		round(n + 1)
	}
	const appends = sessions * rounds
	tried, written := sqlite.Commits(s)-before-rounds, commits(t, path) // without those that kept it busy, which write nothing
	t.Logf("%d appends of %d sessions: %d transactions, %d commits in the log", appends, sessions, tried, written)
	if tried > appends/16 || written > appends/16 {
		t.Errorf("%d appends of %d sessions at once took %d transactions and %d commits", appends, sessions, tried, written)
	}
	if written < rounds {
		t.Errorf("the log shows %d commits of %d rounds", written, rounds)
	}
}

// commits counts the transactions in the write-ahead log, by its format: after 32 bytes frames of a page with 24 bytes before it; the second
// word of a frame that ends a transaction is the size of the file, 0 in any other.
func commits(t *testing.T, path string) (n int) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	must(t, err)
	frame := 24 + int(binary.BigEndian.Uint32(log[8:]))
	for at := 32; at+frame <= len(log); at += frame {
		if binary.BigEndian.Uint32(log[at+4:]) > 0 {
			n++
		}
	}
	return n
}

func BenchmarkResume(b *testing.B) { costs.Resume(b, open(b, filepath.Join(b.TempDir(), "j.db"))) }
