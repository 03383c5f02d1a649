package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
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

	actor actor                     // built once
	subs  map[string]agent.Subagent // by the ids of their agents

	mu      sync.Mutex
	seen    map[string]int // points, by name
	moved   chan struct{}  // closed, and made anew, at each point
	appends map[string]int // by session
	failing bool           // the fault has begun
}

// Dir is a directory of the case's own, which outlives the process: for scenarios with files.
func (p *Process) Dir() string { return p.dir }

// Point is a point at which the process may be killed, or its store may begin to fail. If it is the one to be killed at, Point does not return. A name that comes again in the same
// process is another point. Points that are reached side by side need different names.
func (p *Process) Point(name string) { p.reach(line{Point: name, Own: true}) }

func (p *Process) point(name string) { p.reach(line{Point: name}) }

func (p *Process) reach(l line) {
	name := l.Point
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[name]++
	close(p.moved)
	p.moved = make(chan struct{})
	if n := p.seen[name]; n > 1 {
		name = fmt.Sprintf("%s (%d)", name, n)
	}
	l.Point = name
	p.record.add(l)
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

// Await waits until this process has come to a point, for what runs beside the path but must not overtake it. The error is that of ctx, or an
// InterruptedError once the store fails: the path may never come there.
func (p *Process) Await(ctx context.Context, point string) error {
	for {
		p.mu.Lock()
		seen, moved, failing := p.seen[point], p.moved, p.failing
		p.mu.Unlock()
		switch {
		case seen > 0:
			return nil
		case failing:
			return engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseHostShutdown}}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
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
	same := c.Key
	if at, ok := engine.InsideOf(ctx); ok && at.Run.Session != mainSession { // the runs of tasks are named by chance
		same = at.Run.Session + strings.TrimPrefix(c.Key, at.Run.ID)
	}
	p.point("before the side effect of " + c.ID)
	p.record.add(line{Use: &use{c.Name, c.ID, c.Key, same, repeatable}})
	p.point("after the side effect of " + c.ID)
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

// Task is [agent.Task] with subagents that are watched, and whose sessions are replayed when the case is over.
func (p *Process) Task(subs []agent.Subagent, opts ...agent.TaskOption) (tool.Tool, error) {
	subs = slices.Clone(subs)
	for i := range subs {
		subs[i].Engine = p.Engine(subs[i].Engine)
		p.subs[subs[i].Agent.ID] = subs[i]
	}
	return agent.Task(subs, opts...)
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
	m.p.point("before a reply" + where(ctx))
	resp, err := m.Model.Complete(ctx, req)
	m.p.point("after a reply" + where(ctx))
	return resp, err
}

func (m watchedModel) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	m.p.point("before a reply" + where(ctx))
	first := true
	err := m.Model.CompleteStream(ctx, req, func(r model.StreamResult) error {
		err := cb(r)
		if first {
			m.p.point("in the middle of a reply" + where(ctx))
		}
		first = false
		return err
	})
	m.p.point("after a reply" + where(ctx))
	return err
}

// sessionKey has the session of the run that an effect is performed for.
type sessionKey struct{}

// where names the session, for points: several may be under way side by side. "" is the main one.
func where(ctx context.Context) string {
	session, _ := ctx.Value(sessionKey{}).(string)
	return in(session)
}

func in(session string) string {
	if session == mainSession || session == "" {
		return ""
	}
	return " in " + session
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
	begins := line{Effect: id}
	if u, ok := engine.Bare(e).(engine.UseTool); ok && u.Annotations.Repeatable() {
		begins.Repeat = u.Call.ID
	}
	w.p.record.add(begins)
	w.p.point("before " + e.Key().String() + in(run.Session))
	d, err := w.Performer.Perform(context.WithValue(ctx, sessionKey{}, run.Session), run, host, e)
	if d != nil {
		w.p.record.add(line{Gave: id})
	}
	w.p.point("after " + e.Key().String() + in(run.Session))
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
	s.p.appends[session]++
	name := fmt.Sprintf("append %d%s", s.p.appends[session], in(session))
	s.p.mu.Unlock()
	s.p.point("before " + name)
	begin := appending{Session: session, Time: entries[0].Time.UnixNano(), Entries: len(entries), Last: after + int64(len(entries))}
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
	s.p.point("after " + name)
	return nil
}

// listener is a host that wants to see everything, so that models stream, and does nothing with it.
type listener struct{ engine.NoopHost }

func (listener) Listening() bool { return true }

// actor is who plays: an agent with its engine, or a team.
type actor interface {
	Run(ctx context.Context, req agent.Request, opts ...agent.RunOption) (*agent.Result, error)
	Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error)
	Replay(ctx context.Context, session string, opts ...agent.RunOption) ([]agent.Replayed, error)
}

// solo is an agent by itself.
type solo struct {
	agent  agent.Agent
	engine engine.Engine
}

func (s solo) Run(ctx context.Context, req agent.Request, opts ...agent.RunOption) (*agent.Result, error) {
	return agent.Run(ctx, s.agent, s.engine, req, opts...)
}

func (s solo) Resume(ctx context.Context, session string, opts ...agent.RunOption) (*agent.Result, error) {
	return agent.Resume(ctx, s.agent, s.engine, session, opts...)
}

func (s solo) Replay(ctx context.Context, session string, opts ...agent.RunOption) ([]agent.Replayed, error) {
	return agent.Replay(ctx, s.agent, s.engine, session, opts...)
}

// build makes who plays.
func (p *Process) build(s *Scenario) (actor, error) {
	if p.actor != nil {
		return p.actor, nil
	}
	if s.Team != nil {
		team, err := s.Team(p)
		if err != nil {
			return nil, err
		}
		p.actor = team
		return p.actor, nil
	}
	ag, eng, err := s.Build(p)
	if err != nil {
		return nil, err
	}
	if ag.ID == "" {
		ag.ID = "crashtest"
	}
	p.actor = solo{ag, p.Engine(eng)}
	return p.actor, nil
}

// run goes on with what is unfinished, or plays the next prompt; begun are played already. A nil Result: nothing is left.
func (p *Process) run(ctx context.Context, s *Scenario, store journal.Store, begun int) (*agent.Result, error) {
	who, err := p.build(s)
	if err != nil {
		return nil, err
	}
	opts := []agent.RunOption{agent.WithJournal(watchedStore{store, p}), agent.WithEngineHost(listener{}), agent.WithUnknown(s.Unknown)}
	if s.Options != nil {
		opts = append(opts, s.Options(p)...)
	}
	if begun > 0 {
		res, err := who.Resume(ctx, mainSession, opts...)
		if !errdefs.NotFound.Is(err) {
			return res, err
		}
	}
	if begun == len(s.prompts()) {
		return nil, nil
	}
	return who.Run(ctx, agent.Request{ContextID: mainSession, RunID: runID(begun), Message: message.User(s.prompts()[begun])}, opts...)
}

// replay goes through the record of every session, with the code that made it. What differs is for the verdict.
func (p *Process) replay(ctx context.Context, s *Scenario, store journal.Store) error {
	who, err := p.build(s)
	if err != nil {
		return err
	}
	for info, err := range store.Sessions(ctx, journal.Query{}) {
		if err != nil {
			return err
		}
		by := who
		if info.Agent == "" { // no run was begun in it
			continue
		}
		if info.Session != mainSession {
			sub, ok := p.subs[info.Agent]
			if !ok {
				return errdefs.NotFound.Errorf("crashtest: nobody knows %q, who made the session %s: make the tool by Process.Task", info.Agent, info.Session)
			}
			by = solo{sub.Agent, sub.Engine}
		}
		out := replay{Session: info.Session}
		if _, err := by.Replay(ctx, info.Session, agent.WithJournal(store)); errdefs.Conflict.Is(err) {
			out.Difference = err.Error()
		} else if err != nil {
			return err
		}
		p.record.add(line{Replay: &out})
	}
	return nil
}
