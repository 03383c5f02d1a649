package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func judge(id string) engine.Judge {
	return engine.Judge{Call: message.ToolCall{ID: id, Name: "t", Input: `{}`}}
}

// decides gives what was judged its own outcome.
func decides(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
	if j, ok := engine.Bare(e).(engine.Judge); ok {
		return journal.ToolJudged{Call: j.Call.ID, Verdict: "allow"}, nil
	}
	return fine(e), nil
}

// does performs effects one after the other.
func does(t *testing.T, s engine.Steps, effects ...engine.Effect) {
	t.Helper()
	for _, e := range effects {
		if d, err := engine.Do[journal.Data](t.Context(), s, e); err != nil || d == nil {
			t.Fatal(d, err)
		}
	}
}

func TestOutcomesWaitForTheNextAppendOfAPathThatIsAhead(t *testing.T) {
	store := journal.Memory()
	steps := engine.Ahead(engine.Local(begun(t, store), engine.NoopHost{}, performs(decides)))
	on := func(want ...string) {
		t.Helper()
		same(t, "on record", want, read(t, store))
	}
	does(t, steps, judge("a"), judge("b"))
	on()
	does(t, steps, use("a", writes))
	all := []string{"tool.judged judge/a", "tool.judged judge/b", "tool.started tool/a"}
	on(all...)
	does(t, steps, judge("c")) // what acted is on record before hooks are asked
	all = append(all, "tool.finished tool/a")
	on(all...)
	does(t, steps, engine.Stop{Step: 1}) // which says nothing before it is done, and then at once
	all = append(all, "tool.judged judge/c", "stopped stop/1")
	on(all...)
	does(t, steps, use("b", readOnly))
	all = append(all, "tool.started tool/b")
	on(all...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := engine.Settle(ctx, steps); err != nil {
		t.Error(err)
	}
	on(append(all, "tool.finished tool/b")...)
	if err := errors.Join(engine.Settle(ctx, steps), engine.Settle(ctx, steps)); err != nil {
		t.Error(err)
	}
	on(append(all, "tool.finished tool/b")...)
}

// What is no path of Local's own, and what branches off from one, ends each effect on record: nothing there shares memory with the next.
func TestNothingWaitsElsewhere(t *testing.T) {
	store := journal.Memory()
	local := engine.Local(begun(t, store), engine.NoopHost{}, performs(decides))
	one := engine.StepsFunc(func(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
		d, err := engine.Do[journal.Data](ctx, local, effects[0]) // an activity on a worker
		return []journal.Data{d}, err
	})
	does(t, engine.Ahead(one), judge("a"))
	want := []string{"tool.judged judge/a"}
	same(t, "by other steps", want, read(t, store))
	does(t, engine.Ahead(engine.Keep(local)), judge("b"))
	want = append(want, "tool.judged judge/b")
	same(t, "by steps that keep failures", want, read(t, store))
	ahead := engine.Ahead(local)
	does(t, ahead, judge("c"))
	same(t, "by a path that is ahead", want, read(t, store))
	want = append(want, "tool.judged judge/c")
	if err := ahead.Branch(t.Context(), engine.Branch{Scope: "x", Run: func(_ context.Context, s engine.Steps) error {
		same(t, "before a branch", want, read(t, store))
		does(t, s, judge("d"))
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	same(t, "in a branch", append(want, "tool.judged x:judge/d"), read(t, store))
}

func TestEachOutcomeThatWaitedIsToldOnceInItsPlace(t *testing.T) {
	store, host := journal.Memory(), &place{}
	steps := engine.Ahead(engine.Local(begun(t, store), host, performs(decides)))
	does(t, steps, judge("a"), judge("b"), use("a", writes), use("b", writes))
	if err := engine.Settle(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	var told, kept []string
	var seqs []int64
	for i, e := range host.events {
		told = append(told, string(e.Data.Kind())+" "+e.Key.String())
		if e.Seq != int64(i)+2 {
			t.Errorf("%s is told as entry %d", told[i], e.Seq)
		}
	}
	same(t, "events", read(t, store), told)
	for _, c := range host.checkpoints {
		kept, seqs = append(kept, c.Step), append(seqs, c.Seq)
	}
	same(t, "checkpoints", []string{"judge/a", "judge/b", "tool/a", "tool/b"}, kept)
	same(t, "where they stand", []int64{2, 3, 5, 7}, seqs)
}

// An effect that was begun, and whose end nobody knows, has its outcome on record with what waits, and in its place.
func TestALostOutcomeComesBehindWhatWaits(t *testing.T) {
	store, host := journal.Memory(), &place{}
	run := begun(t, store)
	steps := engine.Ahead(engine.Local(run, host, performs(decides)))
	b := use("b", writes)
	if err := run.Log.Append(t.Context(), journal.Entry{Run: "r", Key: b.Key(), Data: b.Intent()}); err != nil {
		t.Fatal(err)
	}
	does(t, steps, use("a", writes), b)
	same(t, "on record", []string{"tool.started tool/b", "tool.started tool/a", "tool.finished tool/a", "tool.finished tool/b"}, read(t, store))
	if c := host.checkpoints; len(c) != 2 || c[0].Step != "tool/a" || c[0].Seq != 4 || c[1].Step != "tool/b" || c[1].Seq != 5 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsToldOfAnOutcomeThatWaitedHasItsOwnContext(t *testing.T) {
	type key struct{}
	var got []any
	steps := engine.Ahead(engine.Local(begun(t, journal.Memory()), hearing(func(ctx context.Context) {
		got = append(got, ctx.Value(key{}))
		if ctx.Err() != nil {
			t.Error("it has ended")
		}
	}), performs(decides)))
	for i := range 2 {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, i))
		if _, err := engine.Do[journal.ToolJudged](ctx, steps, judge([]string{"a", "b"}[i])); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if err := engine.Settle(t.Context(), steps); err != nil || !slices.Equal(got, []any{0, 1}) {
		t.Error(got, err)
	}
}

// hearing is a host that looks at the context of each event.
func hearing(f func(ctx context.Context)) engine.Host {
	return engine.HostFuncs{PublishFunc: func(ctx context.Context, _ event.Event) error { f(ctx); return nil }}
}

func TestAnOutcomeThatWaitedAndCannotBeWrittenIsAnErrorOnce(t *testing.T) {
	full := errdefs.NotAvailable.Errorf("the disk is full")
	store := &failing{Store: journal.Memory()}
	run := begun(t, store)
	begins := 0
	steps := engine.Ahead(engine.Local(run, engine.NoopHost{}, performs(func(ctx context.Context, h engine.Host, e engine.Effect) (journal.Data, error) {
		begins++
		return decides(ctx, h, e)
	})))
	does(t, steps, judge("a"))
	store.err = full
	if _, err := engine.Do[journal.ToolFinished](t.Context(), steps, use("a", writes)); !errors.Is(err, full) || begins != 1 {
		t.Errorf("%v, and %d effects began", err, begins)
	}
	store.err = nil // whoever goes on would get away with it
	if err := engine.Settle(t.Context(), steps); err != nil || run.Log.Failed() == nil {
		t.Error(err, run.Log.Failed())
	}
	same(t, "on record", []string(nil), read(t, store))
}

func TestAnOutcomeThatWaitedIsRefusedOnceAnotherDriverHasTheSession(t *testing.T) {
	store := journal.Memory()
	steps := engine.Ahead(engine.Local(begun(t, store), engine.NoopHost{}, performs(decides)))
	does(t, steps, use("a", writes))
	if err := open(t, store).Drive(t.Context(), "other", journal.Entry{Run: "r", Data: journal.Resumed{Owner: "other"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Do[journal.ToolFinished](t.Context(), steps, use("b", writes)); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	if err := engine.Settle(t.Context(), steps); err != nil {
		t.Error("it was said before:", err)
	}
	same(t, "on record", []string{"tool.started tool/a"}, read(t, store))
}

// Another attempt at the second effect was faster: what waits is on record all the same.
func TestAnOutcomeThatWaitedIsNotLostWithAnIntentThatIsThere(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	steps := engine.Ahead(engine.Local(run, engine.NoopHost{}, performs(decides)))
	does(t, steps, judge("a"))
	e := use("a", readOnly)
	if err := store.Append(t.Context(), "s", 1, journal.Entry{Run: "r", Key: e.Key(), Data: e.Intent()}); err != nil {
		t.Fatal(err)
	}
	does(t, steps, e)
	if err := engine.Settle(t.Context(), steps); err != nil {
		t.Error(err)
	}
	same(t, "on record", []string{"tool.started tool/a", "tool.judged judge/a", "tool.finished tool/a"}, read(t, store))
}

// A cancel in an append leaves what waits for the end.
func TestAnOutcomeThatWaitedIsWrittenThoughTheNextAppendIsCancelled(t *testing.T) {
	store := &failing{Store: journal.Memory()}
	run := begun(t, store)
	steps := engine.Ahead(engine.Local(run, engine.NoopHost{}, performs(decides)))
	does(t, steps, use("a", writes), judge("b"))
	ctx, cancel := context.WithCancel(t.Context())
	store.on = cancel
	if _, err := engine.Do[journal.ToolFinished](ctx, steps, use("b", writes)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := engine.Settle(ctx, steps); err != nil || run.Log.Failed() != nil {
		t.Error(err, run.Log.Failed())
	}
	same(t, "on record", []string{"tool.started tool/a", "tool.finished tool/a", "tool.judged judge/b"}, read(t, store))
}

// failing is a store that fails, or that somebody is at when an append comes.
type failing struct {
	journal.Store
	err  error
	once bool // it fails once
	on   func()
}

func (f *failing) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if err := f.err; err != nil {
		if f.once {
			f.err = nil
		}
		return err
	}
	if f.on != nil {
		f.on()
	}
	return f.Store.Append(ctx, session, after, entries...)
}

// What is written behind an outcome that waited is told, and kept, with its own number, though the two were refused together.
func TestWhatIsWrittenApartFromWhatWaitedHasItsNumber(t *testing.T) {
	store, host := &failing{Store: journal.Memory()}, &place{}
	fails := false
	steps := engine.Ahead(engine.Local(begun(t, store), host, performs(func(ctx context.Context, h engine.Host, e engine.Effect) (journal.Data, error) {
		d, err := decides(ctx, h, e)
		if fails {
			err = errdefs.Internal.Errorf("it failed, and came to something")
		}
		return d, err
	})))
	does(t, steps, judge("a"))
	fails = true
	store.err = errdefs.Conflict.Errorf("somebody was faster, and is gone")
	store.once = true
	if _, err := engine.Do[journal.ToolJudged](t.Context(), steps, judge("b")); err == nil {
		t.Error("no error")
	}
	same(t, "on record", []string{"tool.judged judge/a", "tool.judged judge/b"}, read(t, store))
	if c := host.checkpoints; len(c) != 2 || c[0].Seq != 2 || c[1].Seq != 3 {
		t.Errorf("%+v", c)
	}
}

// picky is a store that refuses entries of one kind.
type picky struct {
	journal.Store
	refuses journal.Kind
}

func (p picky) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if slices.ContainsFunc(entries, func(e journal.Entry) bool { return e.Data.Kind() == p.refuses }) {
		return errdefs.Validation.Errorf("an entry that is too large")
	}
	return p.Store.Append(ctx, session, after, entries...)
}

// What comes next is more than the store takes: what a call came to is on record all the same.
func TestAnOutcomeThatWaitedIsNotLostWithAnIntentThatIsRefused(t *testing.T) {
	store := picky{journal.Memory(), journal.Asked{}.Kind()}
	steps := engine.Ahead(engine.Local(begun(t, store), engine.NoopHost{}, performs(decides)))
	does(t, steps, use("a", writes))
	if _, err := engine.Do[journal.Answered](t.Context(), steps, engine.Ask{Asked: journal.Asked{ID: "b"}}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	if err := engine.Settle(t.Context(), steps); err != nil {
		t.Error(err)
	}
	same(t, "on record", []string{"tool.started tool/a", "tool.finished tool/a"}, read(t, store))
}
