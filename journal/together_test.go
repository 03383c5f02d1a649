package journal_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// gated is a store whose appends wait until they are let through, and counts the entries of each.
type gated struct {
	journal.Store
	enter, leave chan struct{} // nil: it is open
	appends      []int
	err          error
}

func (g *gated) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	err := g.err
	if g.enter != nil {
		g.enter <- struct{}{}
		<-g.leave
	}
	g.appends = append(g.appends, len(entries))
	if err != nil {
		return err
	}
	return g.Store.Append(ctx, session, after, entries...)
}

// atOnce appends first, and while that is under way all others; it gives the errors of those.
func atOnce(t *testing.T, g *gated, l *journal.Log, err error, all ...[]journal.Entry) []error {
	t.Helper()
	g.enter, g.leave = make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { must(t, l.Append(ctx, keyed("tool", "first", journal.ToolFinished{Call: "first"}))) })
	<-g.enter
	errs := make([]error, len(all))
	for i, entries := range all {
		wg.Go(func() { errs[i] = l.Append(context.WithoutCancel(ctx), entries...) })
	}
	for journal.Queued(l) < len(all) {
		runtime.Gosched()
	}
	leave := g.leave
	g.enter, g.err = nil, err // read by those who come after the one that waits
	close(leave)
	wg.Wait()
	return errs
}

func TestAppendsThatMeetAreMadeDurableTogether(t *testing.T) {
	g := &gated{Store: journal.Memory()}
	l := open(t, g)
	drive(t, l, "me")
	g.appends = nil
	var all [][]journal.Entry
	for i := range 8 {
		id := fmt.Sprint("c", i)
		all = append(all, []journal.Entry{keyed("tool", id, journal.ToolStarted{Call: journal.Called{ID: id}}), keyed("tool", id, journal.ToolFinished{Call: id})})
	}
	for i, err := range atOnce(t, g, l, nil, all...) {
		if err != nil {
			t.Error(i, err)
		}
	}
	if !slices.Equal(g.appends, []int{1, 16}) {
		t.Errorf("appends of %v entries, want 1 and 16", g.appends)
	}
	there := map[int64]string{}
	for e, err := range g.Read(ctx, "s", 0) {
		must(t, err)
		there[e.Seq] = string(e.Data.Kind()) + " " + e.Key.String()
	}
	for _, entries := range all {
		for k, e := range entries {
			if want := string(e.Data.Kind()) + " " + e.Key.String(); there[e.Seq] != want || k > 0 && e.Seq != entries[0].Seq+1 {
				t.Errorf("%s was told that it is entry %d, which is %s", want, e.Seq, there[e.Seq])
			}
		}
	}
}

func TestOneThatIsRefusedDoesNotHarmThoseItMet(t *testing.T) {
	g := &gated{Store: journal.Memory()}
	l := open(t, g)
	drive(t, l, "me")
	entry := func(id string) []journal.Entry {
		return []journal.Entry{keyed("tool", id, journal.ToolFinished{Call: id})}
	}
	errs := atOnce(t, g, l, nil, entry("a"), entry("first"), entry("b"))
	if errs[0] != nil || !errdefs.Conflict.Is(errs[1]) || errs[2] != nil || l.Failed() != nil {
		t.Error(errs, l.Failed())
	}
	for _, id := range []string{"a", "b"} {
		if d, _ := l.Recorded(journal.Key{Op: "tool", ID: id}); d == nil {
			t.Errorf("%s is not on record", id)
		}
	}
}

func TestAStoreThatFailsFailsAllThatMet(t *testing.T) {
	g := &gated{Store: journal.Memory()}
	l := open(t, g)
	drive(t, l, "me")
	g.appends = nil
	full := errdefs.NotAvailable.Errorf("the disk is full")
	entry := func(id string) []journal.Entry {
		return []journal.Entry{keyed("tool", id, journal.ToolFinished{Call: id})}
	}
	for _, err := range atOnce(t, g, l, full, entry("a"), entry("b")) {
		if !errdefs.NotAvailable.Is(err) {
			t.Error(err)
		}
	}
	if !slices.Equal(g.appends, []int{1, 2}) || l.Failed() == nil { // nobody tries again what a store failed at
		t.Error(g.appends, l.Failed())
	}
}

// panicking is a store that panics once it is told to.
type panicking struct {
	*gated
	now bool
}

func (p *panicking) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if p.now && p.enter == nil {
		panic("a defect of the store")
	}
	return p.gated.Append(ctx, session, after, entries...)
}

// Whoever waits for an append that panics in another one's hands must not take its entries to be there.
func TestAStoreThatPanicsFailsAllThatMet(t *testing.T) {
	p := &panicking{gated: &gated{Store: journal.Memory()}}
	l := open(t, p)
	drive(t, l, "me")
	p.enter, p.leave = make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { must(t, l.Append(ctx, keyed("tool", "first", journal.ToolFinished{Call: "first"}))) })
	<-p.enter
	var panics, errs atomic.Int32
	for _, id := range []string{"a", "b", "c"} {
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			if l.Append(context.WithoutCancel(ctx), keyed("tool", id, journal.ToolFinished{Call: id})) != nil {
				errs.Add(1)
			}
		})
	}
	for journal.Queued(l) < 3 {
		runtime.Gosched()
	}
	leave := p.leave
	p.enter, p.now = nil, true
	close(leave)
	wg.Wait()
	if panics.Load() != 1 || errs.Load() != 2 || l.Failed() == nil {
		t.Errorf("%d panicked, %d of the two that met it got an error; the log failed: %v", panics.Load(), errs.Load(), l.Failed())
	}
}
