package postgres_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
)

// shot is an entry with a file of n bytes of noise, always the same.
func shot(n int) journal.Entry {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return journal.Entry{Run: "r1", Data: journal.Said{Message: message.New(message.RoleUser, message.File{MIME: "image/png", Data: string(b)})}}
}

// kept counts the parts and the references to them, after a look whether the entries have as many.
func kept(t testing.TB, dsn string) string {
	t.Helper()
	const refs = "SELECT coalesce(sum(length(parts) - length(replace(parts, ':', ''))), 0)::text FROM pawl.entries"
	counted, there := ask(t, dsn, "SELECT coalesce(sum(refs), 0)::text FROM pawl.parts"), ask(t, dsn, refs)
	if counted != there {
		t.Errorf("%s references are counted, there are %s", counted, there)
	}
	return ask(t, dsn, "SELECT count(*)::text FROM pawl.parts") + "/" + there
}

func TestWhatIsAppendedOftenIsWrittenOnce(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	e := shot(1 << 20)
	for n := range int64(10) {
		must(t, s.Append(ctx, "a", n, e))
		must(t, s.Append(ctx, fmt.Sprint("b", n), 0, said("x"), e))
	}
	if got := kept(t, dsn); got != "1/20" {
		t.Errorf("%s parts/references", got)
	}
	if got := ask(t, dsn, "SELECT (pg_total_relation_size('pawl.parts') + pg_total_relation_size('pawl.entries') < 2000000)::text"); got != "true" {
		t.Errorf("the tables have %s bytes", ask(t, dsn, "SELECT pg_total_relation_size('pawl.parts') || '+' || pg_total_relation_size('pawl.entries')"))
	}
	if n := count(t, s, "a"); n != 10 {
		t.Errorf("%d entries", n)
	}
	must(t, s.Delete(ctx, "a"))
	if got := kept(t, dsn); got != "1/10" {
		t.Errorf("%s parts/references", got)
	}
	for n := range 10 {
		must(t, s.Delete(ctx, fmt.Sprint("b", n)))
	}
	if got := kept(t, dsn); got != "0/0" {
		t.Errorf("%s parts/references are left", got)
	}
}

func TestPartsGoWithTheLastForkThatSharesThem(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	must(t, s.Append(ctx, "p", 0, shot(10_000), shot(20_000), shot(30_000)))
	must(t, s.Append(ctx, "f", 2, journal.Entry{Data: journal.SessionCreated{Parent: "p", At: 2}}, shot(10_000)))
	for _, step := range []struct{ drop, want string }{{"", "3/4"}, {"p", "2/3"}, {"f", "0/0"}} {
		if step.drop != "" {
			must(t, s.Delete(ctx, step.drop))
		}
		if got := kept(t, dsn); got != step.want {
			t.Errorf("without %q there are %s parts/references, want %s", step.drop, got, step.want)
		}
	}
}

// Sessions come and go, each with several of the same few parts, forks too, on many connections of two stores.
func TestAppendsAndDeletionsOfTheSamePartsAtOnceLoseNoneAndLeaveNone(t *testing.T) {
	dsn := pgtest.DSN(t)
	stores := []*postgres.Store{open(t, dsn+" pool_max_conns=6"), open(t, dsn+" pool_max_conns=6")}
	texts := make([]string, 5)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprint("text ", i, ", "), 1000)
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			s, name := stores[i%2], fmt.Sprint("s", i)
			for round := range 30 {
				var entries []journal.Entry
				for j := range 3 {
					entries = append(entries, said(texts[(i*round+j*(i+1))%len(texts)]))
				}
				if err := s.Append(ctx, name, 0, entries...); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				err := s.Append(ctx, name+"f", 2, journal.Entry{Data: journal.SessionCreated{Parent: name, At: 2}}, entries[1])
				if err != nil {
					t.Errorf("fork: %v", err)
					return
				}
				for _, gone := range []string{name, name + "f"} {
					if n := count(t, s, name+"f"); n != 4 {
						t.Errorf("the fork has %d entries", n)
					}
					if round == 29 && gone != name {
						return // some stay
					}
					if err := stores[(i+round)%2].Delete(ctx, gone); err != nil {
						t.Errorf("delete: %v", err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	kept(t, dsn)
	for i := range 12 {
		if n := count(t, stores[0], fmt.Sprint("s", i, "f")); n != 4 {
			t.Errorf("fork %d has %d entries", i, n)
		}
		must(t, stores[0].Delete(ctx, fmt.Sprint("s", i, "f")))
	}
	if got := kept(t, dsn); got != "0/0" {
		t.Errorf("%s parts/references are left", got)
	}
	for _, s := range stores {
		must(t, s.Close()) // a connection tells what it saw when it ends
	}
	if got := ask(t, dsn, "SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()"); got != "0" {
		t.Errorf("%s deadlocks", got)
	}
}

func TestADeletionThatIsUnderWayIsWaitedForByWhoNeedsItsPart(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	text := strings.Repeat("long ", 1000)
	must(t, s.Append(ctx, "a", 0, said(text)))
	release := begin(t, dsn, "DELETE FROM pawl.parts") // as a deletion of the last that has it
	done := make(chan error, 1)
	go func() { done <- s.Append(ctx, "b", 0, said(text)) }()
	waiting(t, dsn, 1)
	release()
	must(t, <-done)
	if n := count(t, s, "b"); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestPeopleCanFollowAReferenceInTheTables(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	text := strings.Repeat("long ", 1000)
	must(t, s.Append(ctx, "a", 0, said(text)))
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	want := fmt.Sprintf(`{"message":{"role":"user","parts":[{"type":"text","text":""}]}} 58+5000:%s`, hash)
	if got := ask(t, dsn, "SELECT data || ' ' || parts FROM pawl.journal"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := ask(t, dsn, "SELECT convert_from(data, 'UTF8') FROM pawl.parts WHERE hash = '"+hash+"'"); got != text {
		t.Errorf("the part is %.100s", got)
	}
}

func TestDamageOfAPartIsNamed(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	for name, c := range map[string]struct{ sql, says string }{
		"missing":   {"DELETE FROM pawl.parts", "is missing: the data is damaged"},
		"altered":   {"UPDATE pawl.parts SET data = set_byte(data, 7, 0)", "was altered: the data is damaged"},
		"misplaced": {"UPDATE pawl.entries SET parts = '7' || parts WHERE parts <> ''", "no string is empty: the data is damaged"},
	} {
		must(t, s.Append(ctx, "a", 0, said("short"), said(strings.Repeat("long ", 1000))))
		execute(t, dsn, c.sql)
		var last error
		for _, err := range s.Read(ctx, "a", 0) {
			last = err
		}
		fails(t, name, last, errdefs.Internal, c.says)
		fails(t, name, last, errdefs.Internal, ": entry 2 of session a: part ")
		must(t, s.Delete(ctx, "a"))
	}
	must(t, s.Append(ctx, "a", 0, said(strings.Repeat("long ", 1000))))
	execute(t, dsn, "UPDATE pawl.entries SET parts = 'x'")
	fails(t, "delete", s.Delete(ctx, "a"), errdefs.Internal, "its row is damaged")
}

// BenchmarkAppendOfAText shows what a text costs that is kept apart, new or on record already.
func BenchmarkAppendOfAText(b *testing.B) {
	for _, n := range []int{1 << 10, 4 << 10, 16 << 10, 256 << 10, 1 << 20} {
		for _, how := range []string{"new", "again"} {
			b.Run(fmt.Sprint(n, "/", how), func(b *testing.B) {
				s := open(b, pgtest.DSN(b))
				text := strings.Repeat("x", n)
				b.ReportAllocs()
				seq := int64(0)
				for b.Loop() {
					if how == "new" {
						text = fmt.Sprintf("%012d", seq) + text[12:]
					}
					must(b, s.Append(ctx, "a", seq, said(text)))
					seq++
				}
			})
		}
	}
}
