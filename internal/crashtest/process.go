package crashtest

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Process is the child that a scenario is built in. Safe for concurrent use.
type Process struct {
	dir    string
	die    string // the point to die at; "" for none
	fault  *Fault // how; nil: by SIGKILL
	record *record

	mu      sync.Mutex
	seen    map[string]int // points, by name
	appends int
	failing bool // the fault has begun
}

// Dir is a directory of the case's own, which outlives the process: for scenarios with files.
func (p *Process) Dir() string { return p.dir }

// Point is a point at which the process may be killed, or its store may begin to fail. If it is the one to be killed at, Point does not return. A name that comes again in the same
// process is another point. Points that are reached side by side need different names.
func (p *Process) Point(name string) { p.point(name, 0) }

func (p *Process) point(name string, seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[name]++
	if n := p.seen[name]; n > 1 {
		name = fmt.Sprintf("%s (%d)", name, n)
	}
	p.record.add(line{Point: name, Seq: seq})
	switch {
	case name != p.die:
	case p.fault == nil:
		p.record.die()
	default:
		p.failing = true
		p.record.add(line{Fault: name})
		p.fault.begin(p.dir)
	}
}

func (p *Process) fails() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing
}

// Effect is a tool's side effect: it notes the call in ctx and its idempotency key, where no fault reaches. Before and after it stand points.
// repeatable says that the tool is read-only or idempotent. The error is always nil.
func (p *Process) Effect(ctx context.Context, repeatable bool) error {
	c := tool.FromContext(ctx)
	p.Point("before the side effect of " + c.ID)
	p.record.add(line{Use: &use{c.Name, c.ID, c.Key, repeatable}})
	p.Point("after the side effect of " + c.ID)
	return nil
}

// Input is what a tool of [Process.Tool] takes.
type Input struct {
	Note string `json:"note,omitempty"` // is part of the result
}

// Tool makes a tool with a side effect; its result is "NAME did CALL", and the note.
func (p *Process) Tool(name string, opts ...tool.Option) tool.Tool {
	var t tool.Tool
	t = tool.Func(name, "", func(ctx context.Context, in Input) (string, error) {
		if err := p.Effect(ctx, t.Definition().Repeatable()); err != nil {
			return "", err
		}
		return name + " did " + tool.FromContext(ctx).ID + in.Note, nil
	}, opts...)
	return t
}

// Model puts points around each call of m and into the middle of it: behind the first piece that was streamed.
func (p *Process) Model(m model.Model) model.Model { return watchedModel{m, p} }

type watchedModel struct {
	model.Model
	p *Process
}

// Capabilities are those of the model; one that says nothing can do all.
func (m watchedModel) Capabilities() model.Capabilities {
	c, ok := model.CapabilitiesOf(m.Model)
	if !ok {
		c = model.Capabilities{Name: "crashtest", Tools: true, Images: true, Documents: true, Audio: true, Schema: true, TopK: true, Seed: true, Stop: true, MaxTokens: true}
	}
	return c
}

func (m watchedModel) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	m.p.Point("before a reply")
	resp, err := m.Model.Complete(ctx, req)
	m.p.Point("after a reply")
	return resp, err
}

func (m watchedModel) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	m.p.Point("before a reply")
	first := true
	err := m.Model.CompleteStream(ctx, req, func(r model.StreamResult) error {
		err := cb(r)
		if first {
			m.p.Point("in the middle of a reply")
		}
		first = false
		return err
	})
	m.p.Point("after a reply")
	return err
}

// Engine watches the effects of an engine that is an [engine.Performer]; any other one comes back as it is, and so does one that is
// watched already.
func (p *Process) Engine(e engine.Engine) engine.Engine {
	perf, ok := e.(engine.Performer)
	if _, watched := e.(watchedEngine); watched || !ok {
		return e
	}
	return watchedEngine{e, watchedPerformer{perf, p}}
}

type watchedEngine struct {
	engine.Engine
	engine.Performer
}

// Capabilities are those of the engine.
func (e watchedEngine) Capabilities() engine.Capabilities { return engine.CapabilitiesOf(e.Engine) }

func (e watchedEngine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if run.Steps == nil {
		run.Steps = engine.Local(run, host, e.Performer)
	}
	return e.Engine.Execute(ctx, run, host, board)
}

type watchedPerformer struct {
	engine.Performer
	p *Process
}

func (w watchedPerformer) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	id := effectID(run.ID, run.Attempt, e.Key())
	w.p.record.add(line{Effect: id})
	w.p.Point("before " + e.Key().String())
	d, err := w.Performer.Perform(ctx, run, host, e)
	if d != nil {
		w.p.record.add(line{Gave: id})
	}
	w.p.Point("after " + e.Key().String())
	return d, err
}

// effectID names an effect in a case.
func effectID(run string, attempt int, key journal.Key) string {
	return fmt.Sprintf("%s.%d/%v", run, attempt, key)
}

// watchedStore has a point before and after each append.
type watchedStore struct {
	journal.Store
	p *Process
}

func (s watchedStore) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	s.p.mu.Lock()
	s.p.appends++
	n := s.p.appends
	s.p.mu.Unlock()
	s.p.Point(fmt.Sprintf("before append %d", n))
	begin := appending{Session: session, Time: entries[0].Time.UnixNano(), Entries: len(entries)}
	for _, e := range entries {
		if d, ok := e.Data.(journal.ToolStarted); ok {
			begin.Starts = append(begin.Starts, d.Call.ID)
		}
	}
	s.p.record.add(line{Append: &begin})
	err := s.Store.Append(ctx, session, after, entries...)
	end := begin
	if end.Ended = reported; err != nil {
		end.Ended = classOf(err)
	}
	if s.p.record.add(line{Append: &end}); err != nil {
		return err
	}
	seq := int64(0)
	if session == mainSession {
		seq = after + int64(len(entries))
	}
	s.p.point(fmt.Sprintf("after append %d", n), seq)
	return nil
}

// listener is a host that wants to see everything, so that models stream, and does nothing with it.
type listener struct{ engine.NoopHost }

func (listener) Listening() bool { return true }

// run plays prompt number n, or goes on with it.
func (p *Process) run(ctx context.Context, s *Scenario, store journal.Store, n int, resume bool) (*agent.Result, error) {
	ag, eng, err := s.Build(p)
	if err != nil {
		return nil, err
	}
	if ag.ID == "" {
		ag.ID = "crashtest"
	}
	eng = p.Engine(eng)
	opts := []agent.RunOption{agent.WithJournal(watchedStore{store, p}), agent.WithEngineHost(listener{})}
	if s.Options != nil {
		opts = append(opts, s.Options(p)...)
	}
	if resume {
		return agent.Resume(ctx, ag, eng, mainSession, opts...)
	}
	return agent.Run(ctx, ag, eng, agent.Request{ContextID: mainSession, RunID: runID(n), Message: message.User(s.prompts()[n])}, opts...)
}
