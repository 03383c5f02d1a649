package temporal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// gives is a call that gives a subagent a task.
func gives(id, to, prompt string, background bool) message.ToolCall {
	return call(id, "task", fmt.Sprintf(`{"agent":%q,"prompt":%q,"background":%t}`, to, prompt, background))
}

// family is a parent that says what it says, with subagents.
func family(t testing.TB, m says, subs agent.Subagents, tools ...tool.Tool) temporal.Member {
	t.Helper()
	task, err := agent.Task(subs)
	if err != nil {
		t.Fatal(err)
	}
	return temporal.Member{Agent: agent.Agent{ID: "parent"}, Engine: looping(t, m, append(tools, task)...), Subagents: subs}
}

func kid(t testing.TB, id string, m says, tools ...tool.Tool) agent.Subagent {
	return agent.Subagent{Agent: agent.Agent{ID: id}, Engine: looping(t, m, tools...), Description: "does things"}
}

// workflowsOf are the workflows that a history began below itself.
func workflowsOf(t testing.TB, c client.Client, id string) (below []string) {
	for _, e := range events(t, c, id) {
		if e.GetEventType() == enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED {
			below = append(below, e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId())
		}
	}
	slices.Sort(below)
	return below
}

func TestASubagentsRunIsAWorkflowBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var paid atomic.Int64
	pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid.Add(1); return "paid", nil })
	ann := kid(t, "ann", says{calls(call("p1", "pay", "{}")), message.Assistant("ann did")}, pay)
	bob := kid(t, "bob", says{calls(call("p1", "pay", "{}")), message.Assistant("bob did")}, pay)
	m := family(t, says{calls(gives("c1", "ann", "do", false), gives("c2", "bob", "do", false)), message.Assistant("end")}, agent.Subagents{ann, bob})
	works(t, c, store, temporal.Queue, m)
	if d := wait(t, begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")})); d.Text != "end" || paid.Load() != 2 {
		t.Fatalf("%+v: %v; paid %d times", d, d.Err(), paid.Load())
	}
	if got := workflowsOf(t, c, "pawl/s/r/1"); len(got) != 2 || !strings.HasPrefix(got[0], "pawl/s/c1/") || !strings.HasPrefix(got[1], "pawl/s/c2/") {
		t.Errorf("workflows below: %v", got)
	}
	for session, said := range map[string]string{"s/c1": "ann did", "s/c2": "bob did"} {
		log, err := journal.Open(t.Context(), store, session)
		if err != nil {
			t.Fatal(err)
		}
		if st := log.State(); st.Status != "completed" || engine.Answer(st.Messages.Messages()) != said || st.ParentRun != "r" {
			t.Errorf("%s: %s %q below %s", session, st.Status, engine.Answer(st.Messages.Messages()), st.ParentRun)
		}
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, m := range log.State().Messages.All() {
		for r := range message.Of[message.ToolResult](m) {
			results = append(results, r.Content)
		}
	}
	if !slices.Equal(results, []string{"ann did", "bob did"}) {
		t.Errorf("results: %q", results)
	}
}

// What binds the parent binds what it has done: hooks of its run, of its agent, and of its engine.
func TestTheParentsHooksBindTheWorkflowBelow(t *testing.T) {
	t.Parallel()
	deny := func(by string, denied *atomic.Int64) hook.Middleware {
		return hook.Middleware{Name: by, PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Call.Name != "pay" {
				return hook.Decision{}, nil
			}
			denied.Add(1)
			return hook.Decision{Verdict: hook.Deny, Reason: by + " says no"}, nil
		}}
	}
	for _, by := range []string{"run", "agent", "engine"} {
		t.Run(by, func(t *testing.T) {
			c, store := devserver.Shared(t).Client(t), journal.Memory()
			var paid, denied atomic.Int64
			pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid.Add(1); return "paid", nil })
			deep := kid(t, "deep", says{calls(call("p1", "pay", "{}")), message.Assistant("deep did")}, pay)
			task, err := agent.Task(agent.Subagents{deep})
			if err != nil {
				t.Fatal(err)
			}
			mid := kid(t, "mid", says{calls(gives("d1", "deep", "do", false)), message.Assistant("mid did")}, task)
			m := family(t, says{calls(gives("c1", "mid", "do", false)), message.Assistant("end")}, agent.Subagents{mid})
			h := deny(by, &denied)
			switch by {
			case "run":
				m.Options = append(m.Options, agent.WithHooks(h))
			case "agent":
				m.Agent.Hooks = append(m.Agent.Hooks, h)
			case "engine":
				parent, err := agent.Task(agent.Subagents{mid})
				if err != nil {
					t.Fatal(err)
				}
				l, err := loop.New(loop.Config{Model: says{calls(gives("c1", "mid", "do", false)), message.Assistant("end")}, Tools: []tool.Tool{parent}, Hooks: []hook.Middleware{h}})
				if err != nil {
					t.Fatal(err)
				}
				m.Engine = l
			}
			works(t, c, store, temporal.Queue, m, temporal.Member{Agent: mid.Agent, Engine: mid.Engine, Subagents: agent.Subagents{deep}})
			d := wait(t, begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")}))
			if d.Text != "end" || paid.Load() != 0 || denied.Load() == 0 {
				t.Errorf("%+v: %v; paid %d times, denied %d times", d, d.Err(), paid.Load(), denied.Load())
			}
			log, err := journal.Open(t.Context(), store, "s/c1/d1")
			if err != nil {
				t.Fatal(err)
			}
			if st := log.State(); engine.Answer(st.Messages.Messages()) != "deep did" {
				t.Errorf("two below: %s, %q", st.Status, engine.Answer(st.Messages.Messages()))
			}
		})
	}
}

func TestAnApprovalBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var paid atomic.Int64
	pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid.Add(1); return "paid", nil }, tool.RequiresApproval)
	m := family(t, says{calls(gives("c1", "ann", "do", false)), message.Assistant("end")}, agent.Subagents{kid(t, "ann", says{calls(call("p1", "pay", "{}")), message.Assistant("ann did")}, pay)})
	works(t, c, store, temporal.Queue, m)
	t.Run("by an update", func(t *testing.T) {
		h := begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")})
		id := pending(t, store, "s")
		if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); err != nil {
			t.Fatal(err)
		}
		if d := wait(t, h); d.Text != "end" || paid.Load() != 1 {
			t.Errorf("%+v: %v; paid %d times", d, d.Err(), paid.Load())
		}
	})
	t.Run("by the caller's host", func(t *testing.T) {
		host := asked{came: make(chan string, 9), answer: make(chan bool, 1)}
		host.answer <- true
		res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s2", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
		if err != nil || res.Text() != "end" || paid.Load() != 2 {
			t.Errorf("%v, %+v", err, res)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s3", Message: message.User("go")}, agent.WithJournal(store))
		if err != nil || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson {
			t.Fatalf("%v, %+v", err, res)
		}
		if err := agent.Answer(t.Context(), store, "s3", journal.Answered{ID: pending(t, store, "s3"), Approved: true}); err != nil {
			t.Fatal(err)
		}
		res, err = agent.Resume(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), "s3", agent.WithJournal(store))
		if err != nil || res.Text() != "end" || paid.Load() != 3 {
			t.Errorf("%v, %+v", err, res)
		}
	})
}

// listener is a host that keeps what is published.
type listener struct {
	engine.NoopHost
	events []event.Event
}

func (*listener) Listening() bool { return true }

func (l *listener) Publish(_ context.Context, e event.Event) error {
	l.events = append(l.events, e)
	return nil
}

func TestACallerHearsOfTheRunsBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	m := family(t, says{calls(gives("c1", "ann", "do", false)), message.Assistant("end")}, agent.Subagents{kid(t, "ann", says{message.Assistant("ann did")})})
	works(t, c, store, temporal.Queue, m)
	host := new(listener)
	res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
	if err != nil || res.Text() != "end" {
		t.Fatal(err, res)
	}
	began, ended := 0, 0
	for _, e := range host.events {
		if e.Session != "s/c1" {
			continue
		}
		if e.ParentRun != "r" {
			t.Errorf("%s of the run below has the parent %q", e.Data.Kind(), e.ParentRun)
		}
		switch e.Data.(type) {
		case journal.RunStarted:
			began++
		case journal.RunFinished:
			ended++
		}
	}
	if began != 1 || ended != 1 {
		t.Errorf("it heard of %d beginnings and %d ends of the run below", began, ended)
	}
}

func TestACancelReachesTheRunsBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, left := make(chan bool, 1), make(chan bool, 1)
	slow := tool.Func("slow", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) {
		came <- true
		<-ctx.Done()
		left <- true
		return "", ctx.Err()
	})
	m := family(t, says{calls(gives("c1", "ann", "do", false)), message.Assistant("end")}, agent.Subagents{kid(t, "ann", says{calls(call("p1", "slow", "{}")), message.Assistant("ann did")}, slow)})
	works(t, c, store, temporal.Queue, m)
	h := begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")})
	<-came
	if err := h.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-left
	if d := wait(t, h); d.Status != agent.StatusCanceled {
		t.Errorf("%+v: %v", d, d.Err())
	}
	log, err := journal.Open(t.Context(), store, "s/c1")
	if err != nil {
		t.Fatal(err)
	}
	if st := log.State(); st.Run != "" || st.Status != "canceled" {
		t.Errorf("the run below is %q, unfinished: %q", st.Status, st.Run)
	}
}

func TestAnInterruptReachesTheRunsBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, on := make(chan bool, 1), make(chan bool)
	var ran atomic.Int64
	slow := tool.Func("slow", "Takes long.", func(context.Context, struct{}) (string, error) {
		ran.Add(1)
		came <- true
		<-on
		return "did", nil
	})
	m := family(t, says{calls(gives("c1", "ann", "do", false)), message.Assistant("end")}, agent.Subagents{kid(t, "ann", says{calls(call("p1", "slow", "{}")), message.Assistant("ann did")}, slow)})
	works(t, c, store, temporal.Queue, m)
	order := temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")}
	h := begin(t, c, order)
	<-came
	if err := h.Interrupt(t.Context(), engine.Interrupt{Cause: engine.CauseUserInput}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // it gets to the run below
	close(on)
	if d := wait(t, h); d.Status != agent.StatusInterrupted || d.Cause != engine.CauseUserInput {
		t.Fatalf("%+v: %v", d, d.Err())
	}
	order.Message = message.Message{}
	if d := wait(t, begin(t, c, order)); d.Text != "end" || ran.Load() != 1 {
		t.Errorf("%+v: %v; the tool ran %d times", d, d.Err(), ran.Load())
	}
}

func TestTasksAndCallsInTheBackground(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]message.ToolCall{"a task": gives("c1", "ann", "do", true), "a call": call("c1", "dig", "{}")} {
		t.Run(name, func(t *testing.T) {
			c, store := devserver.Shared(t).Client(t), journal.Memory()
			on := make(chan bool)
			var dug, looked atomic.Int64
			dig := tool.Func("dig", "Digs.", func(ctx context.Context, _ struct{}) (tool.Result, error) {
				if name == "a call" && !tool.FromContext(ctx).Background {
					return tool.Result{Content: "digging", Background: true}, nil
				}
				dug.Add(1)
				<-on
				return tool.Result{Content: "dug it up"}, nil
			})
			look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) {
				if looked.Add(1) == 2 {
					close(on) // the path went on meanwhile
				}
				return "seen", nil
			})
			m := family(t, says{calls(first), calls(call("c2", "look", "{}")), calls(call("c3", "look", "{}")), message.Assistant("waiting"), message.Assistant("end")},
				agent.Subagents{kid(t, "ann", says{calls(call("p1", "dig", "{}")), message.Assistant("dug it up")}, dig)}, dig, look)
			works(t, c, store, temporal.Queue, m)
			d := wait(t, begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")}))
			log, err := journal.Open(t.Context(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			heard := false
			for _, m := range log.State().Messages.All() {
				heard = heard || m.Role() == message.RoleUser && strings.Contains(m.Text(), "dug it up")
			}
			if d.Text != "end" && d.Text != "waiting" || dug.Load() != 1 || !heard {
				t.Errorf("%+v: %v; dug %d times, heard: %t", d, d.Err(), dug.Load(), heard)
			}
		})
	}
}

func TestATeamsHandoffsAreWorkflowsBelow(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	over := []agent.Handoff{{ToAgentID: "expert"}}
	desk := looping(t, says{calls(call("h1", agent.DefaultHandoffToolName("expert"), `{"reason":"hard"}`)), message.Assistant("over to the expert")}, agent.HandoffTools(t.Context(), nil, over)...)
	team := temporal.Team{ID: "help", Config: agent.TeamConfig{Members: []agent.Member{
		{Agent: agent.Agent{ID: "desk"}, Engine: desk, Handoffs: over},
		{Agent: agent.Agent{ID: "expert"}, Engine: looping(t, answers("solved"))},
	}}}
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Teams: []temporal.Team{team}, Timing: quick})
	if err != nil {
		t.Fatal(err)
	}
	runs(t, w)
	if d := wait(t, begin(t, c, temporal.Order{Agent: "help", Session: "s", Run: "r", Message: message.User("go")})); d.Text != "solved" {
		t.Fatalf("%+v: %v", d, d.Err())
	}
	if got := workflowsOf(t, c, "pawl-run/s/r"); !slices.Equal(got, []string{"pawl/s/r-hop-1/1", "pawl/s/r/1"}) {
		t.Errorf("workflows below: %v", got)
	}
	if _, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Teams: []temporal.Team{team, team}}); !errdefs.Conflict.Is(err) {
		t.Errorf("two teams of one ID: %v", err)
	}
}

// answers is a model that always says the same.
type answers string

func (a answers) Complete(context.Context, model.Request) (*model.Response, error) {
	return &model.Response{Message: message.Assistant(string(a)), Usage: model.Usage{Input: 10, Output: 5}}, nil
}

func (a answers) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := a.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}
