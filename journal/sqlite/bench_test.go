package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// text is about what a tool gives back.
var text = strings.Repeat("some output of some tool\n", 40)

// BenchmarkAppend shows what an append with its fsync costs when sessions do it at once.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(sessions, "-sessions"), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "j.db"))
			before := sqlite.Commits(s)
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range sessions {
				wg.Go(func() {
					for n := range int64(b.N/sessions + 1) {
						if err := s.Append(ctx, fmt.Sprint(i), n, said(text)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(sqlite.Commits(s)-before)/float64((b.N/sessions+1)*sessions), "commits/append")
			b.ReportMetric(float64((b.N/sessions+1)*sessions)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchmarkAppendAtLength shows that an append does not care how long its session is.
func BenchmarkAppendAtLength(b *testing.B) {
	for _, length := range []int64{10, 1000, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			s, n := long(b, length)
			b.ResetTimer()
			for b.Loop() {
				must(b, s.Append(ctx, "a", n, said(text)))
				n++
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s, n := long(b, 10_000)
	b.Run("10000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range s.Read(ctx, "a", 0) {
				must(b, err)
			}
		}
	})
	b.Run("the last one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range s.Read(ctx, "a", n-1) {
				must(b, err)
			}
		}
	})
}

func BenchmarkSessions(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "j.db"))
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 500 {
				must(b, s.Append(ctx, fmt.Sprint(i, ".", j), 0, said("x")))
			}
		})
	}
	wg.Wait()
	for b.Loop() {
		for _, err := range s.Sessions(ctx, journal.Query{Limit: 20}) {
			must(b, err)
		}
	}
}

// long makes a session of a length.
func long(b *testing.B, length int64) (*sqlite.Store, int64) {
	b.Helper()
	s := open(b, filepath.Join(b.TempDir(), "j.db"))
	for n := int64(0); n < length; {
		batch := make([]journal.Entry, min(1000, length-n))
		for i := range batch {
			batch[i] = said(text)
		}
		must(b, s.Append(ctx, "a", n, batch...))
		n += int64(len(batch))
	}
	return s, length
}
