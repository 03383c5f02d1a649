package journal_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/costs"
)

// long opens a session of a run under way.
func long(t testing.TB, s journal.Store, length int) *journal.Log {
	t.Helper()
	costs.Fill(t, s, "s", length)
	return open(t, s)
}

// counting counts the entries that are read.
type counting struct {
	journal.Store
	read int64
}

func (s *counting) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		for e, err := range s.Store.Read(ctx, session, after) {
			if s.read++; !yield(e, err) {
				return
			}
		}
	}
}

func TestALogsAppendCostsAsMuchAfterManyEntriesAsAfterFew(t *testing.T) {
	costs.OneMore(t, func(t *testing.T, length int) costs.Meter {
		s := &counting{Store: journal.Memory()}
		l := long(t, s, length)
		return costs.Meter{
			Append: func(e journal.Entry) error { return l.Append(ctx, e) },
			Read:   func() int64 { return s.read },
		}
	})
}

func TestAForkCostsAsMuchOfManyEntriesAsOfFew(t *testing.T) {
	s := &counting{Store: journal.Memory()}
	costs.Forks(t, s, func() int64 { return s.read })
}

func BenchmarkAppendAtLength(b *testing.B) {
	for _, length := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			l := long(b, journal.Memory(), length)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must(b, l.Append(ctx, keyed("tool", fmt.Sprint("new", i), journal.ToolFinished{Call: "x", Content: "ok"})))
			}
		})
	}
}

func BenchmarkResume(b *testing.B) { costs.Resume(b, journal.Memory()) }
