package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Factory makes the engine that does some work.
type Factory func(t *testing.T, w *Work) engine.Engine

// Lack is something that an engine does not have, by its nature. It is left out of the suite; that it is not there is checked where it can be.
type Lack int

// The lacks.
const (
	NoBranches Lack = iota // it does nothing side by side
	NoTools                // its steps are not calls of the tool ToolName, which Run.Tools admits or not
	NoUsage                // it calls no model, and never reports usage
	NoJournal              // it does its steps without Run.Log and Run.Steps
)

// Run checks an engine against the contract of [engine.Engine].
func Run(t *testing.T, factory Factory, lacks ...Lack) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []check
	}{
		{"completion", completions},
		{"cancel", cancels},
		{"interrupt", interrupts},
		{"host", hosts},
		{"failure", failures},
		{"tools", gates},
		{"journal", records},
		{"concurrency", races},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				if slices.ContainsFunc(c.needs, func(l Lack) bool { return slices.Contains(lacks, l) }) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					before := goleak.IgnoreCurrent()
					c.run(&scene{T: t, factory: factory, lacks: lacks})
					if !t.Failed() { // what hangs has its goroutines
						if err := goleak.Find(before); err != nil {
							t.Errorf("goroutines are left: %v", err)
						}
					}
				})
			}
		})
	}
}

// check is one case.
type check struct {
	name  string
	run   func(s *scene)
	needs []Lack // what the engine must not lack
}

const (
	limit  = 30 * time.Second // of a run
	prompt = 2 * time.Second  // how long an engine may take to return once its context has ended; less than a tool gets
)

// scene is a session with a run in it.
type scene struct {
	*testing.T
	factory Factory
	lacks   []Lack

	w     *Work
	eng   engine.Engine
	store journal.Store
	host  *place
	run   engine.Run
	seed  message.History
	vars  map[string]any
}

func (s *scene) has(l Lack) bool { return !slices.Contains(s.lacks, l) }

// sets the scene: work of so many steps, and a run that has begun.
func (s *scene) sets(steps, branches int) *scene {
	s.Helper()
	s.w = newWork(s.T, steps, branches)
	s.eng = s.factory(s.T, s.w)
	s.store, s.host = journal.Memory(), &place{interrupts: make(chan engine.Interrupt, 1)}
	s.begin("s")
	return s
}

// begin begins a run in a session, as agent.Run does.
func (s *scene) begin(session string) {
	s.Helper()
	log, err := journal.Open(s.Context(), s.store, session)
	if err != nil {
		s.Fatal(err)
	}
	s.vars = map[string]any{"given": "by the caller"}
	run := "run-" + session
	err = log.Drive(s.Context(), "driver-1",
		journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: run, Data: journal.RunStarted{Agent: "agent", Owner: "driver-1", Attempt: 1, Inputs: s.vars}},
		journal.Entry{Run: run, Data: journal.Said{Message: message.User("do the work")}})
	if err != nil {
		s.Fatal(err)
	}
	s.run = engine.Run{
		ID: run, AgentID: "agent", Session: session, Attempt: 1, System: "You work.", Log: log, Values: new(engine.Values), Deps: s.w.Dependencies(),
		Attributes: map[string]string{"agent.id": "agent", "run.id": run, "conversation.id": session, "agent.attempt": "1", "team": "red"},
	}
	s.seed = log.State().Seed
}

// resume opens the session again, as another process would, and makes the run go on: from the last checkpoint that the host was given, or else from the session's position.
func (s *scene) resume() {
	s.Helper()
	log, err := journal.Open(s.Context(), s.store, s.run.Session)
	if err != nil {
		s.Fatal(err)
	}
	if err := log.Drive(s.Context(), "driver-2", journal.Entry{Run: s.run.ID, Data: journal.Resumed{Owner: "driver-2"}}); err != nil {
		s.Fatal(err)
	}
	from := engine.Checkpoint{ExecID: s.run.ID, Session: s.run.Session, Seq: log.Seq()}
	if last := s.host.last(); last != nil {
		from = *last
	}
	s.host = &place{interrupts: make(chan engine.Interrupt, 1)}
	s.run.Log, s.run.ResumeFrom, s.run.Values, s.seed = log, &from, new(engine.Values), log.State().Seed
}

// end is how an Execute ended.
type end struct {
	board    *engine.Board
	err      error
	panicked any
	stack    []byte
}

// execute drives the engine to its end, and holds what every end has to hold.
func (s *scene) execute(ctx context.Context) end {
	s.Helper()
	return s.on(ctx, s.host)
}

func (s *scene) on(ctx context.Context, host engine.Host) end {
	s.Helper()
	run := s.run
	run.Background = engine.NewBackground(ctx, host)
	defer run.Background.End()
	attrs, tools, deps, from := maps.Clone(run.Attributes), slices.Clone(run.Tools), run.Deps, run.ResumeFrom
	var was engine.Checkpoint
	if from != nil {
		was = *from
		was.Attributes = maps.Clone(from.Attributes)
	}
	board := engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: s.seed}, Vars: maps.Clone(s.vars)})
	ended := make(chan end, 1)
	go func() {
		e := end{panicked: "runtime.Goexit"}
		defer func() {
			if p := recover(); p != nil {
				e.panicked, e.stack = p, debug.Stack()
			}
			ended <- e
		}()
		b, err := s.eng.Execute(ctx, run, host, board)
		e = end{board: b, err: err}
	}()
	e := s.await(ctx, ended)
	if e.panicked == nil && e.board == nil {
		s.Errorf("Execute gave no board, with the error %v: want the board as far as it got", e.err)
		e.board = board
	}
	if !reflect.DeepEqual(attrs, run.Attributes) || !reflect.DeepEqual(tools, run.Tools) {
		s.Errorf("the engine changed its run: attributes %v, tools %q; they were %v, %q", run.Attributes, run.Tools, attrs, tools)
	}
	if run.Deps != deps || from != nil && !reflect.DeepEqual(was, *from) {
		s.Errorf("the engine changed what its run was given: ResumeFrom is %+v, was %+v", from, was)
	}
	if n, _ := s.w.thoughts(); !s.has(NoUsage) && (n > 0 || s.host.reports() > 0) {
		s.Errorf("an engine that reports no usage called a model %d times and reported usage %d times", n, s.host.reports())
	}
	return e
}

// await waits for the engine, not for ever, and not long once ctx has ended.
func (s *scene) await(ctx context.Context, ended <-chan end) end {
	s.Helper()
	late := time.NewTimer(limit)
	defer late.Stop()
	stop := ctx.Done()
	for {
		select {
		case e := <-ended:
			return e
		case <-stop:
			stop = nil
			late.Reset(prompt)
		case <-late.C:
			if stop == nil {
				s.Fatalf("Execute did not return within %v of the end of its context", prompt)
			}
			s.Fatalf("Execute did not return within %v: it hangs", limit)
		}
	}
}

// wants fails unless an Execute gave an error that is one of class; nil is no error.
func (s *scene) wants(e end, class error) {
	s.Helper()
	switch {
	case e.panicked != nil:
		s.Fatalf("Execute panicked: %v\n%s", e.panicked, e.stack)
	case class == nil && e.err != nil:
		s.Fatalf("Execute failed: %v", e.err)
	case !errors.Is(e.err, class):
		s.Fatalf("Execute gave the error %v, want one for which errors.Is finds %v", e.err, class)
	}
}

// completes fails unless the run completed with all its work done once, and on the board.
func (s *scene) completes(e end) {
	s.Helper()
	s.wants(e, nil)
	s.each(1)
	s.keeps(e)
	if v := e.board.Var("given"); v != "by the caller" {
		s.Errorf("the caller's var on the board is %v", v)
	}
}

// each fails unless every step was begun n times.
func (s *scene) each(n int) {
	s.Helper()
	done := s.w.done()
	for branch := min(1, s.w.branches); branch <= s.w.branches; branch++ {
		for step := 1; step <= s.w.steps; step++ {
			if at := (Step{branch, step}); done[at] != n {
				s.Errorf("step %+v was done %d times, want %d; all: %v", at, done[at], n, done)
			}
		}
	}
}

// keeps fails unless what was done is on the board.
func (s *scene) keeps(e end) {
	s.Helper()
	on := written(e.board)
	for _, r := range s.w.results() {
		if !strings.Contains(on, r) {
			s.Errorf("%q is not on the board, which has: %s", r, on)
		}
	}
}

// written is all text on a board.
func written(b *engine.Board) string {
	var all strings.Builder
	snap := b.Snapshot()
	for _, h := range snap.Channels {
		for _, m := range h.All() {
			all.Write(m.AppendJSON(nil))
		}
	}
	for name, v := range snap.Vars {
		fmt.Fprintf(&all, " %s=%+v", name, v)
	}
	return all.String()
}

// interrupted fails unless the run was interrupted, by i.
func (s *scene) interrupted(e end, i engine.Interrupt) {
	s.Helper()
	s.wants(e, errdefs.Interrupted)
	var got engine.InterruptedError
	if !errors.As(e.err, &got) || got.Interrupt != i {
		s.Errorf("Execute gave the error %#v, want an engine.InterruptedError with %+v", e.err, i)
	}
}

// place is the host of the cases. It says yes to every question.
type place struct {
	interrupts  chan engine.Interrupt
	publish     func() error
	check       func() error
	usage       func() error
	mu          sync.Mutex
	checkpoints []engine.Checkpoint
	reported    int
	heard       int
}

// barge interrupts, unless there is an interrupt already.
func (p *place) barge(i engine.Interrupt) {
	select {
	case p.interrupts <- i:
	default:
	}
}

func (p *place) Listening() bool { return true }

func (p *place) Publish(context.Context, event.Event) error {
	p.mu.Lock()
	p.heard++
	p.mu.Unlock()
	return call(p.publish)
}

func (p *place) Interrupts() <-chan engine.Interrupt { return p.interrupts }

func (p *place) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
}

func (p *place) Checkpoint(_ context.Context, c engine.Checkpoint) error {
	p.mu.Lock()
	p.checkpoints = append(p.checkpoints, c)
	p.mu.Unlock()
	return call(p.check)
}

func (p *place) ReportUsage(context.Context, model.Usage) error {
	p.mu.Lock()
	p.reported++
	p.mu.Unlock()
	return call(p.usage)
}

func call(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (p *place) reports() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reported
}

func (p *place) last() *engine.Checkpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.checkpoints) == 0 {
		return nil
	}
	return &p.checkpoints[len(p.checkpoints)-1]
}
