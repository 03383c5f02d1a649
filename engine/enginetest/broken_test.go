package enginetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/broken"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func engines(make func(w *enginetest.Work) engine.Engine, lacks ...enginetest.Lack) func(*testing.T) {
	return func(t *testing.T) {
		enginetest.Run(t, func(_ *testing.T, w *enginetest.Work) engine.Engine { return make(w) }, lacks...)
	}
}

func functions(change func(w *enginetest.Work, f engine.Func) engine.Func) func(*testing.T) {
	return engines(func(w *enginetest.Work) engine.Engine { return change(w, plain(w)) }, plainLacks...)
}

func stepping(change func(s *steps)) func(*testing.T) {
	return engines(func(w *enginetest.Work) engine.Engine { s := steps{w: w}; change(&s); return s }, enginetest.NoTools)
}

func stores(open func() engine.CheckpointStore) func(*testing.T) {
	return func(t *testing.T) {
		enginetest.CheckpointStore(t, func(*testing.T) engine.CheckpointStore { return open() })
	}
}

func hosts(open func() (engine.Host, func() int)) func(*testing.T) {
	return func(t *testing.T) {
		enginetest.Host(t, func(*testing.T) (engine.Host, func() int) { return open() })
	}
}

const (
	stopsInStep = "ends the run with the context's error and keeps what was done"
	resumed     = "interrupt/a resumed run does nothing again that was finished"
)

// The defects below are those of a public system of the same shape, numbered as they were found there, and what else breaks the contract. Those of its list that have no
// piece here to have them:
//
//	| 9  | the end of a run is not published on some exits | an engine publishes no ends: agent.Run does, once for each start, on every exit; agent has the test          |
//	| 14 | a copy by reflection has no guard against cycles | a board is never copied: its snapshot shares what is immutable, and its JSON refuses what contains itself;   |
//	|    |                                                  | a store that keeps what was given to it, or cuts it short, is below                                       |
//
// Defects 1 to 4 are of deciders, seeders and the run around the engine: package agenttest has them.
var defects = map[string]broken.Piece{
	"5: the gate shows tools, and does not hold where they run": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return steps{w: w} }),
		Fails: []string{"tools/a tool that the agent may not use does not run"},
	},
	"6: joining branches copies all that each has": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return merging{steps{w: w}} }, enginetest.NoTools, enginetest.NoJournal),
		Fails: []string{"completion/branches complete, and nothing of any is lost"},
	},
	"8: a resumed run goes on in one branch": {
		Run:   stepping(func(s *steps) { s.only = true }),
		Fails: []string{"interrupt/a resumed run goes on in every branch"},
	},
	"10: a cancel has another error": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return after(f, func(err error) error {
				if errdefs.Canceled(err) {
					return errdefs.Aborted.Errorf("the run was stopped: %v", err)
				}
				return err
			})
		}),
		Fails: []string{"cancel/a run that was cancelled before", "cancel/a cancel in a step " + stopsInStep, "cancel/a deadline in a step " + stopsInStep},
	},
	"10: a cancel has the error of what it broke": {
		Run: functions(func(w *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				b, err := f(ctx, run, host, b)
				if errdefs.Canceled(err) {
					err = errdefs.NotAvailable.Errorf("the connection was closed")
				}
				return b, err
			}
		}),
		Fails: []string{"cancel/what breaks in a step because of a cancel", "cancel/a cancel in a step " + stopsInStep},
	},
	"10: a cancel is an interrupt": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return after(f, func(err error) error {
				if errdefs.Canceled(err) {
					return errors.Join(err, engine.InterruptedError{})
				}
				return err
			})
		}),
		Fails: []string{"cancel/a cancel in a step " + stopsInStep},
	},
	"11: nobody looks for an interrupt": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				return f(ctx, run, engine.NoopHost{}, b)
			}
		}),
		Fails: []string{"interrupt/an interrupt that is there before", "interrupt/an interrupt stops at the next step", "interrupt/an interrupt without a cause", "concurrency/an interrupt is for one run"},
	},
	"11: branches race for the one interrupt": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return racing{w} }, enginetest.NoTools, enginetest.NoUsage, enginetest.NoJournal),
		Fails: []string{"interrupt/every branch sees the one interrupt"},
	},
	"12: everything is tried again": {
		Run: stepping(func(s *steps) { s.tries = 2 }),
		Fails: []string{
			"failure/a step that fails with validation", "failure/a step that fails with budget_exceeded", "host/ReportUsage says that the budget is used up",
			"failure/a panic in a step",
		},
	},
	"12: every model call is tried again": {
		Run: engines(func(w *enginetest.Work) engine.Engine {
			eng, err := loop.New(loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}, Middleware: []model.Middleware{func(m model.Model) model.Model { return insisting{m} }}})
			if err != nil {
				panic(err)
			}
			return eng
		}, enginetest.NoBranches),
		Fails: []string{"failure/a model call that fails with validation", "failure/a model call that fails with budget_exceeded"},
	},
	"14: a store keeps what it is given": {
		Run: stores(func() engine.CheckpointStore {
			return &shelf{keep: func(c engine.Checkpoint) engine.Checkpoint { return c }}
		}),
		Fails: []string{"what the caller does after a save", "each load is the caller's own", "what can't be kept as it is"},
	},
	"15: a store writes plain JSON": {
		Run:   stores(func() engine.CheckpointStore { return &shelf{keep: lossy} }),
		Fails: []string{"everything comes back with its type"},
	},
	"16: a function begins a resumed run afresh": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return afresh(plain(w)) }, plainLacks...),
		Fails: []string{resumed, "interrupt/a checkpoint of another run is refused", "interrupt/a run that has not begun is resumed whole"},
	},
	"20: an interrupt is looked for before the step is on record": {
		Run:   stepping(func(s *steps) { s.hasty = true }),
		Fails: []string{resumed, "interrupt/an interrupt stops at the next step", "interrupt/an interrupt in the last step does not undo it"},
	},
	"21: an error of ReportUsage fails the run": {
		Run:   stepping(func(s *steps) { s.strict = true }),
		Fails: []string{"host/ReportUsage fails", "host/ReportUsage is unavailable"},
	},
	"21: an error of Publish fails the run": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				if err := host.Publish(ctx, event.Event{}); err != nil {
					return b, err
				}
				return f(ctx, run, host, b)
			}
		}),
		Fails: []string{"host/Publish fails", "host/Publish panics"},
	},
	"22: a store copies the outermost maps": {
		Run:   stores(func() engine.CheckpointStore { return &shelf{keep: shallow} }),
		Fails: []string{"what the caller does after a save", "each load is the caller's own"},
	},

	"an engine that stops does not look whether its context has ended": {
		Run: functions(func(w *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				return f(context.WithoutCancel(ctx), run, host, b)
			}
		}),
		Fails: []string{"cancel/a run that was cancelled before", "cancel/a cancel in a step " + stopsInStep},
	},
	"a run that fails has no board": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				if b, err := f(ctx, run, host, b); err == nil {
					return b, nil
				} else {
					return nil, err
				}
			}
		}),
		Fails: []string{"cancel/a cancel in a step " + stopsInStep, "interrupt/an interrupt stops at the next step"},
	},
	"a run that fails has a fresh board": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				before := b.Snapshot()
				b, err := f(ctx, run, host, b)
				if err != nil {
					b = engine.NewBoard(before)
				}
				return b, err
			}
		}),
		Fails: []string{"cancel/a cancel in a step " + stopsInStep, "interrupt/an interrupt stops at the next step"},
	},
	"it marks its run": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				run.Attributes["engine"] = "mine"
				return f(ctx, run, host, b)
			}
		}),
		Fails: []string{"completion/a run completes"},
	},
	"it leaves a goroutine": {
		Run: functions(func(_ *enginetest.Work, f engine.Func) engine.Func {
			return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				go func() { select {} }()
				return f(ctx, run, host, b)
			}
		}),
		Fails: []string{"completion/a run completes"},
	},
	"runs share the engine's board": {
		Run: engines(func(w *enginetest.Work) engine.Engine {
			shared := engine.NewBoard(engine.Snapshot{Vars: map[string]any{"given": "by the caller"}})
			return engine.Func(func(ctx context.Context, run engine.Run, host engine.Host, _ *engine.Board) (*engine.Board, error) {
				return plain(w)(ctx, run, host, shared)
			})
		}, plainLacks...),
		Fails: []string{"concurrency/runs of one engine at the same time"},
	},
	"it does its steps beside the record": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return unrecorded{plain(w)} }, enginetest.NoBranches, enginetest.NoTools, enginetest.NoUsage),
		Fails: []string{resumed, "journal/what is on record is given again", "journal/a replay finds no difference", "journal/nothing begins once the journal has failed"},
	},
	"what it says is not on record": {
		Run: engines(func(w *enginetest.Work) engine.Engine {
			return engine.Func(func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
				defer func() { b.Append(engine.MainChannel, message.Assistant("by the way")) }()
				return steps{w: w}.Execute(ctx, run, host, b)
			})
		}, enginetest.NoTools),
		Fails: []string{"journal/the transcript is valid at every entry"},
	},
	"it talks to a model and says that it does not": {
		Run: engines(func(w *enginetest.Work) engine.Engine {
			eng, err := loop.New(loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}})
			if err != nil {
				panic(err)
			}
			return eng
		}, enginetest.NoBranches, enginetest.NoUsage),
		Fails: []string{"completion/a run completes"},
	},
	"it does not look whether what it needs is there": {
		Run:   engines(func(w *enginetest.Work) engine.Engine { return careless{needy{steps{w: w}}} }, enginetest.NoTools),
		Fails: []string{"completion/without what it needs it does nothing"},
	},

	"a host is told all, and says that nobody listens": {
		Run: hosts(func() (engine.Host, func() int) {
			h := &deaf{}
			return h, func() int { return h.n }
		}),
		Fails: []string{"what is published reaches somebody exactly when it says so"},
	},
	"a host gives a channel to each who asks": {
		Run: hosts(func() (engine.Host, func() int) {
			return engine.HostFuncs{InterruptsFunc: func() <-chan engine.Interrupt { return make(chan engine.Interrupt, 1) }}, nil
		}),
		Fails: []string{"the channel of interrupts stays the same"},
	},
	"a host says no when nobody is there": {
		Run: hosts(func() (engine.Host, func() int) {
			return engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) { return engine.Reply{}, nil }}, nil
		}),
		Fails: []string{"a question that nobody is there for"},
	},
	"a host waits for somebody to come": {
		Run: hosts(func() (engine.Host, func() int) {
			return engine.HostFuncs{AskUserFunc: func(context.Context, engine.Prompt) (engine.Reply, error) { select {} }}, nil
		}),
		Fails: []string{"a question that nobody is there for", "nothing waits once the context has ended"},
	},
	"a host writes to a checkpoint's attributes": {
		Run: hosts(func() (engine.Host, func() int) {
			return engine.HostFuncs{CheckpointFunc: func(_ context.Context, c engine.Checkpoint) error { c.Attributes["host"] = "me"; return nil }}, nil
		}),
		Fails: []string{"what it is given stays as it was"},
	},

	"a store gives nil for what it does not have": {
		Run:   stores(func() engine.CheckpointStore { return &shelf{keep: exactly, silent: true} }),
		Fails: []string{"what was never saved is not found"},
	},
	"a store keeps the first": {
		Run:   stores(func() engine.CheckpointStore { return &shelf{keep: exactly, first: true} }),
		Fails: []string{"the last save wins"},
	},
	"a store saves although the context has ended": {
		Run:   stores(func() engine.CheckpointStore { return &shelf{keep: exactly} }),
		Fails: []string{"nothing is saved once the context has ended", "what can't be kept as it is"},
	},
}

// after changes the error of an engine.
func after(f engine.Func, change func(error) error) engine.Func {
	return func(ctx context.Context, run engine.Run, host engine.Host, b *engine.Board) (*engine.Board, error) {
		b, err := f(ctx, run, host, b)
		return b, change(err)
	}
}

// merging gives each branch a board, and lays them over each other.
type merging struct{ steps }

func (m merging) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if m.w.Branches() == 0 {
		return m.steps.Execute(ctx, run, host, board)
	}
	boards := make([]*engine.Board, m.w.Branches())
	var branches []engine.Branch
	for i := range boards {
		boards[i] = engine.NewBoard(board.Snapshot())
		branches = append(branches, engine.Branch{Scope: string(rune('a' + i)), Run: func(ctx context.Context, do engine.Steps) error {
			return m.line(ctx, do, channelled{boards[i]}, i+1)
		}})
	}
	err := engine.StepsOf(run, host, m).Branch(ctx, branches...)
	for _, b := range boards {
		for name, h := range b.Snapshot().Channels {
			board.SetChannel(name, h)
		}
	}
	return board, err
}

// channelled keeps what a branch says on a channel that all have.
type channelled struct{ *engine.Board }

func (c channelled) SetVar(_ string, v any) {
	c.Append("branches", message.User(v.(string)))
}

// racing has branches that each look for an interrupt.
type racing struct{ w *enginetest.Work }

func (r racing) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if r.w.Branches() == 0 {
		return plain(r.w).Execute(ctx, run, host, board)
	}
	errs := make([]error, r.w.Branches())
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := 1; n <= r.w.Steps(); n++ {
				select {
				case intr := <-host.Interrupts():
					errs[i] = engine.InterruptedError{Interrupt: intr}
					return
				default:
				}
				if _, errs[i] = r.w.Do(ctx, enginetest.Step{Branch: i + 1, Number: n}); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return board, errors.Join(errs...)
}

// insisting tries each call twice.
type insisting struct{ model.Model }

func (i insisting) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if resp, err := i.Model.Complete(ctx, req); err == nil {
		return resp, nil
	}
	return i.Model.Complete(ctx, req)
}

func (i insisting) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if err := i.Model.CompleteStream(ctx, req, cb); err == nil {
		return nil
	}
	return i.Model.CompleteStream(ctx, req, cb)
}

// afresh takes no notice of what it should resume.
func afresh(f engine.Func) engine.Func {
	return func(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
		run.ResumeFrom = nil
		return f(ctx, run, host, board)
	}
}

// unrecorded says that it resumes.
type unrecorded struct{ f engine.Func }

func (u unrecorded) Capabilities() engine.Capabilities { return engine.Capabilities{Resume: true} }

func (u unrecorded) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	return afresh(u.f)(ctx, run, host, board)
}

type careless struct{ needy }

func (c careless) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	return c.steps.Execute(ctx, run, host, board)
}

// deaf is told what happens, and says that it is not.
type deaf struct {
	engine.NoopHost
	n int
}

func (*deaf) Listening() bool { return false }

func (d *deaf) Publish(context.Context, event.Event) error { d.n++; return nil }

// shelf is a store of a careless author.
type shelf struct {
	keep          func(engine.Checkpoint) engine.Checkpoint
	silent, first bool

	mu  sync.Mutex
	all map[string]engine.Checkpoint
}

func (s *shelf) Save(_ context.Context, c engine.Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]engine.Checkpoint{}
	}
	if _, there := s.all[c.ExecID]; !there || !s.first {
		s.all[c.ExecID] = s.keep(c)
	}
	return nil
}

func (s *shelf) Load(_ context.Context, execID string) (*engine.Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.all[execID]
	switch {
	case !ok && s.silent:
		return nil, nil
	case !ok:
		return nil, errdefs.NotFound.Errorf("none of %s", execID)
	}
	c = s.keep(c)
	return &c, nil
}

func exactly(c engine.Checkpoint) (out engine.Checkpoint) {
	b, err := json.Marshal(c)
	if err == nil {
		_ = json.Unmarshal(b, &out)
	}
	return out
}

// lossy takes vars through JSON as everybody does.
func lossy(c engine.Checkpoint) engine.Checkpoint {
	if c.Board == nil {
		return exactly(c)
	}
	vars := map[string]any(c.Board.Vars)
	c.Board = &engine.Snapshot{Channels: c.Board.Channels}
	c = exactly(c)
	if b, err := json.Marshal(vars); err == nil {
		vars = nil
		_ = json.Unmarshal(b, &vars)
		c.Board.Vars = vars
	}
	return c
}

// shallow copies maps, and not what is in them.
func shallow(c engine.Checkpoint) engine.Checkpoint {
	c.Attributes = maps.Clone(c.Attributes)
	if c.Board != nil {
		c.Board = &engine.Snapshot{Channels: maps.Clone(c.Board.Channels), Vars: maps.Clone(c.Board.Vars)}
	}
	return c
}

func TestTheSuitesFailOnBrokenPieces(t *testing.T) { broken.Pieces(t, defects) }
