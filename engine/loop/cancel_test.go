package loop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestReadOnlyCallsOverlapAndAWritingCallIsABarrier(t *testing.T) {
	var mu sync.Mutex
	var order []string
	note := func(s string) { mu.Lock(); defer mu.Unlock(); order = append(order, s) }
	meet := map[string]chan struct{}{"c1": make(chan struct{}), "c2": make(chan struct{}), "c4": make(chan struct{}), "c5": make(chan struct{})}
	pair := map[string]string{"c1": "c2", "c2": "c1", "c4": "c5", "c5": "c4"}
	look := tool.Func("look", "", func(ctx context.Context, _ none) (string, error) {
		id := tool.FromContext(ctx).ID
		note("look")
		close(meet[id])
		<-meet[pair[id]] // returns only if the other one runs at the same time
		if id == "c1" || id == "c4" {
			runtime.Gosched() // the first of a pair ends last
		}
		return "saw " + id, nil
	}, tool.ReadOnly)
	write := tool.Func("write", "", func(context.Context, none) (string, error) { note("write"); return "wrote", nil })
	m := plays(uses(call("c1", "look", `{}`), call("c2", "look", `{}`), call("c3", "write", `{}`), call("c4", "look", `{}`), call("c5", "look", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{look, write}}}.do(t)
	if diff := cmp.Diff([]string{"look", "look", "write", "look", "look"}, order); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
	if diff := cmp.Diff("tool:  [c1 saw c1] [c2 saw c2] [c3 wrote] [c4 saw c4] [c5 saw c5]", d.since()[1]); diff != "" {
		t.Error(diff)
	}
}

func TestATroubleOfOneCallLeavesItsSiblingsResults(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func() (tool.Result, error)
		result string
	}{
		"panic":             {func() (tool.Result, error) { panic("boom") }, "the tool panicked: boom !"},
		"a nil dereference": {func() (tool.Result, error) { var p *path; return tool.Result{Content: p.Path}, nil }, "the tool panicked: runtime error"},
		"Goexit":            {func() (tool.Result, error) { runtime.Goexit(); return tool.Result{}, nil }, "the tool ended its goroutine without a result !"},
		"error":             {func() (tool.Result, error) { return tool.Result{}, errors.New("no disk") }, "no disk !"},
		"output and error":  {func() (tool.Result, error) { return tool.Result{Content: "half"}, errors.New("exit 1") }, "half\nexit 1 !"},
		"an error result":   {func() (tool.Result, error) { return tool.Result{Content: "exit 1", IsError: true}, nil }, "exit 1 !"},
		"broken text":       {func() (tool.Result, error) { return tool.Result{Content: "a\xffb"}, nil }, "a\uFFFDb]"},
	} {
		for kind, opts := range map[string][]tool.Option{"together": {tool.ReadOnly}, "one by one": nil} {
			t.Run(name+", "+kind, func(t *testing.T) {
				x := tool.Func("x", "", func(ctx context.Context, _ none) (tool.Result, error) {
					if tool.FromContext(ctx).ID == "c2" {
						return c.fail()
					}
					return tool.Result{Content: "ok"}, nil
				}, opts...)
				m := plays(uses(call("c1", "x", `{}`), call("c2", "x", `{}`), call("c3", "x", `{}`)), says("done"))
				d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{x}}, host: &listener{}}.do(t)
				line := d.since()[1]
				if d.err != nil || !strings.Contains(line, "[c1 ok] [c2 ") || !strings.Contains(line, "[c3 ok]") || !strings.Contains(line, c.result) {
					t.Error(d.err, line)
				}
			})
		}
	}
}

func TestACancelledToolIsCanceledAndTheOnesBehindItDoNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	waits := tool.Func("waits", "", func(ctx context.Context, _ none) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	m := plays(uses(call("c1", "waits", `{}`), call("c2", "x", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{waits, counted("x", &n)}}, ctx: ctx}.do(t)
	if !errors.Is(d.err, context.Canceled) || n != 0 || m.calls() != 1 {
		t.Error(d.err, n, m.calls())
	}
	if f := entries[journal.ToolFinished](t, d); len(f) != 1 || f[0].Outcome != journal.OutcomeCanceled {
		t.Error(f)
	}
	if diff := cmp.Diff([]string{"assistant:  <c1 waits {}> <c2 x {}>", "tool:  [c1 context canceled !] [c2 " + notRun + "]"}, d.since()); diff != "" {
		t.Error(diff)
	}
}

func TestAToolThatIgnoresItsCancelIsLeftBehindAfterFiveSeconds(t *testing.T) {
	for name, opts := range map[string][]tool.Option{"alone": nil, "beside another": {tool.ReadOnly}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var logged bytes.Buffer
				late := make(chan error, 1)
				deaf := tool.Func("deaf", "", func(ctx context.Context, _ none) (string, error) {
					out := tool.FromContext(ctx).Output
					_, _ = fmt.Fprint(out, "early")
					cancel()
					time.Sleep(time.Minute)
					_, err := fmt.Fprint(out, "late") // must not block, whoever has gone
					late <- err
					return "late", nil
				}, opts...)
				quick := tool.Func("quick", "", func(context.Context, none) (string, error) { return "ok", nil }, tool.ReadOnly)
				host := &listener{}
				m := plays(uses(call("c1", "deaf", `{}`), call("c2", "quick", `{}`)), says("done"))
				log := slog.New(slog.NewTextHandler(&logged, nil))
				began := time.Now()
				d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{deaf, quick}, Logger: log}, ctx: ctx, host: host}.do(t)
				if took := time.Since(began); took != 5*time.Second || !errors.Is(d.err, context.Canceled) {
					t.Error(took, d.err)
				}
				if f := find(entries[journal.ToolFinished](t, d), "c1"); f.Outcome != journal.OutcomeUnknown || !strings.Contains(f.Warning, "deaf") || f.Millis != 5000 {
					t.Errorf("%+v", f)
				}
				if !strings.Contains(d.since()[1], "[c1 The call was cancelled and did not stop. Whether it took effect is unknown") || !strings.Contains(logged.String(), "deaf") {
					t.Error(d.since(), logged.String())
				}
				before := d.log.Seq()
				if err := <-late; err != nil { // the bubble ends only when the tool's goroutine has
					t.Error(err)
				}
				synctest.Wait()
				if diff := cmp.Diff([]string{"early"}, host.texts(event.ToolOutput)); diff != "" || d.log.Seq() != before {
					t.Error("late output, or a late entry:", diff, d.log.Seq())
				}
			})
		})
	}
}

func find(fs []journal.ToolFinished, call string) journal.ToolFinished {
	for _, f := range fs {
		if f.Call == call {
			return f
		}
	}
	return journal.ToolFinished{}
}

func TestAToolThatStopsWithinItsGraceHasAnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slow := tool.Func("slow", "", func(ctx context.Context, _ none) (string, error) {
			cancel()
			<-ctx.Done()
			time.Sleep(4 * time.Second)
			return "rolled back", nil
		})
		d := play{cfg: loop.Config{Model: plays(uses(call("c", "slow", `{}`))), Tools: []tool.Tool{slow}}, ctx: ctx}.do(t)
		if f := entries[journal.ToolFinished](t, d)[0]; f.Outcome != journal.OutcomeOK || f.Content != "rolled back" || !errors.Is(d.err, context.Canceled) {
			t.Error(f, d.err)
		}
	})
}

// slowly streams words until it is cancelled, and then says something of its own.
type slowly struct {
	words int
	stop  func()
	err   error
}

func (s slowly) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	s.stop()
	return nil, s.err
}

func (s slowly) CompleteStream(ctx context.Context, _ model.Request, cb model.StreamHandler) error {
	for i := range s.words {
		if i == s.words-1 {
			s.stop()
		}
		if err := cb(model.StreamResult{Text: fmt.Sprint("w", i, " ")}); err != nil {
			return err
		}
	}
	return s.err
}

func TestACancelledModelCallIsCanceledWhateverTheModelSays(t *testing.T) {
	for name, said := range map[string]error{
		"the context's error": context.Canceled,
		"an error of its own": errors.New("stream broke"),
		"one with a class":    &model.Error{Provider: "p", Kind: errdefs.NotAvailable, Err: context.Canceled},
		"nothing":             nil,
	} {
		for _, listens := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, listening: %t", name, listens), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var host engine.Host = engine.NoopHost{}
				if listens {
					host = &listener{}
				}
				if said == nil && !listens {
					said = io.EOF
				}
				d := play{cfg: loop.Config{Model: slowly{3, cancel, said}}, ctx: ctx, host: host}.do(t)
				if !errors.Is(d.err, context.Canceled) || errdefs.Of(d.err) != nil {
					t.Error(d.err, errdefs.Of(d.err))
				}
				replies, failed := entries[journal.ModelFinished](t, d), entries[journal.ModelFailed](t, d)
				if listens && (len(replies) != 1 || !replies[0].Partial || replies[0].Message.Text() != "w0 w1 w2 " || d.talk.Last() != replies[0].Message) {
					t.Errorf("the partial text: %+v %v", replies, dump(d.talk))
				}
				if !listens && (len(failed) != 1 || failed[0].Class != "canceled") {
					t.Error(failed)
				}
			})
		}
	}
}

func TestAModelThatDoesNotLookAtItsContextIsStoppedByItsHandler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host := &listener{}
	host.on = func(e event.Event) {
		if e.Text == "w1 " {
			cancel()
		}
	}
	d := play{cfg: loop.Config{Model: slowly{1 << 20, func() {}, nil}}, ctx: ctx, host: host}.do(t)
	if n := len(host.texts(event.TextDelta)); n != 2 || !errors.Is(d.err, context.Canceled) {
		t.Error(n, d.err)
	}
}

// late is a model that says something more once a call of it is over, which no model may: to the handler of the call before.
type late struct {
	before *model.StreamHandler
	slowly
}

func (m late) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	before := *m.before
	*m.before = cb
	return m.slowly.CompleteStream(ctx, req, func(r model.StreamResult) error {
		err := cb(r)
		if before != nil {
			_ = before(model.StreamResult{Void: errors.New("begins anew")})
			_ = before(model.StreamResult{Text: "of another call"})
		}
		return err
	})
}

func TestWhatAModelSaysTooLateIsInNoOtherCallsText(t *testing.T) {
	var before model.StreamHandler
	for n, want := range []string{"w0 ", "w0 w1 ", "w0 w1 w2 "} {
		ctx, cancel := context.WithCancel(t.Context())
		d := play{cfg: loop.Config{Model: late{&before, slowly{n + 1, cancel, nil}}}, ctx: ctx, host: &listener{}}.do(t)
		if replies := entries[journal.ModelFinished](t, d); len(replies) != 1 || replies[0].Message.Text() != want {
			t.Errorf("the partial text: %+v", replies)
		}
	}
}

func TestAPartialReplyIsContinuedOnResume(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := play{cfg: loop.Config{Model: slowly{2, cancel, nil}}, ctx: ctx, host: &listener{}}.do(t)
	if !errors.Is(d.err, context.Canceled) {
		t.Fatal(d.err)
	}
	more, err := loop.New(loop.Config{Model: plays(says("w2"))})
	if err != nil {
		t.Fatal(err)
	}
	d.eng = more
	d.execute(t, t.Context(), engine.NoopHost{}) // the process died before it could say that the run was canceled
	if diff := cmp.Diff([]string{"assistant: w0 w1 ", goOn, "assistant: w2"}, d.since()); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
}

func TestARunThatIsLeftHasNoPartialReply(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	d := play{cfg: loop.Config{Model: slowly{2, func() { cancel(engine.ErrLeft) }, nil}}, ctx: ctx, host: &listener{}}.do(t)
	if replies := entries[journal.ModelFinished](t, d); !errors.Is(d.err, context.Canceled) || len(replies) > 0 {
		t.Fatal(d.err, replies)
	}
	more, err := loop.New(loop.Config{Model: plays(says("all of it"))})
	if err != nil {
		t.Fatal(err)
	}
	d.eng = more
	d.execute(t, t.Context(), engine.NoopHost{}) // whoever goes on with it
	if diff := cmp.Diff([]string{"assistant: all of it"}, d.since()); diff != "" || d.err != nil {
		t.Error(d.err, diff)
	}
}

func TestToolOutputComesInTheGoroutineOfTheRun(t *testing.T) {
	var plain []string // not guarded: the race detector tells
	host := &listener{on: func(e event.Event) {
		if e.Delta == event.ToolOutput {
			plain = append(plain, e.Stream+" "+e.Key.ID+" "+e.Text)
		}
	}}
	talks := tool.Func("talks", "", func(ctx context.Context, _ none) (string, error) {
		c := tool.FromContext(ctx)
		_, _ = fmt.Fprint(c.Output, "out")
		_, _ = fmt.Fprint(c.Errors, "err")
		return "", nil
	}, tool.ReadOnly)
	m := plays(uses(call("c1", "talks", `{}`), call("c2", "talks", `{}`)), uses(call("c3", "talks", `{}`)), says("done"))
	d := play{cfg: loop.Config{Model: m, Tools: []tool.Tool{talks}}, host: host}.do(t)
	if d.err != nil {
		t.Fatal(d.err)
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		var got []string
		for _, p := range plain {
			if strings.Contains(p, id) {
				got = append(got, p)
			}
		}
		if diff := cmp.Diff([]string{"stdout " + id + " out", "stderr " + id + " err"}, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, e := range host.events {
		if e.Delta == event.ToolOutput && (e.Seq == 0 || e.Run != "r" || e.Session != "s" || e.Key.Op != "tool") {
			t.Errorf("%+v", e)
		}
	}
}

func TestAnEffectThatFailsInsideLeavesItsCallUnknown(t *testing.T) {
	n := 0
	eng, err := loop.New(loop.Config{Model: plays(uses(call("c1", "x", `{}`), call("c2", "x", `{}`))), Tools: []tool.Tool{counted("x", &n)}})
	if err != nil {
		t.Fatal(err)
	}
	d := played{store: journal.Memory(), eng: eng}
	d.run = begun(t, d.store, engine.Run{})
	d.log = d.run.Log
	d.run.Steps = engine.Local(d.run, engine.NoopHost{}, faulty{eng}) // as a performer that somebody wrapped may
	d.execute(t, t.Context(), engine.NoopHost{})
	wantErr(t, d.err, errdefs.Internal, "boom")
	if line := d.since()[1]; n != 1 || !strings.Contains(line, "[c1 The process died") || !strings.Contains(line, "[c2 "+notRun) {
		t.Error(n, line)
	}
}

// faulty breaks after each tool.
type faulty struct{ engine.Performer }

func (f faulty) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	d, err := f.Performer.Perform(ctx, run, host, e)
	if _, ok := e.(engine.UseTool); ok {
		panic("boom")
	}
	return d, err
}
