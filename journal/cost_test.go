package journal_test

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/costs"
)

// long opens a session of a run under way.
func long(t testing.TB, length int) *journal.Log {
	t.Helper()
	s := journal.Memory()
	costs.Fill(t, s, "s", length)
	return open(t, s)
}

func TestALogsAppendCostsAsMuchAfterManyEntriesAsAfterFew(t *testing.T) {
	costs.OneMore(t, func(t *testing.T, length int) costs.Meter {
		l := long(t, length)
		return costs.Meter{Append: func(e journal.Entry) error { return l.Append(ctx, e) }}
	})
}

func BenchmarkAppendAtLength(b *testing.B) {
	for _, length := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			l := long(b, length)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				must(b, l.Append(ctx, keyed("tool", fmt.Sprint("new", i), journal.ToolFinished{Call: "x", Content: "ok"})))
			}
		})
	}
}

func BenchmarkResume(b *testing.B) { costs.Resume(b, journal.Memory()) }
