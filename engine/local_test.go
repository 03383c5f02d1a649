package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func TestOutcomesComeInTheOrderOfTheEffectsAndAreGivenAgain(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	n := 0
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		n++
		return fine(e), nil
	})
	for range 2 {
		out, err := engine.DoAll[journal.ToolFinished](t.Context(), engine.Local(run, engine.NoopHost{}, p), []engine.UseTool{use("a", writes), use("b", writes)})
		if err != nil || len(out) != 2 || out[0].Content != "tool/a" || out[1].Content != "tool/b" || n != 2 {
			t.Fatal(err, out, n)
		}
	}
	same(t, "journal", []string{"tool.started tool/a", "tool.finished tool/a", "tool.started tool/b", "tool.finished tool/b"}, read(t, store))
}

func TestNeighboursThatMayRunTogetherDoAndOthersAreBarriers(t *testing.T) {
	run := begun(t, journal.Memory())
	var mu sync.Mutex
	var order []string
	var groups [2]sync.WaitGroup // the two groups of readers, each of which is complete before it goes on
	groups[0].Add(2)
	groups[1].Add(3)
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		id := e.Key().ID
		mu.Lock()
		order = append(order, id[:1])
		mu.Unlock()
		if id[0] != 'w' {
			g := &groups[id[0]-'1']
			g.Done()
			g.Wait() // nobody gets past it alone
		}
		return fine(e), nil
	})
	effects := []engine.UseTool{
		use("1a", readOnly), use("1b", readOnly), use("w1", writes), use("w2", idempotent), use("2a", readOnly), use("2b", readOnly), use("2c", readOnly),
		use("w3", tool.Annotations{ReadOnly: true, Sequential: true}),
	}
	out, err := engine.DoAll[journal.ToolFinished](t.Context(), engine.Local(run, &place{}, p), effects)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "order", []string{"1", "1", "w", "w", "2", "2", "2", "w"}, order)
	for i, o := range out {
		if o.Call != effects[i].Call.ID {
			t.Errorf("outcome %d is of %s", i, o.Call)
		}
	}
}

func TestEffectsThatRunTogetherAreBounded(t *testing.T) {
	run := begun(t, journal.Memory())
	var now, most atomic.Int64
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		return fine(e), nil
	})
	var effects []engine.UseTool
	for i := range 100 {
		effects = append(effects, use(fmt.Sprint(i), readOnly))
	}
	if _, err := engine.DoAll[journal.ToolFinished](t.Context(), engine.Local(run, engine.NoopHost{}, p), effects); err != nil || most.Load() > 16 {
		t.Error(err, most.Load())
	}
}

func TestABarrierIsBegunOnlyWhenItsTurnComes(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		if e.Key().ID == "b" {
			return nil, errdefs.Internal.Errorf("broken")
		}
		return fine(e), nil
	})
	out, err := engine.DoAll[journal.ToolFinished](t.Context(), engine.Local(run, engine.NoopHost{}, p), []engine.UseTool{use("a", writes), use("b", writes), use("c", writes)})
	if !errdefs.Internal.Is(err) || out[0].Outcome != journal.OutcomeOK || out[1].Outcome != journal.OutcomeUnknown || out[2].Outcome != "" {
		t.Error(err, out)
	}
	same(t, "journal: how far b came is not known, c was not begun", []string{
		"tool.started tool/a", "tool.finished tool/a", "tool.started tool/b", "tool.finished tool/b",
	}, read(t, store))
}

func TestWhatWasBegunAndLostIsRepeatedOnlyIfItMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		ann  tool.Annotations
		runs int
		want journal.Outcome
	}{
		"a tool that writes is unknown": {writes, 0, journal.OutcomeUnknown},
		"a read-only tool runs again":   {readOnly, 1, journal.OutcomeOK},
		"an idempotent one too":         {idempotent, 1, journal.OutcomeOK},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			run := begun(t, store)
			e := use("a", c.ann)
			if err := run.Log.Append(t.Context(), journal.Entry{Run: "r", Key: e.Key(), Data: e.Intent()}); err != nil {
				t.Fatal(err)
			}
			runs := 0
			p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
				runs++
				return fine(e), nil
			})
			out, err := engine.Do[journal.ToolFinished](t.Context(), engine.Local(run, engine.NoopHost{}, p), e)
			if err != nil || runs != c.runs || out.Outcome != c.want {
				t.Error(err, runs, out)
			}
			same(t, "journal", []string{"tool.started tool/a", "tool.finished tool/a"}, read(t, store))
		})
	}
}

func TestAPanicInOneOfAGroupIsItsOwnErrorAndTheOthersOutcomesAreKept(t *testing.T) {
	for name, die := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			run := begun(t, store)
			p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
				if e.Key().ID == "b" {
					die()
				}
				return fine(e), nil
			})
			out, err := engine.DoAll[journal.ToolFinished](t.Context(), engine.Local(run, engine.NoopHost{}, p), []engine.UseTool{use("a", readOnly), use("b", readOnly), use("c", readOnly)})
			if !errdefs.Internal.Is(err) || out[0].Content != "tool/a" || out[1].Outcome != "" || out[2].Content != "tool/c" {
				t.Error(err, out)
			}
			lines := read(t, store)
			if slices.Sort(lines); !slices.Contains(lines, "tool.finished tool/a") || !slices.Contains(lines, "tool.finished tool/c") || len(lines) != 5 {
				t.Error(lines)
			}
		})
	}
}

func TestErrorsOfAGroupAreJoinedInOrder(t *testing.T) {
	run := begun(t, journal.Memory())
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		if id := e.Key().ID; id != "b" {
			return nil, errors.New(id)
		}
		return fine(e), nil
	})
	_, err := engine.Local(run, engine.NoopHost{}, p).Do(t.Context(), use("a", readOnly), use("b", readOnly), use("c", readOnly))
	if err == nil || err.Error() != "a\nc" {
		t.Error(err)
	}
}

func TestACancelStopsWhatHasNotBegunAndKeepsWhatWasDone(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		cancel()
		return fine(e), nil
	})
	out, err := engine.DoAll[journal.ToolFinished](ctx, engine.Local(run, engine.NoopHost{}, p), []engine.UseTool{use("a", writes), use("b", writes)})
	if !errors.Is(err, context.Canceled) || out[0].Content != "tool/a" || out[1].Content != "" {
		t.Error(err, out)
	}
	same(t, "journal", []string{"tool.started tool/a", "tool.finished tool/a"}, read(t, store))
	if out, err := engine.Do[journal.ToolFinished](ctx, engine.Local(run, engine.NoopHost{}, p), use("a", writes)); err != nil || out.Content != "tool/a" {
		t.Error("what is on record is given even then:", err, out)
	}
	p = func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
		t.Error("an effect without an intent was performed")
		return nil, nil
	}
	if _, err := engine.Local(run, engine.NoopHost{}, p).Do(ctx, engine.Stop{Step: 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOneInterruptIsSeenByEveryBranch(t *testing.T) {
	host := &place{interrupts: make(chan engine.Interrupt, 1)}
	run := begun(t, journal.Memory())
	var p performs
	steps := engine.Local(run, host, p)
	if _, err := steps.Do(t.Context(), engine.Stop{Step: 1}); err != nil {
		t.Fatal(err)
	}
	host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown, Detail: "deploy"}
	var errs [3]error
	branch := func(i int) engine.Branch {
		return engine.Branch{Scope: fmt.Sprint(i), Run: func(ctx context.Context, s engine.Steps) error {
			_, errs[i] = s.Do(ctx, engine.Stop{Step: 1})
			return errs[i]
		}}
	}
	err := steps.Branch(t.Context(), branch(0), branch(1), branch(2))
	for i, e := range append(errs[:], err) {
		var intr engine.InterruptedError
		if !errors.As(e, &intr) || intr.Cause != engine.CauseHostShutdown || !errdefs.Interrupted.Is(e) || !strings.Contains(e.Error(), "deploy") {
			t.Errorf("%d: %v", i, e)
		}
	}
}

func TestAClosedInterruptChannelIsNoInterrupt(t *testing.T) {
	host := &place{interrupts: make(chan engine.Interrupt)}
	close(host.interrupts)
	var p performs
	steps := engine.Local(begun(t, journal.Memory()), host, p)
	for i := range 3 {
		if _, err := steps.Do(t.Context(), engine.Stop{Step: i}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABranchPutsItsScopeInFrontOfItsKeys(t *testing.T) {
	for name, branches := range map[string]func(engine.Run) engine.Steps{
		"local": func(run engine.Run) engine.Steps { var p performs; return engine.Local(run, engine.NoopHost{}, p) },
		"a function": func(engine.Run) engine.Steps {
			return engine.StepsFunc(func(_ context.Context, es ...engine.Effect) (out []journal.Data, _ error) {
				for _, e := range es {
					out = append(out, fine(e))
				}
				return out, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got [4]string
			do := func(i int) func(context.Context, engine.Steps) error {
				return func(ctx context.Context, s engine.Steps) error {
					d, err := engine.Do[journal.Stopped](ctx, s, engine.Stop{Step: 1})
					got[i] = d.Again
					return err
				}
			}
			steps := branches(begun(t, journal.Memory()))
			err := steps.Branch(t.Context(),
				engine.Branch{Scope: "x", Run: func(ctx context.Context, s engine.Steps) error {
					return errors.Join(do(0)(ctx, s), s.Branch(ctx, engine.Branch{Scope: "a", Run: do(1)}, engine.Branch{Scope: "b", Run: do(2)}))
				}},
				engine.Branch{Scope: "y", Run: do(3)})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "keys", [4]string{"x:stop/1", "x:a:stop/1", "x:b:stop/1", "y:stop/1"}, got)
		})
	}
}

func TestAPanicInABranchFailsTheBranchAndNotTheProcess(t *testing.T) {
	var p performs
	steps := engine.Local(begun(t, journal.Memory()), engine.NoopHost{}, p)
	ok := false
	bad := engine.Branch{Scope: "bad", Run: func(context.Context, engine.Steps) error { panic("boom") }}
	good := engine.Branch{Scope: "good", Run: func(context.Context, engine.Steps) error { ok = true; return nil }}
	if err := steps.Branch(t.Context(), bad, good); !errdefs.Internal.Is(err) || !strings.Contains(err.Error(), "bad") || !ok {
		t.Error(err, ok)
	}
	if err := steps.Branch(t.Context(), bad); !errdefs.Internal.Is(err) {
		t.Error(err)
	}
}

func TestEventsOfAGroupComeInTheGoroutineOfTheRun(t *testing.T) {
	inside := false // written by this goroutine only: the race detector holds it
	seen := map[string]int{}
	host := &listening{on: func(e event.Event) {
		if !inside {
			t.Error("an event outside of Do")
		}
		seen[e.Type()]++
		panic("a listener cannot fail a run")
	}}
	p := performs(func(ctx context.Context, host engine.Host, e engine.Effect) (journal.Data, error) {
		to := engine.DeltasOf(&engine.Run{ID: "r"}, host, e.Key(), 0)
		for range 10 {
			to.Emit(ctx, event.ToolOutput, "stdout", "x")
		}
		to.Emit(ctx, event.ToolOutput, "stdout", "")
		return fine(e), nil
	})
	steps := engine.Local(begun(t, journal.Memory()), host, p)
	inside = true
	if _, err := steps.Do(t.Context(), use("a", readOnly), use("b", readOnly), use("c", readOnly)); err != nil {
		t.Error(err)
	}
	inside = false
	same(t, "events", map[string]int{"tool.started": 3, "tool.finished": 3, "tool.output": 30}, seen)
}

type listening struct {
	engine.NoopHost
	on func(event.Event)
}

func (l *listening) Listening() bool { return true }

func (l *listening) Publish(_ context.Context, e event.Event) error { l.on(e); return nil }

func (l *listening) Checkpoint(context.Context, engine.Checkpoint) error { panic("nor a checkpoint") }

func TestACheckpointIsCalledAfterEachOutcomeWithItsPosition(t *testing.T) {
	host := &place{}
	run := begun(t, journal.Memory())
	var p performs
	if _, err := engine.Local(run, host, p).Do(t.Context(), use("a", writes), engine.Stop{Step: 1}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range host.checkpoints {
		got = append(got, fmt.Sprintf("%s %s %s %d", c.ExecID, c.Session, c.Step, c.Seq))
		if c.OriginalStartedAt.IsZero() || c.Timestamp.Before(c.OriginalStartedAt) || c.OriginalStartedAt != run.Log.State().Started {
			t.Errorf("at %v, of a run that began at %v", c.Timestamp, c.OriginalStartedAt)
		}
	}
	same(t, "checkpoints", []string{"r s tool/a 3", "r s stop/1 4"}, got)
}

func TestAnOutcomeThatChangesABoardHasToFit(t *testing.T) {
	said := map[string][]message.Message{engine.MainChannel: {message.Assistant("hi")}}
	for name, c := range map[string]struct {
		together bool
		gave     journal.Board
		says     string
	}{
		"a message in the order of chance": {true, journal.Board{Append: said}, "the channel main"},
		"an edit in the order of chance":   {true, journal.Board{Edit: map[string]message.Edit{engine.MainChannel: {}}}, "the channel main"},
		"a var in any order":               {true, journal.Board{Set: journal.Vars{"n": 1}}, ""},
		"a message in its place":           {false, journal.Board{Append: said}, ""},
		"a var of no type":                 {false, journal.Board{Set: journal.Vars{"n": make(chan int)}}, `"n"`},
		"a channel of no name":             {false, journal.Board{Append: map[string][]message.Message{"\xff": nil}}, "no UTF-8"},
	} {
		run := begun(t, journal.Memory())
		p := performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) { return c.gave, nil })
		_, err := engine.Local(run, engine.NoopHost{}, p).Do(t.Context(), look{"x", c.together})
		if c.says == "" && err != nil || c.says != "" && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if kept, _ := run.Log.Recorded(journal.Key{Op: "look", ID: "x"}); (kept != nil) != (c.says == "") {
			t.Errorf("%s: on record is %v", name, kept)
		}
	}
}

// look is an effect of an engine's own.
type look struct {
	id         string
	concurrent bool
}

func (l look) Key() journal.Key   { return journal.Key{Op: "look", ID: l.id} }
func (look) Intent() journal.Data { return nil }
func (look) Lost() journal.Data   { return nil }
func (l look) Concurrent() bool   { return l.concurrent }

func TestAnOutcomeThatComesWithAnErrorIsKept(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	bad := errors.New("and yet")
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) { return fine(e), bad })
	steps := engine.Local(run, engine.NoopHost{}, p)
	for i, want := range []error{bad, nil} { // the second time it is on record
		if out, err := engine.Do[journal.Stopped](t.Context(), steps, engine.Stop{Step: 1}); !errors.Is(err, want) || out.Again != "stop/1" {
			t.Error(i, out, err)
		}
	}
}

func TestAFailureIsNotedOnceAnAttemptAndIsNoOutcome(t *testing.T) {
	store := journal.Memory()
	run := begun(t, store)
	fail := true
	p := performs(func(_ context.Context, _ engine.Host, e engine.Effect) (journal.Data, error) {
		if fail {
			return nil, errdefs.RateLimit.Errorf("wait")
		}
		return journal.ModelFinished{}, nil
	})
	steps := engine.Local(run, engine.NoopHost{}, p)
	for range 2 {
		if _, err := steps.Do(t.Context(), engine.Generate{Step: 1}); !errdefs.RateLimit.Is(err) {
			t.Fatal(err)
		}
	}
	if fail = false; true {
		if _, err := steps.Do(t.Context(), engine.Generate{Step: 1}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "journal", []string{"model.started model/1", "model.failed model/1", "model.failed model/1", "model.finished model/1"}, read(t, store))
}

func TestAParkedEffectLeavesNoNote(t *testing.T) {
	store := journal.Memory()
	p := performs(func(context.Context, engine.Host, engine.Effect) (journal.Data, error) {
		return nil, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseAwaitingPerson}}
	})
	if _, err := engine.Local(begun(t, store), engine.NoopHost{}, p).Do(t.Context(), engine.Generate{Step: 1}); !errdefs.Interrupted.Is(err) {
		t.Fatal(err)
	}
	same(t, "journal", []string{"model.started model/1"}, read(t, store))
}

// leaving is a host whose listener ends its goroutine, as a test does by t.FailNow in the body of a stream's loop.
type leaving struct{ engine.NoopHost }

func (leaving) Listening() bool { return true }

func (leaving) Publish(_ context.Context, e event.Event) error {
	if e.Delta != "" {
		runtime.Goexit()
	}
	return nil
}

func TestAListenerThatEndsItsGoroutineLeavesNoJobBehind(t *testing.T) {
	log, err := journal.Open(t.Context(), journal.Memory(), "s")
	if err != nil {
		t.Fatal(err)
	}
	run := engine.Run{ID: "r", Session: "s", Log: log}
	stopped := make(chan string, 2)
	p := performs(func(ctx context.Context, host engine.Host, e engine.Effect) (journal.Data, error) {
		deltas := engine.DeltasOf(&run, host, e.Key(), 0)
		deltas.Emit(ctx, event.ToolOutput, "stdout", "x")
		<-ctx.Done() // which nothing but the leaving listener brings about
		stopped <- e.Key().ID
		return nil, ctx.Err()
	})
	read := func(id string) engine.Effect {
		return engine.UseTool{Call: journal.Called{ID: id, Name: "read", Input: "{}"}, Annotations: tool.Annotations{ReadOnly: true}}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = engine.Local(run, leaving{}, p).Do(t.Context(), read("a"), read("b"))
	}()
	<-done
	if len(stopped) != 2 {
		t.Error("a job goes on")
	}
}
