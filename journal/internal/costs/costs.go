// Package costs is what the gates and benchmarks of the journal's costs have in common: a run as agents have them, and what one more
// entry takes at the end of a short session and of a long one. Counts and bytes decide, never times.
package costs

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Margin is how much more than at the shorter length is no growth yet.
const Margin = 1.1

// StepEntries is how many entries a step has.
const StepEntries = 5

// Step gives the entries of a run's step n, with a tool call that gives 1 KB. Every step has as many bytes as any other, and other ones.
func Step(n int) []journal.Entry {
	step, call := fmt.Sprintf("%06d", n), fmt.Sprintf("toolu_%06d", n)
	called := journal.Called{ID: call, Name: "read", Input: fmt.Sprintf(`{"path":"internal/part%06d.go","offset":%d}`, n, 100_000+n)}
	cost := int64(1234)
	entry := func(op, id string, d journal.Data) journal.Entry {
		return journal.Entry{Run: "run-1", Key: journal.Key{Op: op, ID: id}, Data: d}
	}
	return []journal.Entry{
		entry("model", step, journal.ModelStarted{Model: "a-model-1"}),
		entry("model", step, journal.ModelFinished{
			Message: message.Assistant("Now the next file, "+step+", then the tests that go with it.", message.ToolCall{ID: call, Name: called.Name, Input: called.Input}),
			Usage:   model.Usage{Input: 123, Output: 45, CacheRead: 12_345}, CostMicros: &cost, Stop: model.StopTools, Model: "a-model-1", ID: "msg_" + step, Millis: 1234,
		}),
		entry("judge", call, journal.ToolJudged{Call: call, Verdict: "allow"}),
		entry("tool", call, journal.ToolStarted{Call: called}),
		entry("tool", call, journal.ToolFinished{Call: call, Name: called.Name, Content: strings.Repeat(step+" some output of some tool\n", 32), Outcome: journal.OutcomeOK, Millis: 12}),
	}
}

// Run gives the first entries of a run that is under way: its start, what somebody said, and steps.
func Run(entries int) []journal.Entry {
	run := []journal.Entry{
		{Run: "run-1", Data: journal.RunStarted{Agent: "coder", User: "ann", Owner: "host/1", Attempt: 1, Model: "a-model-1"}},
		{Run: "run-1", Data: journal.Said{Message: message.User("Go through the files, one by one.")}},
	}
	for n := 0; len(run) < entries; n++ {
		run = append(run, Step(n)...)
	}
	return run[:entries]
}

// Fill puts the first entries of a run into a new session, many at once.
func Fill(t testing.TB, s journal.Store, session string, entries int) {
	t.Helper()
	run := Run(entries)
	for n := 0; n < len(run); {
		batch := run[n:min(n+5000, len(run))]
		if err := s.Append(context.Background(), session, int64(n), batch...); err != nil {
			t.Fatal(err)
		}
		n += len(batch)
	}
}

// Meter is what one more entry is weighed with.
type Meter struct {
	Append  func(journal.Entry) error
	Settle  func()       // before a round: nothing of what was written before is to be counted in it; may be nil
	Written func() int64 // the bytes written so far; nil where nothing is
	Read    func() int64 // the pages, or the entries, read so far; nil where nobody counts
}

const (
	rounds  = 3 // the least of them counts: what else goes on in the process or the server is no part of the price
	appends = 40 * StepEntries
	deeper  = 4 // pages that a B-tree of many entries may have on the way to the last one
)

// Steps fails when a step of a run of 1,000 takes more or fewer bytes in the store than one of a run of 100. stored gives the bytes so far.
func Steps(t *testing.T, s journal.Store, stored func() int64) {
	t.Helper()
	l, err := journal.Open(context.Background(), s, "steps")
	if err != nil {
		t.Fatal(err)
	}
	start := Run(2)
	if err := l.Drive(context.Background(), "host/1", start...); err != nil {
		t.Fatal(err)
	}
	empty, said, per := stored(), 0, map[int]float64{}
	for n := range 1000 {
		step := Step(n)
		if err := l.Append(context.Background(), step...); err != nil {
			t.Fatal(err)
		}
		for _, e := range step {
			data, err := journal.EncodeData(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			said += len(data)
		}
		if done := n + 1; done == 100 || done == 1000 {
			per[done] = float64(stored()-empty) / float64(done)
			t.Logf("a step of %d takes %.0f bytes, of which %d are what it says", done, per[done], said/done)
		}
	}
	if few, many := per[100], per[1000]; many > Margin*few || few > Margin*many {
		t.Errorf("a step of a run of 100 takes %.0f bytes, one of a run of 1,000 %.0f", few, many)
	}
}

// OneMore fails when one more entry writes more bytes, reads more or takes more allocations in a session of 100,000 entries than in one of 10. at makes a session of a
// length. The long one is shorter in short tests, and under the race detector, which makes it slow to build.
func OneMore(t *testing.T, at func(t *testing.T, length int) Meter) {
	t.Helper()
	lengths := []int{10, 1000, 100_000}
	if testing.Short() || raced.Enabled {
		lengths = []int{10, 5000}
	}
	var first price
	for i, length := range lengths {
		p := weigh(t, at(t, length), length)
		t.Logf("one more entry after %d: %.0f bytes written, %.1f read, %.1f allocations", length, p.bytes, p.pages, p.allocs)
		if i == 0 {
			first = p
		}
		if p.bytes > Margin*first.bytes {
			t.Errorf("one more entry writes %.0f bytes after %d entries, %.0f after %d", p.bytes, length, first.bytes, lengths[0])
		}
		if p.pages > Margin*first.pages+deeper {
			t.Errorf("one more entry reads %.1f pages or entries after %d entries, %.1f after %d", p.pages, length, first.pages, lengths[0])
		}
		if p.allocs > Margin*first.allocs {
			t.Errorf("one more entry takes %.1f allocations after %d entries, %.1f after %d", p.allocs, length, first.allocs, lengths[0])
		}
		if t.Failed() {
			return // a longer session would only take longer to say so
		}
	}
}

// Forks fails when a fork of a session of 10,000 entries allocates more, or reads more entries, than one of a session of 100. read counts the entries that were read so far; nil where nobody counts.
func Forks(t *testing.T, s journal.Store, read func() int64) {
	t.Helper()
	type taken struct {
		bytes, allocs uint64
		read          int64
	}
	fork := func(length int) taken {
		of := fmt.Sprint("forked", length)
		Fill(t, s, of, length)
		least := taken{math.MaxUint64, math.MaxUint64, math.MaxInt64}
		for round := range 20 * rounds {
			name := fmt.Sprint(of, "-fork-", round) // the store would try all names that are taken
			var before, after runtime.MemStats
			had := count(read)
			runtime.ReadMemStats(&before)
			_, err := journal.Fork(context.Background(), s, of, 0, name)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			least = taken{min(least.bytes, after.TotalAlloc-before.TotalAlloc), min(least.allocs, after.Mallocs-before.Mallocs), min(least.read, count(read)-had)}
		}
		return least
	}
	few, many := fork(100), fork(10_000)
	t.Logf("a fork of 100 entries takes %+v, of 10,000 %+v", few, many)
	if float64(many.bytes) > Margin*float64(few.bytes)+1024 || float64(many.allocs) > Margin*float64(few.allocs)+2 || many.read > few.read {
		t.Errorf("a fork of 10,000 entries takes %+v, one of 100 %+v", many, few)
	}
}

// price is what an append took.
type price struct{ bytes, pages, allocs float64 }

func weigh(t *testing.T, m Meter, length int) price {
	t.Helper()
	least := price{math.Inf(1), math.Inf(1), math.Inf(1)}
	for round := range rounds {
		var entries []journal.Entry
		for n := 0; len(entries) < appends; n++ {
			entries = append(entries, Step(length+round*appends+n)...) // that the session does not have
		}
		if m.Settle != nil {
			m.Settle()
		}
		written, read := count(m.Written), count(m.Read)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, e := range entries {
			if err := m.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		least.bytes = min(least.bytes, float64(count(m.Written)-written)/appends)
		least.pages = min(least.pages, float64(count(m.Read)-read)/appends)
		least.allocs = min(least.allocs, float64(after.Mallocs-before.Mallocs)/appends)
	}
	return least
}

func count(counter func() int64) int64 {
	if counter == nil {
		return 0
	}
	return counter()
}

// Grow measures a run's steps, one append each, and how many bytes one takes. stored gives the bytes so far.
func Grow(b *testing.B, s journal.Store, stored func() int64) {
	Fill(b, s, "grown", 2)
	empty, seq, steps := stored(), int64(2), 0
	for b.Loop() {
		if err := s.Append(context.Background(), "grown", seq, Step(steps)...); err != nil {
			b.Fatal(err)
		}
		seq += StepEntries
		steps++
	}
	b.ReportMetric(float64(stored()-empty)/float64(steps), "bytes/step")
}

// Resume measures how long it takes to open a session of a run under way, which reads and folds all of it.
func Resume(b *testing.B, s journal.Store) {
	const entries = 10_000
	Fill(b, s, "resumed", entries)
	b.ReportAllocs()
	for b.Loop() {
		l, err := journal.Open(context.Background(), s, "resumed")
		if err != nil || l.Seq() != entries {
			b.Fatal(l.Seq(), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/resume")
	b.ReportMetric(entries*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
