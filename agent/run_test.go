package agent_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/catalog"
	"github.com/pawl-dev/pawl/tool"
)

func TestARunGoesFromAMessageToItsResult(t *testing.T) {
	var w works
	eng := looping(t, script{message.Assistant("let me", call("c1", "pay", `{}`), call("c2", "nay", `{}`)), message.Assistant("paid")}, w.tool("pay"))
	store := journal.Memory()
	req := asking("s", "pay")
	req.TaskID, req.RunID, req.Inputs = "task", "r1", map[string]any{"k": "v"}
	res := run(t, agent.Agent{ID: "payer"}, eng, req, agent.WithJournal(store), agent.WithDir("/src"), agent.WithParentRunID("p"), agent.WithAttributes(map[string]string{"user.id": "ada"}))
	same(t, "messages", []string{
		"assistant: let me <c1 pay> <c2 nay>", `tool:  [c1 pay did c1] [c2 there is no tool "nay"; did you mean pay?]`, "assistant: paid",
	}, lines(res.Messages...))
	got := *res
	got.Messages, got.LastBoard = nil, nil
	want := agent.Result{
		TaskID: "task", ContextID: "s", RunID: "r1", Status: agent.StatusCompleted, Committed: true, State: map[string]any{"run_id": "r1"},
		Usage: model.Usage{Input: 20, Output: 10}, Steps: 2, Attempts: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" || res.Text() != "paid" {
		t.Error(res.Text(), diff)
	}
	if res.LastBoard.Var("k") != "v" {
		t.Error("inputs become vars")
	}
	same(t, "journal", []string{
		"session.created", "run.started", "said", "prepared prepare", "model.started model/1", "model.finished model/1", "tool.judged judge/c1", "tool.judged judge/c2",
		"tool.started tool/c1", "tool.finished tool/c1", "model.started model/2", "model.finished model/2", "stopped stop/2", "run.finished",
	}, kinds(read(t, store, "s")))
	started := last[journal.RunStarted](t, store, "s")
	if started.Owner = ""; cmp.Diff(journal.RunStarted{
		Agent: "payer", User: "ada", Task: "task", ParentRun: "p", Attempt: 1, Inputs: map[string]any{"k": "v"}, Model: "agent_test.script", Engine: "loop", Dir: "/src",
	}, started) != "" {
		t.Errorf("%+v", started)
	}
	same(t, "the end", journal.RunFinished{Status: "completed", Committed: true}, last[journal.RunFinished](t, store, "s"))
}

func TestARunWithoutASessionIsNamedAfterItself(t *testing.T) {
	res := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{Message: message.User("hello")})
	if res.ContextID == "" || res.ContextID != res.RunID || !strings.HasPrefix(res.RunID, "run-") {
		t.Errorf("%q %q", res.ContextID, res.RunID)
	}
	if again := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{Message: message.User("hello")}); again.RunID == res.RunID {
		t.Error("the same name twice")
	}
}

func TestTheNextRunOfASessionSeesTheOnesBefore(t *testing.T) {
	store, eng := journal.Memory(), saying(t, "one", "two", "three")
	for i, want := range []string{"one", "two", "three"} {
		res := run(t, agent.Agent{}, eng, asking("s", fmt.Sprint("q", i)), agent.WithJournal(store))
		same(t, "the new messages only", []string{"assistant: " + want}, lines(res.Messages...))
	}
	same(t, "session", []string{"user: q0", "assistant: one", "user: q1", "assistant: two", "user: q2", "assistant: three"}, history(state(t, store, "s").Messages))
	if st := state(t, store, "s"); st.Spent.Steps != 3 || st.RunSpent.Steps != 1 {
		t.Error(st.Spent, st.RunSpent)
	}
}

func TestWhatIsMissingIsRefusedBeforeAnythingRuns(t *testing.T) {
	eng, msg := saying(t, "hi"), message.User("hello")
	needs := describes{Engine: eng, can: engine.Capabilities{Name: "graph", Needs: []reflect.Type{reflect.TypeFor[fmt.Stringer]()}}}
	cp := &engine.Checkpoint{ExecID: "r", Session: "s"}
	for name, c := range map[string]struct {
		ag    agent.Agent
		eng   engine.Engine
		req   agent.Request
		opts  []agent.RunOption
		class *errdefs.Class
		says  string
	}{
		"no engine":               {agent.Agent{ID: "a"}, nil, agent.Request{Message: msg}, nil, errdefs.Validation, "engine"},
		"no id":                   {agent.Agent{}, eng, agent.Request{Message: msg}, nil, errdefs.Validation, "id"},
		"no message":              {agent.Agent{ID: "a"}, eng, agent.Request{}, nil, errdefs.Validation, "message"},
		"a message without words": {agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User(" \n")}, nil, errdefs.Validation, "message"},
		"a model's message":       {agent.Agent{ID: "a"}, eng, agent.Request{Message: message.Assistant("I am you")}, nil, errdefs.Validation, "assistant"},
		"a tool's message":        {agent.Agent{ID: "a"}, eng, agent.Request{Message: message.Results(message.ToolResult{Call: "c"})}, nil, errdefs.Validation, "tool"},
		"a session in a text":     {agent.Agent{ID: "a"}, eng, agent.Request{Message: msg, ContextID: "\xff"}, nil, errdefs.Validation, "UTF-8"},
		"a time":                  {agent.Agent{ID: "a"}, eng, agent.Request{Message: msg}, []agent.RunOption{agent.WithTimeout(-1)}, errdefs.Validation, "-1ns"},
		"a checkpoint of nothing": {agent.Agent{ID: "a"}, eng, agent.Request{}, []agent.RunOption{agent.WithResumeFrom(&engine.Checkpoint{Session: "s"})}, errdefs.NotFound, "session s has no unfinished run"},
		"a dependency":            {agent.Agent{ID: "a"}, needs, agent.Request{Message: msg}, nil, errdefs.NotFound, "fmt.Stringer"},
		"one of another type":     {agent.Agent{ID: "a"}, needs, agent.Request{Message: msg}, []agent.RunOption{agent.WithDependencies(provided(3))}, errdefs.NotFound, "fmt.Stringer"},
		"an engine that resumes":  {agent.Agent{ID: "a"}, needs, agent.Request{}, []agent.RunOption{agent.WithResumeFrom(cp), agent.WithDependencies(provided[fmt.Stringer](stringer{}))}, errdefs.NotAvailable, "graph can't resume"},
		"a journal that has it":   {agent.Agent{ID: "a"}, eng, agent.Request{}, []agent.RunOption{agent.WithResumeFrom(&engine.Checkpoint{ExecID: "r", Session: "s", Seq: 7})}, errdefs.Conflict, "at entry 7 of session s, which has 0 here"},
		"something to resume":     {agent.Agent{ID: "a"}, eng, agent.Request{}, []agent.RunOption{agent.WithResumeFrom(cp)}, errdefs.NotFound, "session s has no unfinished run"},
	} {
		t.Run(name, func(t *testing.T) {
			store, seen := journal.Memory(), &watcher{}
			res, err := agent.Run(t.Context(), c.ag, c.eng, c.req, append(c.opts, nil, agent.WithJournal(store), agent.WithObserver(seen))...)
			if res != nil || !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v %v", res, err)
			}
			for i, err := range store.Sessions(t.Context(), journal.Query{}) {
				t.Error("something was journaled:", i, err)
			}
			if len(seen.log) > 0 {
				t.Error("observers were called:", seen.log)
			}
		})
	}
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, agent.Request{Message: msg}, agent.WithJournal(nil), agent.WithBoardSeed(nil), agent.WithDependencies(nil), agent.WithBudget(nil)); err != nil {
		t.Error("these are as good as left out:", err)
	}
}

func provided[T any](v T) *engine.Dependencies {
	d := new(engine.Dependencies)
	engine.Provide(d, v)
	return d
}

type stringer struct{}

func (stringer) String() string { return "" }

type describes struct {
	engine.Engine
	can engine.Capabilities
}

func (d describes) Capabilities() engine.Capabilities { return d.can }

func TestTheEngineGetsWhatTheCallerGave(t *testing.T) {
	host := &myHost{}
	deps := provided(42)
	var got engine.Run
	var at engine.Host
	spy := engine.Func(func(_ context.Context, r engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
		got, at = r, h
		return b, nil
	})
	ag := agent.Agent{ID: "me", Instructions: "be brief", Tools: []string{"read"}}
	attrs := map[string]string{"agent.id": "evil", "run.id": "evil", "task.id": "evil", "conversation.id": "evil", "agent.attempt": "99", "user.id": "ada", "team": "x"}
	req := agent.Request{TaskID: "t", RunID: "r", ContextID: "s", Message: message.User("go")}
	run(t, ag, spy, req, agent.WithEngineHost(host), agent.WithDependencies(deps), agent.WithAttributes(attrs), agent.WithParentRunID("p"))
	if at != engine.Host(host) {
		t.Error("another host")
	}
	same(t, "attributes", map[string]string{"agent.id": "me", "run.id": "r", "task.id": "t", "conversation.id": "s", "agent.attempt": "1", "user.id": "ada", "team": "x"}, got.Attributes)
	if attrs["agent.id"] != "evil" {
		t.Error("the caller's map was written to")
	}
	if got.System != "be brief" || got.Deps != deps || got.ParentRunID != "p" || got.Where() != (hook.Where{Agent: "me", Session: "s", Run: "r", User: "ada", Parent: "p"}) || got.ResumeFrom != nil {
		t.Errorf("%+v", got)
	}
	same(t, "gate", []string{"read"}, got.Tools)
}

type myHost struct {
	engine.NoopHost
	interrupts chan engine.Interrupt
}

func (h *myHost) Interrupts() <-chan engine.Interrupt { return h.interrupts }

func TestAnEngineThatPanicsFailsTheRunAndNotTheProcess(t *testing.T) {
	store, seen := journal.Memory(), &watcher{}
	eng := engine.Func(func(context.Context, engine.Run, engine.Host, *engine.Board) (*engine.Board, error) { panic("boom") })
	res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithObserver(seen))
	if res.Status != agent.StatusFailed || !errdefs.Internal.Is(res.Err) || !strings.Contains(res.Err.Error(), "boom") || res.Committed || len(res.Messages) > 0 || res.LastBoard == nil {
		t.Errorf("%+v", res)
	}
	same(t, "observers", []string{"start", "end failed"}, seen.log)
	if end := last[journal.RunFinished](t, store, "s"); end.Status != "failed" || end.Class != "internal" {
		t.Errorf("%+v", end)
	}
	same(t, "the user's word stays", []string{"user: go"}, history(state(t, store, "s").Messages))
}

func TestAnErrorIsAStatusOfItsClass(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status agent.Status
		class  string
	}{
		"a class":                       {errdefs.Refused.Errorf("no"), agent.StatusFailed, "refused"},
		"none":                          {errors.New("no"), agent.StatusFailed, "internal"},
		"aborted":                       {errdefs.Aborted.Errorf("no"), agent.StatusAborted, "aborted"},
		"a deadline of the engine's":    {fmt.Errorf("http: %w", context.DeadlineExceeded), agent.StatusFailed, "internal"},
		"a cancel of the engine's":      {context.Canceled, agent.StatusFailed, "internal"},
		"interrupted without a cause":   {errdefs.Interrupted.Errorf("later"), agent.StatusInterrupted, ""},
		"joined with something heavier": {errors.Join(errdefs.RateLimit.Errorf("wait"), errors.New("x")), agent.StatusFailed, "rate_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
				return b, c.err
			})
			res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
			if res.Status != c.status || !errors.Is(res.Err, c.err) || res.Committed {
				t.Errorf("%+v", res)
			}
			if end := last[journal.RunFinished](t, store, "s"); end.Class != c.class {
				t.Errorf("%+v", end)
			}
		})
	}
}

// loud is a host whose every method fails.
type loud struct{ engine.NoopHost }

func (loud) Listening() bool { return true }

func (loud) Publish(_ context.Context, e event.Event) error {
	if e.Seq%2 == 0 {
		panic("publish")
	}
	return errors.New("publish")
}

func (loud) Checkpoint(context.Context, engine.Checkpoint) error { panic("checkpoint") }

func (loud) ReportUsage(context.Context, model.Usage) error { panic("usage") }

func TestAHostThatFailsNeverFailsARun(t *testing.T) {
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "look", `{}`), call("c2", "look", `{}`)), message.Assistant("done")}, w.tool("look", tool.ReadOnly))
	if res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithEngineHost(loud{})); res.Status != agent.StatusCompleted || res.Text() != "done" {
		t.Error(res.Err)
	}
}

func TestEveryEntryIsAnEventInItsOrder(t *testing.T) {
	host, store := &hears{}, journal.Memory()
	run(t, agent.Agent{}, saying(t, "hi there"), asking("s", "go"), agent.WithEngineHost(host), agent.WithJournal(store), agent.WithParentRunID("p"))
	var got, deltas []string
	for _, e := range host.events {
		if e.ParentRun != "p" || e.Session != "s" || e.Seq == 0 {
			t.Errorf("%+v", e)
		}
		if e.Delta != "" {
			deltas = append(deltas, e.Type()+" "+e.Text)
			continue
		}
		got = append(got, e.Type())
	}
	var want []string
	for _, e := range read(t, store, "s") {
		want = append(want, string(e.Data.Kind()))
	}
	same(t, "events", want, got)
	same(t, "deltas", []string{"text.delta hi ", "text.delta there"}, deltas)
}

type hears struct {
	engine.NoopHost
	events []event.Event
	on     func(event.Event)
}

func (h *hears) Listening() bool { return true }

func (h *hears) Publish(_ context.Context, e event.Event) error {
	h.events = append(h.events, e)
	if h.on != nil {
		h.on(e)
	}
	return nil
}

func TestTextJoinsAReplyThatTheOutputLimitCut(t *testing.T) {
	res := run(t, agent.Agent{}, looping(t, cut{"one ", "two ", "three"}), asking("s", "go"))
	if res.Text() != "one two three" || len(res.Messages) != 5 || res.Steps != 3 {
		t.Errorf("%q %v", res.Text(), lines(res.Messages...))
	}
	var none *agent.Result
	if none.Text() != "" {
		t.Error("nil has no text")
	}
}

// cut is a model whose replies are all cut off but the last.
type cut []string

func (c cut) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	var s script
	for _, text := range c {
		s = append(s, message.Assistant(text))
	}
	resp, err := s.Complete(ctx, req)
	if resp.Message.Text() != c[len(c)-1] {
		resp.Stop = model.StopLength
	}
	return resp, err
}

func (c cut) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := c.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestMessagesAreExactlyWhatTheRunAdded(t *testing.T) {
	change := func(f func(message.History) message.History) hook.Middleware {
		return hook.Middleware{Name: "change", PreGeneration: func(_ context.Context, g *hook.Generation) error { g.Messages = f(g.Messages); return nil }}
	}
	for name, h := range map[string]hook.Middleware{
		"nothing changed": {Name: "none"},
		"something put in front": change(func(h message.History) message.History {
			return message.NewHistory(message.User("ctx")).Append(at(h)...)
		}),
		"something put before the prompt": change(func(h message.History) message.History {
			return h.Slice(0, h.Len()-1).Append(message.User("ctx"), h.Last())
		}),
		"something put behind it":   change(func(h message.History) message.History { return h.Append(message.User("ctx")) }),
		"the prompt written anew":   change(func(h message.History) message.History { return h.Slice(0, h.Len()-1).Append(message.User("better")) }),
		"all replaced by a summary": change(func(message.History) message.History { return message.NewHistory(message.User("summary")) }),
		"the beginning forgotten":   change(func(h message.History) message.History { return h.Slice(h.Len()-1, h.Len()) }),
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			if res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "hello"), agent.WithJournal(store)); len(res.Messages) != 1 {
				t.Fatal(lines(res.Messages...))
			}
			eng := looping(t, constantly{message.Assistant("", call("c1", "x", `{}`)), message.Assistant("bye")}, new(works).tool("x"))
			res := run(t, agent.Agent{Hooks: []hook.Middleware{h}}, eng, asking("s", "again"), agent.WithJournal(store))
			same(t, "messages", []string{"assistant:  <c1 x>", "tool:  [c1 x did c1]", "assistant: bye"}, lines(res.Messages...))
			same(t, "the fold and the board", history(res.LastBoard.Channel(engine.MainChannel)), history(state(t, store, "s").Messages))
		})
	}
}

// constantly calls a tool once, and answers when it has the result.
type constantly [2]message.Message

func (c constantly) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	if req.Messages.Last().Role() == message.RoleTool {
		return &model.Response{Message: c[1]}, nil
	}
	return &model.Response{Message: c[0]}, nil
}

func (c constantly) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, _ := c.Complete(ctx, req)
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestTheCostIsNilWhenItIsNotKnown(t *testing.T) {
	prices := (*catalog.Catalog)(nil).With(catalog.Model{Name: "p/m", Price: &catalog.Price{Input: 1, Output: 2}})
	for name, want := range map[string]*int64{"p/m": new(int64(20)), "p/x": nil} {
		eng, err := loop.New(loop.Config{Model: called{script{message.Assistant("hi")}, name}, Prices: prices})
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, want, run(t, agent.Agent{}, eng, asking("s", "go")).Cost)
	}
	none := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		return b, nil
	})
	same(t, "no call at all costs nothing", new(int64(0)), run(t, agent.Agent{}, none, asking("s", "go")).Cost)
}

type called struct {
	model.Model
	name string
}

func (c called) Capabilities() model.Capabilities { return model.Capabilities{Name: c.name} }

func TestABudgetIsCountedOnceOverResumesInOneProcess(t *testing.T) {
	store, budget := journal.Memory(), &engine.Budget{}
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	stop := tool.Func("stop", "", func(context.Context, struct{}) (string, error) {
		host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		return "", nil
	})
	eng := looping(t, script{message.Assistant("", call("c1", "stop", `{}`)), message.Assistant("", call("c2", "stop", `{}`)), message.Assistant("end")}, stop)
	with := []agent.RunOption{agent.WithJournal(store), agent.WithBudget(budget), agent.WithEngineHost(host)}
	run(t, agent.Agent{}, eng, asking("s", "go"), with...)
	resume(t, agent.Agent{}, eng, "s", with...)
	elsewhere := &engine.Budget{}
	if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), agent.WithBudget(elsewhere)); res.Status != agent.StatusCompleted {
		t.Fatal(res.Status)
	}
	here, _ := budget.Spent()
	there, _ := elsewhere.Spent()
	if here != 30 || there != 45 {
		t.Errorf("%d tokens here, %d elsewhere", here, there)
	}
}

func TestTheAgentsHooksComeBeforeTheRuns(t *testing.T) {
	var order []string
	named := func(name string) hook.Middleware {
		return hook.Middleware{
			Name:          name,
			PreGeneration: func(context.Context, *hook.Generation) error { order = append(order, name+" prepares"); return nil },
			PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
				order = append(order, name+" judges")
				return hook.Decision{}, nil
			},
			PostToolUse:    func(context.Context, *hook.ToolUse) error { order = append(order, name+" sees"); return nil },
			PostGeneration: func(context.Context, *hook.Generation) error { order = append(order, name+" ends"); return nil },
		}
	}
	look := tool.Func("look", "", func(context.Context, struct{}) (string, error) { return "seen", nil })
	run(t, agent.Agent{Hooks: []hook.Middleware{named("first of the agent's"), named("second")}}, looping(t, script{message.Assistant("", call("c1", "look", `{}`)), message.Assistant("end")}, look),
		asking("s", "go"), agent.WithHooks(named("the run's")))
	var want []string
	for _, does := range []string{"prepares", "judges", "sees", "ends"} {
		for _, name := range []string{"first of the agent's", "second", "the run's"} {
			want = append(want, name+" "+does)
		}
	}
	if d := cmp.Diff(want, order); d != "" {
		t.Error(d)
	}
}
