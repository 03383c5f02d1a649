package enginetest_test

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// steps is an engine whose steps are effects. Its other fields are defects, for broken_test.go.
type steps struct {
	w      *enginetest.Work
	only   bool // a resumed run goes on in its first branch
	hasty  bool // it looks for an interrupt before a step is on record
	strict bool // every error of ReportUsage fails the run
	tries  int  // how often what fails is tried
}

func (s steps) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "steps", Resume: true}
}

func (s steps) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	do := engine.StepsOf(run, host, s)
	if s.w.Branches() == 0 {
		return board, s.line(ctx, do, board, 0)
	}
	var branches []engine.Branch
	for b := 1; b <= s.w.Branches(); b++ {
		branches = append(branches, engine.Branch{Scope: "b" + strconv.Itoa(b), Run: func(ctx context.Context, do engine.Steps) error { return s.line(ctx, do, board, b) }})
	}
	if s.only && run.ResumeFrom != nil {
		branches = branches[:1]
	}
	return board, do.Branch(ctx, branches...)
}

// blackboard is what a line writes to.
type blackboard interface {
	Append(channel string, ms ...message.Message)
	SetVar(name string, v any)
}

// line does one step after the other. What branches say goes into vars: on the main channel it would stand in the order of chance.
func (s steps) line(ctx context.Context, do engine.Steps, board blackboard, branch int) error {
	for n := 1; n <= s.w.Steps(); n++ {
		said, err := engine.Do[journal.Said](ctx, do, step{enginetest.Step{Branch: branch, Number: n}})
		if err != nil {
			return err
		}
		if branch == 0 {
			board.Append(engine.MainChannel, said.Message)
		} else {
			board.SetVar(fmt.Sprintf("said.%d.%d", branch, n), said.Message.Text())
		}
	}
	return nil
}

// step is the effect of doing one.
type step struct{ at enginetest.Step }

func (s step) Key() journal.Key     { return journal.Key{Op: "step", ID: strconv.Itoa(s.at.Number)} }
func (s step) Intent() journal.Data { return nil }
func (s step) Lost() journal.Data   { return nil }
func (s step) Concurrent() bool     { return false }

func (s steps) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (d journal.Data, err error) {
	if scoped, ok := e.(engine.Scoped); ok {
		e = scoped.Effect
	}
	for range max(1, s.tries) {
		if d, err = s.try(ctx, host, e.(step)); err == nil {
			break
		}
	}
	return d, err
}

func (s steps) try(ctx context.Context, host engine.Host, e step) (_ journal.Data, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered("a step", p)
		}
	}()
	result, err := s.w.Do(ctx, e.at)
	if err != nil {
		return nil, err
	}
	if s.hasty {
		select {
		case i, ok := <-host.Interrupts():
			if ok {
				return nil, engine.InterruptedError{Interrupt: i}
			}
		default:
		}
	}
	said := journal.Said{Message: message.User(result)}
	if err := report(ctx, host); s.strict && err != nil || errdefs.BudgetExceeded.Is(err) {
		return said, err
	}
	return said, nil
}

func report(ctx context.Context, host engine.Host) (err error) {
	defer func() { _ = recover() }()
	return host.ReportUsage(ctx, model.Usage{Input: 1})
}

func TestAnEngineOfStepsIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, w *enginetest.Work) engine.Engine { return steps{w: w} }, enginetest.NoTools)
}

// plain is the least that an engine is: a function that does its work itself, and keeps no record.
func plain(w *enginetest.Work) engine.Func {
	return func(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
		if run.ResumeFrom != nil {
			return board, errdefs.NotAvailable.Errorf("it can't resume")
		}
		for n := 1; n <= w.Steps(); n++ {
			if err := ctx.Err(); err != nil {
				return board, err
			}
			select {
			case i, ok := <-host.Interrupts():
				if ok {
					return board, engine.InterruptedError{Interrupt: i}
				}
			default:
			}
			result, err := w.Do(ctx, enginetest.Step{Number: n})
			if err != nil && ctx.Err() != nil { // whatever broke, this is why
				err = ctx.Err()
			}
			if err != nil {
				return board, err
			}
			board.Append("work", message.User(result))
		}
		return board, nil
	}
}

var plainLacks = []enginetest.Lack{enginetest.NoBranches, enginetest.NoTools, enginetest.NoUsage, enginetest.NoJournal}

func TestAFunctionIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, w *enginetest.Work) engine.Engine { return plain(w) }, plainLacks...)
}

// needy is an engine that needs a client.
type needy struct{ steps }

type client struct{}

func (n needy) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "needy", Resume: true, Needs: []reflect.Type{reflect.TypeFor[*client]()}}
}

func (n needy) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if _, err := engine.Need[*client](run.Deps); err != nil {
		return board, err
	}
	return n.steps.Execute(ctx, run, host, board)
}

func TestAnEngineWithNeedsIsAnEngine(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, w *enginetest.Work) engine.Engine {
		engine.Provide(w.Dependencies(), &client{})
		return needy{steps{w: w}}
	}, enginetest.NoTools)
}

func silent(h engine.Host) enginetest.HostFactory {
	return func(*testing.T) (engine.Host, func() int) { return h, nil }
}

// listener counts what it is told.
type listener struct {
	engine.NoopHost
	heard      atomic.Int64
	interrupts chan engine.Interrupt
}

func (l *listener) Listening() bool { return true }

func (l *listener) Publish(context.Context, event.Event) error { l.heard.Add(1); return nil }

func (l *listener) Interrupts() <-chan engine.Interrupt { return l.interrupts }

func TestHostsAreHosts(t *testing.T) {
	t.Run("NoopHost", func(t *testing.T) { enginetest.Host(t, silent(engine.NoopHost{})) })
	t.Run("HostFuncs without any", func(t *testing.T) { enginetest.Host(t, silent(engine.HostFuncs{})) })
	t.Run("HostFuncs over a listener", func(t *testing.T) {
		enginetest.Host(t, func(*testing.T) (engine.Host, func() int) {
			l := &listener{interrupts: make(chan engine.Interrupt)}
			return engine.HostFuncs{Inner: l}, func() int { return int(l.heard.Load()) }
		})
	})
	t.Run("HostFuncs with all", func(t *testing.T) {
		enginetest.Host(t, func(*testing.T) (engine.Host, func() int) {
			l := &listener{}
			return engine.HostFuncs{
				PublishFunc: l.Publish, InterruptsFunc: l.Interrupts, CheckpointFunc: engine.MemoryCheckpoints().Save, ReportUsageFunc: l.ReportUsage,
				AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) {
					return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
				},
			}, func() int { return int(l.heard.Load()) }
		}, enginetest.Attended)
	})
	t.Run("Publishing", func(t *testing.T) {
		enginetest.Host(t, func(t *testing.T) (engine.Host, func() int) {
			var bus event.Bus
			var n atomic.Int64
			bus.Subscribe(t.Context(), func(event.Event) bool { n.Add(1); return false }, event.Policy{})
			t.Cleanup(bus.Close)
			return engine.Publishing(&bus, nil), func() int { return int(n.Load()) }
		})
	})
}

func TestMemoryKeepsCheckpoints(t *testing.T) {
	enginetest.CheckpointStore(t, func(*testing.T) engine.CheckpointStore { return engine.MemoryCheckpoints() })
}
