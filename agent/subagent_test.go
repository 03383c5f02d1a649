package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/tool"
)

// task makes the task tool of one subagent, "kid".
func task(t testing.TB, eng engine.Engine, opts ...agent.TaskOption) tool.Tool {
	t.Helper()
	tl, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid", Instructions: "You are a kid."}, Engine: eng, Description: "does things"}}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func gives(id, prompt string) message.ToolCall {
	return call(id, "task", fmt.Sprintf(`{"agent":"kid","prompt":%q}`, prompt))
}

func background(id, prompt string) message.ToolCall {
	return call(id, "task", fmt.Sprintf(`{"agent":"kid","prompt":%q,"background":true}`, prompt))
}

// recorder is a host that keeps what is published, and is told from which goroutine by the race detector.
type recorder struct {
	engine.NoopHost
	events []event.Event
	intr   chan engine.Interrupt
	on     func(event.Event)
}

func (r *recorder) Listening() bool { return true }

func (r *recorder) Interrupts() <-chan engine.Interrupt { return r.intr }

func (r *recorder) Publish(_ context.Context, e event.Event) error {
	r.events = append(r.events, e)
	if r.on != nil {
		r.on(e)
	}
	return nil
}

func TestATaskIsARunOfItsOwn(t *testing.T) {
	store := disk{journal.Memory()}
	var w works
	var system, asked string
	kid := looping(t, spying{script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("paid it")}, func(r model.Request) {
		system, asked = r.System, strings.Join(history(r.Messages)[:1], "")
	}}, w.tool("pay"))
	host := &recorder{}
	eng := looping(t, script{message.Assistant("", gives("c1", "pay the bill")), message.Assistant("end")}, task(t, kid))
	res := run(t, agent.Agent{Instructions: "You are a parent."}, eng, agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")},
		agent.WithJournal(store), agent.WithEngineHost(host), agent.WithAttributes(map[string]string{"user.id": "ada"}))
	same(t, "the parent", []string{"user: go", "assistant:  <c1 task>", "tool:  [c1 paid it]", "assistant: end"}, history(res.LastBoard.Channel(engine.MainChannel)))
	same(t, "the child", []string{"user: pay the bill", "assistant:  <p1 pay>", "tool:  [p1 pay did p1]", "assistant: paid it"}, history(state(t, store, "s/c1").Messages))
	began := last[journal.RunStarted](t, store, "s/c1")
	if system != "You are a kid." || asked != "user: pay the bill" || began.ParentRun != "r" || began.Agent != "kid" || began.User != "ada" {
		t.Errorf("%q %q %+v", system, asked, began)
	}
	var types []string
	for _, e := range host.events {
		if e.ParentRun == "r" && e.Session == "s/c1" {
			types = append(types, e.Type())
		} else if e.Session != "s" || e.ParentRun != "" {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Contains(types, "text.delta") || types[len(types)-1] != "run.finished" || !slices.Contains(types, "tool.finished") {
		t.Errorf("of the child is seen: %v", types)
	}
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
}

type spying struct {
	script
	see func(model.Request)
}

func (s spying) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	s.see(req)
	return s.script.Complete(ctx, req)
}

func (s spying) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	s.see(req)
	return s.script.CompleteStream(ctx, req, cb)
}

func TestWhatATaskCannotBeIsToldToTheModel(t *testing.T) {
	kid := looping(t, script{message.Assistant("", call("x", "nothing", `{}`)), message.Assistant("x")})
	broken := engine.Func(func(context.Context, engine.Run, engine.Host, *engine.Board) (*engine.Board, error) {
		return nil, errdefs.Refused.Errorf("I refuse")
	})
	resumes := describes{Engine: broken, can: engine.Capabilities{Name: "broken", Resume: true}}
	for name, c := range map[string]struct {
		eng  engine.Engine
		call message.ToolCall
		want string
	}{
		"no such agent":     {kid, call("c1", "task", `{"agent":"dog","prompt":"sit"}`), "value must be 'kid'"},
		"an empty prompt":   {kid, call("c1", "task", `{"agent":"kid","prompt":" "}`), "the prompt is empty"},
		"a task that fails": {resumes, gives("c1", "sit"), "the task of kid ended as failed: I refuse"},
		"another's name":    {kid, call("c1", "task", `{"subagent_type":"kid","prompt":"sit"}`), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			store := disk{journal.Memory()}
			run(t, agent.Agent{}, looping(t, script{message.Assistant("", c.call), message.Assistant("end")}, task(t, c.eng)), asking("s", "go"), agent.WithJournal(store))
			if got := history(state(t, store, "s").Messages)[2]; !strings.Contains(got, c.want) {
				t.Error(got)
			}
		})
	}
	t.Run("a session that is there", func(t *testing.T) {
		store := disk{journal.Memory()}
		run(t, agent.Agent{}, saying(t, "secret"), asking("s/c1", "go"), agent.WithJournal(store))
		run(t, agent.Agent{}, looping(t, script{message.Assistant("", gives("c1", "sit")), message.Assistant("end")}, task(t, kid)), asking("s", "go"), agent.WithJournal(store))
		if got := history(state(t, store, "s").Messages)[2]; !strings.Contains(got, "not this task's") || strings.Contains(got, "secret") {
			t.Error(got)
		}
	})
}

func TestTasksAreValidated(t *testing.T) {
	kid := agent.Subagent{Agent: agent.Agent{ID: "kid"}, Engine: saying(t)}
	for name, c := range map[string]struct {
		subs  []agent.Subagent
		class *errdefs.Class
	}{
		"none":                  {nil, errdefs.Validation},
		"no id":                 {[]agent.Subagent{{Engine: saying(t)}}, errdefs.Validation},
		"no engine":             {[]agent.Subagent{{Agent: agent.Agent{ID: "kid"}}}, errdefs.Validation},
		"two of a name":         {[]agent.Subagent{kid, kid}, errdefs.Conflict},
		"one that can't resume": {[]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: engine.Func(nil)}}, errdefs.NotAvailable},
	} {
		if _, err := agent.Task(c.subs); !c.class.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := task(t, saying(t)).Execute(t.Context(), []byte(`{"agent":"kid","prompt":"sit"}`)); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}

// One gate and one budget bind the whole tree.
func TestATaskIsBoundByTheGatesAndTheBudgetAbove(t *testing.T) {
	deny := hook.Middleware{
		Name: "deny",
		PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
			if u.Call.Name == "pay" {
				return hook.Denied("not with my money"), nil
			}
			return hook.Decision{}, nil
		},
		PreGeneration: func(_ context.Context, g *hook.Generation) error {
			if g.Agent == "kid" {
				t.Error("a parent's generation hook ran in its child")
			}
			return nil
		},
	}
	var w works
	grandchild := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("no luck")}, w.tool("pay"))
	child := func() engine.Engine {
		return looping(t, script{message.Assistant("", gives("k1", "pay")), message.Assistant("", call("p2", "pay", `{}`)), message.Assistant("none")}, task(t, grandchild), w.tool("pay"))
	}
	for _, of := range []string{"the run", "the engine"} {
		store := disk{journal.Memory()}
		cfg := loop.Config{Model: script{message.Assistant("", gives("c1", "pay")), message.Assistant("end")}, Tools: []tool.Tool{task(t, child())}}
		var opts []agent.RunOption
		if of == "the engine" {
			cfg.Hooks = []hook.Middleware{deny}
		} else {
			opts = append(opts, agent.WithHooks(deny))
		}
		eng, err := loop.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		run(t, agent.Agent{}, eng, asking("s", "go"), append(opts, agent.WithJournal(store))...)
		if total, _ := w.total(); total != 0 || last[journal.ToolJudged](t, store, "s/c1/k1").Reason != "not with my money" || last[journal.ToolJudged](t, store, "s/c1").Reason != "not with my money" {
			t.Errorf("a hook of %s: %d payments", of, total)
		}
	}
	store := disk{journal.Memory()}
	budget := &engine.Budget{Tokens: 40} // 15 a call: the parent's first, and two of the child's
	eng := looping(t, script{message.Assistant("", gives("c1", "pay")), message.Assistant("end")}, task(t, child()))
	res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithBudget(budget))
	if used, _ := budget.Spent(); res.Status != agent.StatusFailed || !errdefs.BudgetExceeded.Is(res.Err) || used != 45 {
		t.Errorf("%s: %v, %d tokens", res.Status, res.Err, used)
	}
	own := &engine.Budget{Tokens: 1}
	tl, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: child(), Budget: own}})
	if err != nil {
		t.Fatal(err)
	}
	res = run(t, agent.Agent{}, looping(t, script{message.Assistant("", gives("c1", "pay")), message.Assistant("end")}, tl), asking("t", "go"), agent.WithJournal(store))
	if text := strings.Join(history(res.LastBoard.Channel(engine.MainChannel)), "\n"); res.Text() != "end" || !strings.Contains(text, "budget of 1 tokens is used up") {
		t.Errorf("a budget of the child's own: %s", text)
	}
}

func TestTasksCannotGoDownForEver(t *testing.T) {
	var deep func(n int) engine.Engine
	deep = func(n int) engine.Engine {
		if n == 0 {
			return saying(t, "bottom")
		}
		return looping(t, script{message.Assistant("", gives("c", "deeper")), message.Assistant(fmt.Sprint("back at ", n))}, task(t, deep(n-1), agent.WithMaxDepth(2)))
	}
	store := disk{journal.Memory()}
	run(t, agent.Agent{}, deep(5), asking("s", "go"), agent.WithJournal(store))
	if got := history(state(t, store, "s/c/c").Messages)[2]; !strings.Contains(got, "2 deep, which is the limit") || state(t, store, "s/c/c/c").Seq != 0 {
		t.Error(got)
	}
}

// family is a parent whose child pays twice and asks once, in the foreground and in the background.
func family(t testing.TB, w *works, in func(id, prompt string) message.ToolCall) *loop.Engine {
	kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("", call("p2", "ask", `{}`)), message.Assistant("paid twice")}, w.tool("pay"), w.tool("ask", tool.RequiresApproval))
	return looping(t, script{message.Assistant("", in("c1", "pay"), call("c2", "pay", `{}`)), message.Assistant("end"), message.Assistant("end")}, task(t, kid), w.tool("pay"))
}

func TestAQuestionBelowWaitsAbove(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		for _, approved := range []bool{true, false} {
			t.Run(fmt.Sprint(name, approved), func(t *testing.T) {
				store := disk{journal.Memory()}
				var w works
				eng := family(t, &w, in)
				res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
				if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 || res.Pending[0].ID != "c1/p2" || res.Pending[0].Call.Name != "ask" {
					t.Fatalf("%s, %s: %+v", res.Status, res.Cause, res.Pending)
				}
				all, err := agent.Pending(t.Context(), store, "s")
				if err != nil || len(all) != 1 || all[0].ID != "c1/p2" {
					t.Fatal(all, err)
				}
				if res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store)); res.Status != agent.StatusInterrupted || len(res.Pending) != 1 {
					t.Fatalf("without an answer: %s", res.Status)
				}
				a := journal.Answered{ID: "c1/p2", Approved: approved}
				if err := agent.Answer(t.Context(), store, "s", a); err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"c1/p2", "p2", "c1"} {
					if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: id}); !errdefs.Conflict.Is(err) {
						t.Errorf("a second answer: %v", err)
					}
				}
				res = resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
				total, most := w.total()
				if want := map[bool]int{true: 3, false: 2}[approved]; res.Text() != "end" || total != want || most != 1 {
					t.Errorf("%s: %v; %d payments", res.Status, res.Err, total)
				}
			})
		}
	}
}

// A task in the background that waits for a person keeps nobody else from working.
func TestAQuestionInTheBackgroundStopsNeitherTheRunNorItsOtherTasks(t *testing.T) {
	var w works
	parked := make(chan struct{})
	store := watching{disk{journal.Memory()}, func(session string, e journal.Entry) {
		if _, ok := e.Data.(journal.Parked); ok && session == "s/c1" {
			close(parked)
		}
	}}
	hold := tool.Func("hold", "", func(context.Context, struct{}) (string, error) { <-parked; return "held", nil })
	asks := looping(t, script{message.Assistant("", call("a1", "ask", `{}`)), message.Assistant("asked")}, w.tool("ask", tool.RequiresApproval))
	pays := looping(t, script{message.Assistant("", call("b1", "hold", `{}`)), message.Assistant("", call("b2", "pay", `{}`)), message.Assistant("paid")}, hold, w.tool("pay"))
	both, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: asks}, {Agent: agent.Agent{ID: "other"}, Engine: pays}})
	if err != nil {
		t.Fatal(err)
	}
	eng := looping(t, script{
		message.Assistant("", background("c1", "ask"), call("c2", "task", `{"agent":"other","prompt":"pay","background":true}`)),
		message.Assistant("", call("c3", "hold", `{}`)), message.Assistant("", call("c4", "pay", `{}`)), message.Assistant("end"), message.Assistant("end"),
	}, both, hold, w.tool("pay"))
	res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
	if total, _ := w.total(); total != 2 || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || state(t, store, "s/c2").Status != "completed" {
		t.Errorf("%s, %s: %d payments; the other task is %q", res.Status, res.Cause, total, state(t, store, "s/c2").Status)
	}
}

// watching is a store that tells what is on record.
type watching struct {
	journal.Store
	see func(session string, e journal.Entry)
}

func (s watching) Append(ctx context.Context, session string, after int64, es ...journal.Entry) error {
	err := s.Store.Append(ctx, session, after, es...)
	for _, e := range es {
		if err == nil {
			s.see(session, e)
		}
	}
	return err
}

func TestAKillInATaskRepeatsNothingAndLosesNothing(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		t.Run(name, func(t *testing.T) {
			points := 0
			for _, after := range []bool{false, true} {
				for n, killed := 1, true; killed; n++ {
					store := disk{journal.Memory()}
					var w works
					eng := family(t, &w, in)
					d := &dying{Store: store, n: n, after: after}
					_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(d))
					if killed = d.dead; killed {
						points++
					}
					if state(t, store, "s").Seq <= 1 {
						continue // nothing had begun
					}
					for range 4 {
						if state(t, store, "s").Run == "" {
							break
						}
						all, err := agent.Pending(t.Context(), store, "s")
						if err != nil {
							t.Fatal(err)
						}
						for _, p := range all {
							if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: p.ID, Approved: true}); err != nil {
								t.Fatal(err)
							}
						}
						resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
					}
					unknown := 0
					for _, s := range []string{"s", "s/c1"} {
						for _, e := range read(t, store, s) {
							if f, ok := e.Data.(journal.ToolFinished); ok && f.Outcome == journal.OutcomeUnknown {
								unknown++
							}
						}
					}
					total, most := w.total()
					text := strings.Join(history(state(t, store, "s").Messages), "\n")
					if most > 1 || total+unknown < 3 || unknown > 2 || strings.Count(text, "paid twice") != 1 || !strings.HasSuffix(text, "assistant: end") {
						t.Fatalf("killed at append %d, after=%v: %d payments, one %d times, %d unknown\n%s", n, after, total, most, unknown, text)
					}
					if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); err != nil {
						t.Error(err)
					}
				}
			}
			t.Logf("%d kill points", points)
		})
	}
}

func TestATaskInTheBackgroundReportsWhenItIsDone(t *testing.T) {
	store := disk{journal.Memory()}
	hold := make(chan struct{})
	slow := tool.Func("slow", "", func(ctx context.Context, _ struct{}) (string, error) { <-hold; return "slept", nil })
	kid := looping(t, script{message.Assistant("", call("z", "slow", `{}`)), message.Assistant("I am done")}, slow)
	wake := tool.Func("wake", "", func(context.Context, struct{}) (string, error) { close(hold); return "woken", nil })
	m := talkative{script{message.Assistant("", background("c1", "sleep")), message.Assistant("", call("c2", "wake", `{}`)), message.Assistant("waiting"), message.Assistant("end")}, nil, new(int), new([][]string)}
	host := &recorder{}
	res := run(t, agent.Agent{}, looping(t, m, task(t, kid), wake), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host))
	got := history(res.LastBoard.Channel(engine.MainChannel))
	want := []string{
		"user: go", "assistant:  <c1 task>", "tool:  [c1 kid works on it in the background (session s/c1). The result comes as a message.]",
		"assistant:  <c2 wake>", "tool:  [c2 woken]", "assistant: waiting",
		"user: [Subagent Result: kid]\nTask: sleep\nStatus: success\nOutput: I am done", "assistant: end",
	}
	if len(got) == len(want) { // it may have been done before the parent spoke
		same(t, "the parent", want, got)
	}
	same(t, "the fold", got, history(state(t, store, "s").Messages))
	if strings.Count(strings.Join(got, "\n"), "I am done") != 1 || state(t, store, "s/c1").Status != "completed" {
		t.Errorf("%q", got)
	}
	seen := 0
	for _, e := range host.events {
		if e.Session == "s/c1" {
			seen++
		}
	}
	if seen < 8 {
		t.Errorf("%d events of the child", seen)
	}
	silent := disk{journal.Memory()}
	kid = saying(t, "I am done")
	res = run(t, agent.Agent{}, looping(t, script{message.Assistant("", background("c1", "sleep")), message.Assistant("end")}, task(t, kid, agent.WithoutSummary())), asking("s", "go"), agent.WithJournal(silent))
	if text := strings.Join(history(res.LastBoard.Channel(engine.MainChannel)), "\n"); strings.Contains(text, "I am done") || res.Text() != "end" || len(state(t, silent, "s").Background) != 0 {
		t.Error(text)
	}
}

// blocking is a model that answers when its context ends.
type blocking struct{ began func() }

func (b blocking) Complete(ctx context.Context, _ model.Request) (*model.Response, error) {
	b.began()
	<-ctx.Done()
	return nil, ctx.Err()
}

func (b blocking) CompleteStream(ctx context.Context, req model.Request, _ model.StreamHandler) error {
	_, err := b.Complete(ctx, req)
	return err
}

func TestACancelAboveIsACancelBelow(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			store := disk{journal.Memory()}
			eng := looping(t, script{message.Assistant("", in("c1", "wait")), message.Assistant("end")}, task(t, looping(t, blocking{cancel})))
			res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
			if err != nil || res.Status != agent.StatusCanceled || !errors.Is(res.Err, context.Canceled) {
				t.Errorf("%+v %v", res, err)
			}
			if s := state(t, store, "s/c1").Status; s != "canceled" {
				t.Errorf("the child is %q", s)
			}
		})
	}
}

// What a run left below when it was parked, or its process died, is over when the run is: nobody else would end it, and a question below would wait for ever.
func TestATaskIsOverWhenTheRunAboveIs(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		for how, end := range map[string]func(t *testing.T, eng engine.Engine, store journal.Store){
			"it is canceled as it is resumed": func(t *testing.T, eng engine.Engine, store journal.Store) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				res, err := agent.Resume(ctx, agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store), agent.WithObserver(onStart{cancel: cancel}))
				if err != nil || res.Status != agent.StatusCanceled {
					t.Fatalf("%+v %v", res, err)
				}
			},
			"a prompt takes its place": func(t *testing.T, eng engine.Engine, store journal.Store) {
				if res := run(t, agent.Agent{ID: "a"}, eng, asking("s", "never mind"), agent.WithJournal(store)); res.Status != agent.StatusCompleted {
					t.Fatalf("%s: %v", res.Status, res.Err)
				}
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				store := disk{journal.Memory()}
				var w works
				bottom := looping(t, script{message.Assistant("", call("p1", "ask", `{}`)), message.Assistant("asked")}, w.tool("ask", tool.RequiresApproval))
				middle := looping(t, script{message.Assistant("", in("d1", "ask")), message.Assistant("end"), message.Assistant("end")}, task(t, bottom))
				eng := looping(t, script{message.Assistant("", in("c1", "ask")), message.Assistant("end"), message.Assistant("end")}, task(t, middle))
				if res := run(t, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store)); res.Status != agent.StatusInterrupted || len(res.Pending) != 1 {
					t.Fatalf("%s: %+v", res.Status, res.Pending)
				}
				end(t, eng, store)
				for _, session := range []string{"s/c1", "s/c1/d1"} {
					st := state(t, store, session)
					if st.Run != "" || st.Status != "canceled" || len(st.Pending) > 0 {
						t.Errorf("%s: run %q, %q, %d questions: want it canceled", session, st.Run, st.Status, len(st.Pending))
					}
				}
				if total, _ := w.total(); total != 0 {
					t.Errorf("%d effects", total)
				}
			})
		}
	}
}

// Who lost the run while he stood still does not end the tasks of whoever has it.
func TestATaskIsNotEndedByWhoHasLostTheRunAbove(t *testing.T) {
	store := disk{journal.Memory()}
	var w works
	eng := family(t, &w, gives)
	run(t, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	takesOver := func() {
		log, err := journal.Open(t.Context(), store, "s")
		if err == nil {
			err = log.Drive(t.Context(), "another", journal.Entry{Run: log.Run(), Data: journal.Resumed{Owner: "another"}})
		}
		if err == nil {
			err = log.Append(t.Context(), journal.Entry{Run: log.Run(), Data: journal.Parked{Cause: string(engine.CauseAwaitingPerson)}})
		}
		if err != nil {
			t.Error(err)
		}
		cancel()
	}
	if res, err := agent.Resume(ctx, agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store), agent.WithObserver(onStart{cancel: takesOver})); err == nil && res.Committed {
		t.Errorf("%+v: another one has the run", res)
	}
	if st := state(t, store, "s/c1"); st.Run == "" || len(st.Pending) != 1 {
		t.Errorf("run %q, %q, %d questions: want it waiting", st.Run, st.Status, len(st.Pending))
	}
}

// A task that somebody drives is his to end.
func TestATaskThatIsDrivenElsewhereIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := disk{journal.Memory()}
		var w works
		eng := family(t, &w, gives)
		run(t, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
		over := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // a driver who is alive
			for {
				if err := store.Lease(t.Context(), "s/c1", "somebody", time.Now().Add(10*time.Second)); err != nil {
					t.Error(err)
				}
				select {
				case <-over:
					return
				case <-time.After(3 * time.Second):
				}
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res, err := agent.Resume(ctx, agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store), agent.WithObserver(onStart{cancel: cancel}))
		if err != nil || res.Status != agent.StatusCanceled {
			t.Errorf("%+v %v", res, err)
		}
		if st := state(t, store, "s/c1"); st.Run == "" {
			t.Errorf("it was ended under its driver's hands: %s", st.Status)
		}
		close(over)
		wg.Wait()
	})
}

// onStart cancels a run as soon as it has begun, as servers do with one that was left.
type onStart struct {
	agent.BaseObserver
	cancel func()
}

func (o onStart) OnRunStart(context.Context, agent.RunInfo, *agent.Request) { o.cancel() }

func TestAnInterruptAboveParksWhatIsBelowAndBothGoOn(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		t.Run(name, func(t *testing.T) {
			store := disk{journal.Memory()}
			var w works
			host := &recorder{intr: make(chan engine.Interrupt, 1)}
			var once sync.Once
			stop := tool.Func("stop", "", func(context.Context, struct{}) (string, error) {
				once.Do(func() { host.intr <- engine.Interrupt{Cause: engine.CauseHostShutdown} })
				return "stopped", nil
			})
			kid := looping(t, script{message.Assistant("", call("p1", "stop", `{}`)), message.Assistant("", call("p2", "pay", `{}`)), message.Assistant("kid's end")}, stop, w.tool("pay"))
			eng := looping(t, script{message.Assistant("", in("c1", "work")), message.Assistant("end"), message.Assistant("end")}, task(t, kid))
			res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host))
			if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseHostShutdown || state(t, store, "s/c1").Status != "interrupted" {
				t.Fatalf("%s, %s; the child is %q", res.Status, res.Cause, state(t, store, "s/c1").Status)
			}
			res = resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
			if total, most := w.total(); res.Text() != "end" || total != 1 || most != 1 || state(t, store, "s/c1").Status != "completed" {
				t.Errorf("%s %v: %d payments", res.Status, res.Err, total)
			}
		})
	}
}

func TestATaskHasItsOwnTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "kid"}, Engine: looping(t, blocking{func() {}}), Timeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		res := run(t, agent.Agent{}, looping(t, script{message.Assistant("", gives("c1", "wait")), message.Assistant("end")}, tl), asking("s", "go"))
		if text := history(res.LastBoard.Channel(engine.MainChannel))[2]; !strings.Contains(text, "time limit of 1m0s") || res.Text() != "end" {
			t.Error(text, res.Err)
		}
	})
}

func TestATimeLimitThatIsOverBeforeTheRunBeginsIsOne(t *testing.T) {
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "x"), asking("s", "go"), agent.WithTimeout(1), agent.WithBoardSeed(func(ctx context.Context, _ agent.RunInfo, _ *agent.Request) (*engine.Board, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	if res != nil || !errdefs.BudgetExceeded.Is(err) {
		t.Error(res, err)
	}
}

func TestTheSessionsBelowAreFound(t *testing.T) {
	store := disk{journal.Memory()}
	inner := looping(t, script{message.Assistant("", gives("k1", "deeper")), message.Assistant("x")}, task(t, saying(t, "bottom")))
	eng := looping(t, script{message.Assistant("", gives("c1", "one"), call("c2", "nothing", `{}`), gives("c3", "two")), message.Assistant("end")}, task(t, inner))
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store))
	run(t, agent.Agent{}, saying(t, "mine"), asking("s/c2", "go"), agent.WithJournal(store)) // it only looks like one
	got, err := journal.Tasks(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "below", []string{"s/c1/k1", "s/c1", "s/c3/k1", "s/c3"}, got)
	if got, err := journal.Tasks(t.Context(), store, "none"); got != nil || err != nil {
		t.Error(got, err)
	}
}

// brokenBelow is a store that fails once, at append number n to a session below.
type brokenBelow struct {
	journal.Store
	mu sync.Mutex
	n  int
}

func (b *brokenBelow) Append(ctx context.Context, session string, after int64, es ...journal.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Contains(session, "/") {
		if b.n--; b.n == 0 {
			return errdefs.NotAvailable.Errorf("the disk is full")
		}
	}
	return b.Store.Append(ctx, session, after, es...)
}

// A task whose journal failed is not answered with that: it goes on when there is room again.
func TestATaskWhoseJournalFailedGoesOnLater(t *testing.T) {
	for name, in := range map[string]func(id, prompt string) message.ToolCall{"foreground": gives, "background": background} {
		for n := 1; ; n++ {
			store := &brokenBelow{Store: disk{journal.Memory()}, n: n}
			var w works
			kid := looping(t, script{message.Assistant("", call("p1", "pay", `{}`)), message.Assistant("paid it")}, w.tool("pay"))
			eng := looping(t, script{message.Assistant("", in("c1", "pay")), message.Assistant("end"), message.Assistant("end")}, task(t, kid))
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
			if store.n > 0 {
				break
			}
			if !errdefs.NotAvailable.Is(err) || res.Status != agent.StatusInterrupted || res.Cause != engine.CauseJournal {
				t.Fatalf("%s: broken at append %d below: %s, %s: %v, %v", name, n, res.Status, res.Cause, res.Err, err)
			}
			res = resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store))
			total, most := w.total()
			text := strings.Join(history(res.LastBoard.Channel(engine.MainChannel)), "\n")
			if res.Text() != "end" || total > 1 || most > 1 || !strings.Contains(text, "paid it") || state(t, store, "s/c1").Status != "completed" {
				t.Errorf("%s: broken at append %d below: %s: %v; %d payments\n%s", name, n, res.Status, res.Err, total, text)
			}
		}
	}
}

func TestATaskIsInTheSandboxOfTheRunAbove(t *testing.T) {
	var seen []sandbox.Policy
	look := tool.Func("look", "", func(ctx context.Context, _ struct{}) (string, error) {
		p, ok := sandbox.From(ctx)
		if !ok {
			t.Error("there is no policy")
		}
		seen = append(seen, p)
		return "ok", nil
	})
	kid := looping(t, script{message.Assistant("", call("k1", "look", `{}`)), message.Assistant("seen")}, look)
	eng := looping(t, script{message.Assistant("", call("c1", "look", `{}`), gives("c2", "look")), message.Assistant("end")}, look, task(t, kid))
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithSandbox(sandbox.Policy{Root: "/project", Network: sandbox.Network{All: true}}), agent.WithSandbox(sandbox.Policy{Root: "/project"}))
	if len(seen) != 2 || seen[0].Root != "/project" || !seen[0].Network.None() || fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
		t.Errorf("%+v", seen)
	}
}
