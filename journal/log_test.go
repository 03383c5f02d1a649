package journal_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func open(t testing.TB, s journal.Store) *journal.Log {
	t.Helper()
	l, err := journal.Open(context.Background(), s, "s")
	must(t, err)
	return l
}

func drive(t testing.TB, l *journal.Log, owner string) {
	t.Helper()
	must(t, l.Drive(context.Background(), owner, journal.Entry{Run: "r1", Data: journal.RunStarted{Agent: "a", Owner: owner, Attempt: 1}}))
}

func conflict(t testing.TB, err error, what string) {
	t.Helper()
	if !errdefs.Conflict.Is(err) {
		t.Errorf("%s: got %v, want a Conflict", what, err)
	}
}

var ctx = context.Background()

func TestAKeyHasOneIntentAndOneOutcome(t *testing.T) {
	l := open(t, journal.Memory())
	drive(t, l, "o")
	intent := keyed("tool", "1", journal.ToolStarted{Call: journal.Called{ID: "1"}})
	must(t, l.Append(ctx, intent))
	conflict(t, l.Append(ctx, intent), "a second intent")
	must(t, l.Append(ctx, result("1")))
	conflict(t, l.Append(ctx, result("1")), "a second outcome")
	conflict(t, l.Append(ctx, said("ok"), result("1")), "a second outcome behind something else")
	conflict(t, l.Append(ctx, result("2"), result("2")), "two outcomes at once")
	must(t, l.Append(ctx, keyed("model", "1", journal.ModelFailed{Error: "x"}), keyed("model", "1", journal.ModelFailed{Error: "x"}))) // no outcome
	must(t, l.Append(ctx, keyed("tool", "3", journal.ToolStarted{}), result("3")))
	scoped := result("1")
	scoped.Key.Scope = "node"
	must(t, l.Append(ctx, scoped))
	if st := l.State(); st.Seq != 8 || l.Seq() != 8 {
		t.Errorf("what was refused left something: %d entries, want 8", st.Seq)
	}
	must(t, l.Drive(ctx, "o2", journal.Entry{Run: "r1", Data: journal.RunStarted{Owner: "o2", Attempt: 2}}, result("1"))) // an attempt has its own keys
	conflict(t, l.Append(ctx, result("1")), "a second outcome of the second attempt")
}

func TestTheRecordOfTheUnfinishedRunIsGivenAgain(t *testing.T) {
	s := journal.Memory()
	l := open(t, s)
	drive(t, l, "o")
	key := journal.Key{Op: "tool", ID: "1"}
	if out, begun := l.Recorded(key); out != nil || begun || l.Begun(key) != 0 || l.HasCall("1") {
		t.Error("something is on record before it was written")
	}
	must(t, l.Append(ctx, reply("1", "", "1"), keyed("tool", "1", journal.ToolStarted{})))
	for _, l := range []*journal.Log{l, open(t, s)} {
		if out, begun := l.Recorded(key); out != nil || !begun || l.Begun(key) != 3 || !l.HasCall("1") || l.HasCall("2") {
			t.Errorf("begun: %v, %v, %d", out, begun, l.Begun(key))
		}
	}
	must(t, l.Append(ctx, result("1")))
	for _, l := range []*journal.Log{l, open(t, s)} {
		if out, begun := l.Recorded(key); cmp.Diff(out, result("1").Data) != "" || !begun {
			t.Errorf("done: %v, %v", out, begun)
		}
		if out, begun := l.Recorded(journal.Key{Op: "model", ID: "1"}); out == nil || begun {
			t.Errorf("an outcome without an intent: %v, %v", out, begun)
		}
	}
	must(t, l.Append(ctx, finished(journal.RunFinished{Status: "completed"})))
	if out, begun := l.Recorded(key); out != nil || begun || !l.HasCall("1") {
		t.Error("a finished run is still indexed, or its calls are forgotten")
	}
}

func TestAStaleDriverIsFenced(t *testing.T) {
	s := journal.Memory()
	first, second := open(t, s), open(t, s)
	drive(t, first, "first")
	must(t, second.Drive(ctx, "second", entry(journal.Resumed{Owner: "second"})))
	conflict(t, first.Append(ctx, result("1")), "the first")
	conflict(t, first.Append(ctx, result("2")), "the first again")
	must(t, second.Append(ctx, result("1")))
	must(t, first.Drive(ctx, "third", entry(journal.Resumed{Owner: "third"})))
	conflict(t, second.Append(ctx, result("2")), "the second, overtaken in turn")
	must(t, first.Append(ctx, result("2")))
}

func TestAStaleDriverIsFencedByOneThatKnowsWhatItKnew(t *testing.T) {
	s := journal.Memory()
	first := open(t, s)
	drive(t, first, "first")
	second, err := first.Reopen(ctx)
	must(t, err)
	must(t, second.Drive(ctx, "second", entry(journal.Resumed{Owner: "second"})))
	conflict(t, first.Append(ctx, result("1")), "the first")
	must(t, second.Append(ctx, result("1")))
	if first.Seq() != second.Seq() {
		t.Error("they don't read the same session")
	}
}

func TestALogThatFailedIsReadFromItsBeginning(t *testing.T) {
	s := &refusing{Store: journal.Memory()}
	l := open(t, s)
	drive(t, l, "o")
	s.err = errdefs.NotAvailable.Errorf("the store is gone")
	if err := l.Append(ctx, said("x")); !errdefs.NotAvailable.Is(err) {
		t.Fatal(err)
	}
	s.err = nil
	next, err := l.Reopen(ctx)
	must(t, err)
	if next.Failed() != nil || l.Failed() == nil {
		t.Error(next.Failed(), l.Failed())
	}
	must(t, next.Drive(ctx, "p", entry(journal.Resumed{Owner: "p"})))
	conflict(t, l.Append(ctx, said("x")), "the one that failed")
}

func TestDrivingTakesTheOwnersEntry(t *testing.T) {
	l := open(t, journal.Memory())
	for what, entries := range map[string][]journal.Entry{
		"nothing": nil, "no such entry": {said("x")}, "another owner's": {entry(journal.Resumed{Owner: "other"})},
	} {
		if err := l.Drive(ctx, "me", entries...); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := l.Drive(ctx, "", entry(journal.Resumed{})); !errdefs.Validation.Is(err) {
		t.Error("an owner without a name:", err)
	}
	if l.Seq() != 0 {
		t.Error("something was written")
	}
}

func TestWhatCameInBetweenIsFoldedIn(t *testing.T) {
	s := journal.Memory()
	driver, other := open(t, s), open(t, s)
	drive(t, driver, "o")
	must(t, other.Append(ctx, keyed("said", "1", said("steer").Data)))
	must(t, driver.Append(ctx, reply("1", "ok")))
	if got := shape(driver.State().Messages); got != "usteer aok" {
		t.Error(got)
	}
	conflict(t, driver.Append(ctx, keyed("said", "1", said("steer").Data)), "what the other wrote")
	mine := []journal.Entry{result("1")}
	must(t, driver.Append(ctx, mine...))
	if mine[0].Seq != 4 || mine[0].Session != "s" || mine[0].Time.IsZero() {
		t.Errorf("not filled in: %+v", mine[0])
	}
}

func TestOneAnswerWinsWhoeverGivesIt(t *testing.T) {
	s := journal.Memory()
	early, driver := open(t, s), open(t, s) // early was opened before the question
	drive(t, driver, "o")
	must(t, driver.Append(ctx, reply("1", "", "1"), keyed("ask", "1", journal.Asked{ID: "1"})))
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		l := early
		if i%2 == 0 {
			l = open(t, s)
		}
		wg.Go(func() {
			err := l.Answer(ctx, journal.Answered{ID: "1", Approved: true, By: fmt.Sprint(i)})
			if err == nil {
				won.Add(1)
			} else {
				conflict(t, err, "a later answer")
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d answers won", won.Load())
	}
	conflict(t, driver.Answer(ctx, journal.Answered{ID: "1"}), "an answer from the driver, later")
	conflict(t, early.Answer(ctx, journal.Answered{ID: "2"}), "an answer to nothing")
	must(t, driver.Append(ctx, result("1")))
	if out, _ := driver.Recorded(journal.Key{Op: "ask", ID: "1"}); out == nil || !out.(journal.Answered).Approved {
		t.Errorf("the driver sees %v", out)
	}
}

// stuck says Conflict for ever, and shows no reason.
type stuck struct {
	journal.Store
	calls int
}

func (s *stuck) Append(context.Context, string, int64, ...journal.Entry) error {
	s.calls++
	return errdefs.Conflict.Errorf("no")
}

func TestAConflictThatReadingDoesNotExplainIsGivenBack(t *testing.T) {
	s := &stuck{Store: journal.Memory()}
	conflict(t, open(t, s).Append(ctx, said("x")), "append")
	if s.calls != 1 {
		t.Errorf("it was tried %d times", s.calls)
	}
}

var errDisk = errors.New("the disk is on fire")

// failing fails to read, or to write, after a number of entries.
type failing struct {
	journal.Store
	read, write bool
	gap         bool
}

func (s *failing) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if s.write {
		return errDisk
	}
	return s.Store.Append(ctx, session, after, entries...)
}

func (s *failing) Read(ctx context.Context, session string, after int64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		if s.read {
			yield(journal.Entry{}, errDisk)
			return
		}
		for e, err := range s.Store.Read(ctx, session, after) {
			if s.gap {
				e.Seq++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestAStoresErrorComesBackAndChangesNothing(t *testing.T) {
	s := &failing{Store: journal.Memory()}
	l := open(t, s)
	must(t, l.Append(ctx, said("1")))
	s.write = true
	if err := l.Append(ctx, said("2")); !errors.Is(err, errDisk) || l.Seq() != 1 {
		t.Error(err, l.Seq())
	}
	s.write, s.read = false, true
	if l, err := journal.Open(ctx, s, "s"); !errors.Is(err, errDisk) || l != nil {
		t.Error(l, err)
	}
	if err := l.Answer(ctx, journal.Answered{ID: "1"}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	s.read, s.gap = false, true
	if _, err := journal.Open(ctx, s, "s"); !errdefs.Internal.Is(err) {
		t.Error("a store that skips an entry:", err)
	}
	if _, err := journal.Open(ctx, s, ""); !errdefs.Validation.Is(err) {
		t.Error("no name:", err)
	}
}

func TestALogIsSafeForConcurrentUse(t *testing.T) {
	s := journal.Memory()
	l := open(t, s)
	drive(t, l, "o")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 25 {
				id := fmt.Sprint(i, ".", n)
				if err := l.Append(ctx, reply(id, "x", id), keyed("ask", id, journal.Asked{ID: id})); err != nil {
					t.Error(err)
				}
				if err := l.Answer(ctx, journal.Answered{ID: id, Approved: true}); err != nil {
					t.Error(err)
				}
				if _, begun := l.Recorded(journal.Key{Op: "ask", ID: id}); !begun || !l.HasCall(id) {
					t.Error("not on record")
				}
				st := l.State()
				if !identical(message.Repair(st.Messages), st.Messages) {
					t.Error("not valid")
				}
				before := len(st.Unfinished()) // of a value that is the caller's, while others go on
				if more := st.With(keyed("tool", "more", journal.ToolStarted{Call: journal.Called{ID: "more"}})); len(more.Unfinished()) != before+1 {
					t.Error("what was begun is not unfinished")
				}
			}
		})
	}
	wg.Wait()
	if d := cmp.Diff(l.State(), open(t, s).State(), states); d != "" {
		t.Errorf("-live +read again\n%s", d)
	}
}

func TestMemoryKeepsTimesInUTC(t *testing.T) {
	s := journal.Memory()
	e := said("x")
	e.Time = time.Now()
	must(t, s.Append(ctx, "s", 0, e, said("y")))
	for e, err := range s.Read(ctx, "s", 0) {
		must(t, err)
		if e.Time != e.Time.UTC().Round(0) { // also: without a monotonic reading, so that == means the same moment
			t.Error(e.Time)
		}
	}
}

func BenchmarkAppendingToALog(b *testing.B) {
	l := open(b, journal.Memory())
	drive(b, l, "o")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must(b, l.Append(ctx, keyed("tool", fmt.Sprint(i), journal.ToolFinished{Call: "x", Content: "ok"})))
	}
}

func BenchmarkFolding(b *testing.B) {
	var es []journal.Entry
	for i := range 1000 {
		id := fmt.Sprint(i)
		es = append(es, reply(id, "x", id), result(id))
	}
	es = numbered(append([]journal.Entry{started("r1", 1), said("hi")}, es...)...)
	b.ReportAllocs()
	for b.Loop() {
		journal.Fold(es...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(es)), "ns/entry")
}

// refusing is a store whose next append fails with err.
type refusing struct {
	journal.Store
	err error
}

func (r *refusing) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if err := r.err; err != nil {
		r.err = nil
		return err
	}
	return r.Store.Append(ctx, session, after, entries...)
}

func TestALogRemembersThatItsStoreFailed(t *testing.T) {
	ended, end := context.WithCancel(ctx)
	end()
	full := errdefs.NotAvailable.Errorf("the disk is full")
	for name, c := range map[string]struct {
		ctx    context.Context
		err    error
		failed bool
	}{
		"a full disk":                       {ctx, full, true},
		"an error of no class":              {ctx, errors.New("oops"), true},
		"a cancel of somebody else's":       {ctx, context.Canceled, true},
		"a cancel":                          {ended, context.Canceled, false},
		"a full disk when it was cancelled": {ended, full, true},
		"an entry that is no good":          {ctx, errdefs.Validation.Errorf("too large"), false},
		"somebody else was first":           {ctx, errdefs.Conflict.Errorf("its last is 7"), false},
	} {
		store := &refusing{Store: journal.Memory()}
		l := open(t, store)
		drive(t, l, "me")
		store.err = c.err
		entry := journal.Entry{Run: "r1", Data: journal.Said{Message: message.User("x")}}
		if err := l.Append(c.ctx, entry); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Failed(); (err != nil) != c.failed || c.failed && !errors.Is(err, c.err) {
			t.Errorf("%s: failed is %v", name, err)
		}
		before := l.Failed()
		if err := l.Append(ctx, entry); err != nil || !errors.Is(l.Failed(), before) { // what is known may still be written
			t.Errorf("%s: then %v, %v", name, err, l.Failed())
		}
	}
	store := &refusing{Store: journal.Memory(), err: full}
	l := open(t, store)
	if err := l.Drive(ctx, "me", journal.Entry{Run: "r1", Data: journal.RunStarted{Owner: "me"}}); err == nil || !errors.Is(l.Failed(), full) {
		t.Errorf("drive: %v, %v", err, l.Failed())
	}
}

func TestADriverIsToldOfAFailureElsewhere(t *testing.T) {
	log, err := journal.Open(t.Context(), journal.Memory(), "s")
	if err != nil {
		t.Fatal(err)
	}
	below := errdefs.NotAvailable.Errorf("the session below can't be written")
	for _, err := range []error{below, errdefs.Internal} {
		if log.Fail(err); log.Failed() != below { //nolint:errorlint // the very one
			t.Errorf("%v: the first counts", log.Failed())
		}
	}
}
