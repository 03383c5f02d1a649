package script

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Config makes an engine of a program.
type Config struct {
	Name   string // of the program in errors: its file; "" is "script"
	Source string // required, at most 128 KiB
	// Loop is what generate and tool have: the model (nil: generate needs one by name), tools, hooks, limits of each generate. Its Channel is not used: a program names channels.
	Loop   loop.Config
	Models func(name string) (model.Model, error) // for generate(model = "…"), asked once for each name; nil: there are no others
	Limits Limits
}

// Limits end a run with errdefs.BudgetExceeded. What a run computes is counted anew when it is resumed, and comes to the same. 0 is the default given here.
type Limits struct {
	Steps int64 // of the interpreter: 10,000,000, which is about a second
	// Bytes is what a program makes, all in all, by an estimate; no single value is larger than a quarter: 256 MiB. An effect counts 4 KiB, and what it is given; what it gives is not in
	// it.
	Bytes int64
	Time  time.Duration // of Execute, with all that it waits for: none. A resumed run begins anew.
}

// Engine runs a program. It is immutable and serves many runs at once.
type Engine struct {
	cfg     Config
	program *star.Program
	sum     string // of what decides the program's path
	base    *loop.Engine
	model   string

	mu    sync.Mutex
	loops map[string]*loop.Engine // by what a generate asks for
}

// language changes when the same program would take another path.
const language = "pawl script 1"

// New compiles a program. The error is errdefs.Validation with the place of each problem, or what loop.New says of Config.Loop.
func New(cfg Config) (*Engine, error) {
	cfg.Name = cmp.Or(cfg.Name, "script")
	if cfg.Limits.Steps < 0 || cfg.Limits.Bytes < 0 || cfg.Limits.Time < 0 {
		return nil, errdefs.Validation.Errorf("script: a limit is negative: 0 is the default")
	}
	cfg.Limits.Steps = cmp.Or(cfg.Limits.Steps, 10_000_000)
	cfg.Limits.Bytes = cmp.Or(cfg.Limits.Bytes, 256<<20)
	program, err := star.Load(cfg.Name, cfg.Source, builtins.Keys()...)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	e := &Engine{cfg: cfg, program: program, loops: map[string]*loop.Engine{}}
	if cfg.Loop.Model == nil {
		e.cfg.Loop.Model = loop.NoModel()
	}
	e.cfg.Loop.Channel = ""
	if e.base, err = loop.New(e.cfg.Loop); err != nil {
		return nil, err
	}
	if cfg.Loop.Model != nil {
		e.model = e.base.Capabilities().Model
	}
	sum := sha256.Sum256([]byte(language + "\n" + cfg.Source))
	e.sum = "sha256:" + hex.EncodeToString(sum[:])
	return e, nil
}

// Load is New for a program in a file, whose path becomes Config.Name unless that is set. A file that is not there is errdefs.NotFound.
func Load(file string, cfg Config) (*Engine, error) {
	f, err := os.Open(file) //nolint:gosec // the caller's file
	if errors.Is(err, os.ErrNotExist) {
		return nil, errdefs.NotFound.Errorf("script: %w", err)
	}
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("script: %w", err)
	}
	defer func() { _ = f.Close() }()
	source, err := io.ReadAll(io.LimitReader(f, 1<<20)) // what is longer is refused below
	if err != nil {
		return nil, errdefs.NotAvailable.Errorf("script: %w", err)
	}
	cfg.Name, cfg.Source = cmp.Or(cfg.Name, file), string(source)
	return New(cfg)
}

// Capabilities says that it resumes, and needs nothing from Dependencies.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "script", Model: e.model, Version: e.sum, Resume: true}
}

// CanResume refuses a run that another program began, with errdefs.NotAvailable: the run stays as it is, and goes on with the program that it began with.
func (e *Engine) CanResume(cp engine.Checkpoint) error {
	if cp.SpecVersion != "" && cp.SpecVersion != e.sum {
		return errdefs.NotAvailable.Errorf("script: %s is not the program that began the run: it was %s, here is %s: resume with the file as it was", e.cfg.Name, cp.SpecVersion, e.sum)
	}
	return nil
}

// Execute runs the program. A run that another program began, or another version of it, is errdefs.Conflict before anything is done: by this one's path, what is on record would be taken for something else.
// An error of the program has the class of its cause, errdefs.Validation when that has none, and says FILE:LINE:COLUMN and the calls that led there.
func (e *Engine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	over := func() bool { return false }
	if e.cfg.Limits.Time > 0 {
		var cancel func()
		ctx, cancel, over = engine.Within(ctx, e.cfg.Limits.Time)
		defer cancel()
	}
	err := e.run(ctx, run, engine.StepsOf(run, host, e), board)
	if err != nil && over() {
		err = errdefs.BudgetExceeded.Errorf("script: %s ran longer than %v: the limit", e.cfg.Name, e.cfg.Limits.Time)
	}
	return board, err
}

func (e *Engine) run(ctx context.Context, run engine.Run, do engine.Steps, board *engine.Board) error {
	began, err := engine.Do[journal.Visited](ctx, do, begin{sum: e.sum})
	if err != nil {
		return err
	}
	if began.Node != e.sum {
		return errdefs.Conflict.Errorf("script: the run was begun by another program than %s is now (%s, now %s): resume it with the program as it was", e.cfg.Name, began.Node, e.sum)
	}
	p := &part{engine: e, ctx: ctx, run: run, do: do, board: board, counts: map[string]int{}}
	meter := star.NewMeter(star.Limits{Steps: e.cfg.Limits.Steps, Bytes: e.cfg.Limits.Bytes})
	return p.thread(meter, e.cfg.Name, func(t *starlark.Thread) error { return e.program.Run(t, builtins) })
}

// Perform does one effect, here and now: those of loops by the loop that they are of.
func (e *Engine) Perform(ctx context.Context, run engine.Run, host engine.Host, effect engine.Effect) (journal.Data, error) {
	for w := effect; ; {
		switch x := w.(type) {
		case of:
			return x.loop.Perform(ctx, run, host, effect)
		case begin:
			return journal.Visited{Node: x.sum}, nil
		case change:
			return x.board, nil
		case say:
			return journal.Said{Message: x.message, By: "script"}, nil
		case engine.Wrapped:
			w = x.Unwrap()
			continue
		}
		return e.base.Perform(ctx, run, host, effect)
	}
}

// GoOn implements [engine.Continuer]: what goes on in the background are calls of tools, which all its loops have.
func (e *Engine) GoOn(run engine.Run, host engine.Host) { e.base.GoOn(run, host) }

// loopOf gives the loop that a generate asks for; the engine keeps it.
func (e *Engine) loopOf(key string, change func(*loop.Config) error) (*loop.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.loops[key]; l != nil {
		return l, nil
	}
	cfg := e.cfg.Loop
	if err := change(&cfg); err != nil {
		return nil, err
	}
	l, err := loop.New(cfg)
	if err != nil {
		return nil, err
	}
	if len(e.loops) < 1000 { // a program may make up schemas
		e.loops[key] = l
	}
	return l, nil
}

// own is for effects of the engine's own path, which may simply be done again when their end is not on record.
type own struct{}

func (own) Intent() journal.Data { return nil }
func (own) Lost() journal.Data   { return nil }
func (own) Concurrent() bool     { return false }

// begin puts on record which program runs.
type begin struct {
	own
	sum string
}

func (begin) Key() journal.Key { return journal.Key{Op: "program"} }

// change puts on record what loops, and functions beside each other, did to the main channel.
type change struct {
	own
	n     string // which change it is: 1, 2, …
	board journal.Board
}

func (c change) Key() journal.Key { return journal.Key{Op: "board", ID: c.n} }

// say puts on record what the program itself said there.
type say struct {
	own
	n       string
	message message.Message
}

func (s say) Key() journal.Key { return journal.Key{Op: "say", ID: s.n} }

// of is an effect of a loop.
type of struct {
	engine.Effect
	loop *loop.Engine
}

func (o of) Unwrap() engine.Effect { return o.Effect }

// through gives a loop's effects to that loop, and notes what came of them.
type through struct {
	engine.Steps
	loop *loop.Engine
	seen *seen
}

func (t through) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	all := make([]engine.Effect, len(effects))
	for i, x := range effects {
		all[i] = of{x, t.loop}
	}
	out, err := t.Steps.Do(ctx, all...)
	t.seen.note(out, err)
	return out, err
}

// seen is what came of the effects of one builtin.
type seen struct {
	usage   model.Usage
	outcome string // of a call, the last word
	class   string // of the error that its tool failed with
	failed  error  // what kept an effect from having an outcome
}

func (s *seen) note(out []journal.Data, err error) {
	if s.failed == nil {
		s.failed = err
	}
	for _, d := range out {
		switch d := d.(type) {
		case journal.ModelFinished:
			s.usage = s.usage.Add(d.Usage)
		case journal.Compacted:
			s.usage = s.usage.Add(d.Usage)
		case journal.ToolJudged:
			if d.Refused() {
				s.outcome, s.class = d.Verdict, ""
				if d.Verdict == "deny" {
					s.outcome = string(journal.OutcomeDenied)
				}
			}
		case journal.Answered:
			if !d.Approved {
				s.outcome, s.class = string(journal.OutcomeRejected), ""
			}
		case journal.ToolFinished:
			s.outcome, s.class = string(d.Outcome), d.Class
		}
	}
}
