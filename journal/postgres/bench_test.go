package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
)

// output is about what a tool gives back.
var output = strings.Repeat("some output of some tool\n", 40)

// BenchmarkAppend shows what a durable append costs when sessions do it at once, each on a connection of its own, and nobody follows them.
func BenchmarkAppend(b *testing.B) {
	for _, sessions := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(sessions, "-sessions"), func(b *testing.B) { appends(b, sessions, 0, false) })
	}
}

// BenchmarkAppendFollowed shows what it costs when some of 64 are followed: by the same store, which is not notified, or by another one.
func BenchmarkAppendFollowed(b *testing.B) {
	for _, elsewhere := range []bool{false, true} {
		for _, followed := range []int{0, 1, 8, 64} {
			b.Run(fmt.Sprintf("%d-of-64-elsewhere-%v", followed, elsewhere), func(b *testing.B) { appends(b, 64, followed, elsewhere) })
		}
	}
}

func appends(b *testing.B, sessions, followed int, elsewhere bool) {
	dsn := pgtest.DSN(b)
	s := open(b, fmt.Sprint(dsn, " pool_max_conns=", sessions))
	follower := s
	if elsewhere {
		follower = open(b, dsn)
	}
	for i := range followed {
		_, stop := follower.Watch(ctx, fmt.Sprint(i))
		b.Cleanup(stop)
	}
	each := func(from, to int64) {
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range sessions {
			wg.Go(func() {
				for n := from; n < to; n++ {
					if err := s.Append(ctx, fmt.Sprint(i), n, said(output)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
	}
	const before = 20 // until the connections are there
	each(0, before)
	b.ReportAllocs()
	b.ResetTimer()
	each(before, before+int64(b.N/sessions+1))
	b.ReportMetric(float64((b.N/sessions+1)*sessions)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkAppendAtLength shows that an append does not care how long its session is.
func BenchmarkAppendAtLength(b *testing.B) {
	for _, length := range []int64{10, 1000, 100_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			s, n := long(b, length)
			b.ResetTimer()
			for b.Loop() {
				must(b, s.Append(ctx, "a", n, said(output)))
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
	s := open(b, pgtest.DSN(b)+" pool_max_conns=20")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 500 {
				if err := s.Append(ctx, fmt.Sprint(i, ".", j), 0, said("x")); err != nil {
					b.Error(err)
				}
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
func long(b *testing.B, length int64) (*postgres.Store, int64) {
	b.Helper()
	s := open(b, pgtest.DSN(b))
	for n := int64(0); n < length; {
		batch := make([]journal.Entry, min(1000, length-n))
		for i := range batch {
			batch[i] = said(output)
		}
		must(b, s.Append(ctx, "a", n, batch...))
		n += int64(len(batch))
	}
	return s, length
}

// BenchmarkGettingRid shows what it takes to delete 1,000 sessions of 100 entries, some 1 KB each, beside 1,000 that stay: by what the page shows, one by one, and with their schema.
func BenchmarkGettingRid(b *testing.B) {
	for _, c := range []struct {
		how string
		do  func(s *postgres.Store, dsn string) error
	}{
		{"in bulk", func(_ *postgres.Store, dsn string) error { execute(b, dsn, page(b, "BEGIN")...); return nil }},
		{"prune", func(s *postgres.Store, _ string) error {
			gone, err := journal.Prune(ctx, s, journal.Retention{Before: time.Now().AddDate(0, 0, -90)})
			if err == nil && len(gone) != 1000 {
				err = fmt.Errorf("%d are gone", len(gone))
			}
			return err
		}},
		{"with the schema", func(_ *postgres.Store, dsn string) error { execute(b, dsn, "DROP SCHEMA pawl CASCADE"); return nil }},
	} {
		b.Run(c.how, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dsn := pgtest.DSN(b)
				s := open(b, dsn)
				entries := make([]journal.Entry, 100)
				for i := range 2000 {
					for j := range entries {
						entries[j] = said(output)
						if i%2 == 0 {
							entries[j].Time = time.Now().AddDate(0, 0, -91)
						}
					}
					must(b, s.Append(ctx, fmt.Sprint(i), 0, entries...))
				}
				execute(b, dsn, "VACUUM ANALYZE", "CHECKPOINT")
				b.StartTimer()
				must(b, c.do(s, dsn))
			}
		})
	}
}
