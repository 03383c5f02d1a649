package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func TestACancelKeepsWhatWasSaidSoFar(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store, seen := journal.Memory(), &watcher{}
	host := &hears{on: func(e event.Event) {
		if e.Text == "second " {
			cancel()
		}
	}}
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, saying(t, "first second third"), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host), agent.WithObserver(seen))
	if err != nil || res.Status != agent.StatusCanceled || !errors.Is(res.Err, context.Canceled) || res.Committed || res.Text() != "first second " || res.Steps != 1 {
		t.Errorf("%+v %v", res, err)
	}
	if !last[journal.ModelFinished](t, store, "s").Partial {
		t.Error("the partial reply is journaled")
	}
	if end := last[journal.RunFinished](t, store, "s"); end.Status != "canceled" || end.Class != "canceled" {
		t.Errorf("%+v", end)
	}
	same(t, "observers", []string{"start", "end canceled"}, seen.log)
	run(t, agent.Agent{}, saying(t, "", "fine"), asking("s", "go on"), agent.WithJournal(store))
	same(t, "the next run sees it", []string{"user: go", "assistant: first second ", "user: go on", "assistant: fine"}, history(state(t, store, "s").Messages))
}

func TestACancelInATool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store := journal.Memory()
	stop := tool.Func("stop", "", func(ctx context.Context, _ struct{}) (string, error) { cancel(); return "", ctx.Err() })
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "stop", `{}`), call("c2", "pay", `{}`))}, stop, w.tool("pay"))
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(store))
	if err != nil || res.Status != agent.StatusCanceled {
		t.Fatal(res, err)
	}
	want := []string{"assistant:  <c1 stop> <c2 pay>", "tool:  [c1 context canceled] [c2 Not run: the run ended before its turn came.]"}
	same(t, "messages", want, lines(res.Messages...))
	same(t, "transcript", want, history(state(t, store, "s").Messages)[1:])
	if total, _ := w.total(); total != 0 {
		t.Error("a queued tool ran")
	}
}

func TestACancelledContextBeginsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store, seen := journal.Memory(), &watcher{}
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithObserver(seen))
	if res != nil || !errors.Is(err, context.Canceled) || len(seen.log) > 0 || len(read(t, store, "s")) > 0 {
		t.Error(res, err)
	}
}

func TestTimeRunsOut(t *testing.T) {
	for name, c := range map[string]struct {
		limit, deadline time.Duration
		after           time.Duration
		status          agent.Status
		class           string
	}{
		"the run's":                {limit: time.Second, after: time.Second, status: agent.StatusFailed, class: "budget_exceeded"},
		"the caller's":             {deadline: time.Second, after: time.Second, status: agent.StatusCanceled, class: "canceled"},
		"the run's comes first":    {limit: time.Second, deadline: time.Minute, after: time.Second, status: agent.StatusFailed, class: "budget_exceeded"},
		"the caller's comes first": {limit: time.Minute, deadline: time.Second, after: time.Second, status: agent.StatusCanceled, class: "canceled"},
	} {
		for tools, slow := range map[string]func(context.Context){
			"a good tool": func(ctx context.Context) { <-ctx.Done() },
			"a deaf tool": func(context.Context) { time.Sleep(time.Hour) },
		} {
			t.Run(name+", "+tools, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := t.Context()
					if c.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, c.deadline)
						defer cancel()
					}
					store, began := journal.Memory(), time.Now()
					x := tool.Func("x", "", func(ctx context.Context, _ struct{}) (string, error) { slow(ctx); return "", ctx.Err() })
					res, err := agent.Run(ctx, agent.Agent{ID: "a"}, looping(t, script{message.Assistant("", call("c1", "x", `{}`))}, x), asking("s", "go"), agent.WithJournal(store), agent.WithTimeout(c.limit))
					if err != nil || res.Status != c.status {
						t.Fatalf("%+v %v", res, err)
					}
					if took := time.Since(began); took != c.after && took != c.after+5*time.Second {
						t.Error(took)
					}
					if c.status == agent.StatusFailed && !errdefs.BudgetExceeded.Is(res.Err) {
						t.Error(res.Err)
					}
					if end := last[journal.RunFinished](t, store, "s"); end.Class != c.class {
						t.Errorf("%+v", end)
					}
					time.Sleep(time.Hour) // the deaf tool ends, and nobody cares
				})
			})
		}
	}
}

func TestACancelBetweenTwoAttemptsIsACancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	store, seen := journal.Memory(), &watcher{}
	again := agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		cancel()
		return agent.FinalizeDecision{Revise: true}, nil
	})
	res, err := agent.Run(ctx, agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithDecider(again), agent.WithMaxRevise(2), agent.WithObserver(seen))
	if err != nil || res.Status != agent.StatusCanceled || res.Committed || res.Text() != "hi" {
		t.Errorf("%+v %v", res, err)
	}
	if st := state(t, store, "s"); st.Run != "" || st.Status != "canceled" {
		t.Error(st.Run, st.Status)
	}
	same(t, "observers", []string{"start", "revise 1 to 2, committed false", "end canceled"}, seen.log)
}

func TestADeciderMayCloseAnInterruptedRun(t *testing.T) {
	for name, d := range map[string]agent.FinalizeDecision{"keep": {AcceptOutput: true}, "drop": {DiscardOutput: true}} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
			host.interrupts <- engine.Interrupt{Cause: engine.CauseUserCancel}
			res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host), agent.WithDecider(decider(d)))
			if res.Status != agent.StatusInterrupted || res.Committed != d.AcceptOutput {
				t.Errorf("%+v", res)
			}
			if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), "s", agent.WithJournal(store)); !errdefs.NotFound.Is(err) {
				t.Error(err)
			}
		})
	}
}

func TestATimeoutThatIsNotReachedLeavesNoTrace(t *testing.T) {
	if res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithTimeout(time.Hour)); res.Status != agent.StatusCompleted {
		t.Error(res.Err)
	}
}

func TestANewRunAfterADeathKnowsWhatMayHaveHappened(t *testing.T) {
	var w works
	store := journal.Memory()
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`), call("c2", "pay", `{}`))}, w.tool("pay"))
	_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithJournal(&dying{Store: store, n: 7}))
	if total, _ := w.total(); !errors.Is(err, errDead) || total != 1 {
		t.Fatal(err, total, kinds(read(t, store, "s")))
	}
	run(t, agent.Agent{}, saying(t, "", "fine"), asking("s", "and now?"), agent.WithJournal(store))
	got := history(state(t, disk{store}, "s").Messages)
	if len(got) != 5 || !strings.Contains(got[2], "[c1 The process died while this call was under way.") || !strings.Contains(got[2], "[c2 Not run") {
		t.Error(got)
	}
}

func TestAnInterruptedRunIsResumedWithoutDoingItsToolsAgain(t *testing.T) {
	store, seen := journal.Memory(), &watcher{}
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	ran := 0
	work := tool.Func("work", "", func(context.Context, struct{}) (string, error) {
		ran++
		host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown, Detail: "deploy"}
		return "worked", nil
	})
	eng := looping(t, script{message.Assistant("", call("w1", "work", `{}`)), message.Assistant("all done")}, work)
	req := agent.Request{ContextID: "s", RunID: "r", Message: message.User("go"), Inputs: map[string]any{"n": 1.0}}
	res := run(t, agent.Agent{}, eng, req, agent.WithJournal(store), agent.WithEngineHost(host), agent.WithObserver(seen))
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseHostShutdown || res.Committed || !errdefs.Interrupted.Is(res.Err) || len(res.Pending) > 0 {
		t.Errorf("%+v", res)
	}
	same(t, "observers", []string{"start", "interrupt host_shutdown", "end interrupted"}, seen.log)
	if p := last[journal.Parked](t, store, "s"); p.Cause != "host_shutdown" || p.Detail != "deploy" {
		t.Errorf("%+v", p)
	}
	res = resume(t, agent.Agent{}, eng, "s", agent.WithJournal(disk{store}), agent.WithObserver(seen))
	if res.Status != agent.StatusCompleted || res.Text() != "all done" || ran != 1 || res.RunID != "r" || res.Steps != 2 || res.LastBoard.Var("n") != 1.0 || !res.Committed {
		t.Errorf("%+v ran %d times", res, ran)
	}
	same(t, "all of the run's messages", []string{"assistant:  <w1 work>", "tool:  [w1 worked]", "assistant: all done"}, lines(res.Messages...))
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); !errdefs.NotFound.Is(err) {
		t.Error("a second resume:", err)
	}
}

func TestResumingNothingIsNotFound(t *testing.T) {
	store := journal.Memory()
	run(t, agent.Agent{}, saying(t, "hi"), asking("done", "go"), agent.WithJournal(store))
	for name, session := range map[string]string{"a session that isn't there": "none", "one that is done": "done"} {
		if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), session, agent.WithJournal(store)); !errdefs.NotFound.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), "", agent.WithJournal(store)); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestAnEngineThatCannotResumeIsRefusedBeforeAnythingRuns(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	before := len(read(t, store, "s"))
	eng := engine.Func(func(context.Context, engine.Run, engine.Host, *engine.Board) (*engine.Board, error) {
		t.Error("it ran")
		return nil, nil
	})
	if _, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(store)); !errdefs.NotAvailable.Is(err) || len(read(t, store, "s")) != before {
		t.Error(err)
	}
}

// parked leaves a run that was interrupted before its first step.
func parked(t *testing.T, store journal.Store) {
	t.Helper()
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	host.interrupts <- engine.Interrupt{Cause: engine.CauseUserInput}
	if res := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host)); res.Status != agent.StatusInterrupted {
		t.Fatal(res.Status)
	}
}

func TestACheckpointIsEnoughToResume(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	res := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{}, agent.WithJournal(store), agent.WithResumeFrom(&engine.Checkpoint{ExecID: "r", Session: "s"}))
	if res.Status != agent.StatusCompleted || res.ContextID != "s" {
		t.Errorf("%+v", res)
	}
}

// stale is a store whose leases have run out: its drivers were taken for dead.
type stale struct{ journal.Store }

func (stale) Lease(context.Context, string, string, time.Time) error { return nil }

// overtaken finishes the run at the moment that somebody else is about to resume it.
type overtaken struct {
	journal.Store
	once sync.Once
	do   func()
}

func (o *overtaken) Append(ctx context.Context, s string, at int64, es ...journal.Entry) error {
	o.once.Do(o.do)
	return o.Store.Append(ctx, s, at, es...)
}

func TestARunThatSomebodyElseFinishedMeanwhileIsNotDoneAgain(t *testing.T) {
	store := stale{journal.Memory()}
	parked(t, store)
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
	race := &overtaken{Store: store, do: func() { resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store)) }}
	res, err := agent.Resume(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(race))
	if total, _ := w.total(); res != nil || !errdefs.NotFound.Is(err) || total != 1 {
		t.Error(res, err, total)
	}
}

func TestOfTwoDriversTheFirstIsFencedOffAndStartsNoTool(t *testing.T) {
	for name, second := range map[string]func(*testing.T, engine.Engine, journal.Store) *agent.Result{
		"a new run": func(t *testing.T, eng engine.Engine, s journal.Store) *agent.Result {
			return run(t, agent.Agent{}, eng, asking("s", "me first"), agent.WithJournal(s))
		},
		"a resume": func(t *testing.T, eng engine.Engine, s journal.Store) *agent.Result {
			return resume(t, agent.Agent{}, eng, "s", agent.WithJournal(s))
		},
	} {
		for _, kind := range []string{"pay", "look"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				store := stale{journal.Memory()}
				var w works
				pay, look := w.tool("pay"), w.tool("look", tool.ReadOnly)
				replies := script{message.Assistant("", call("c1", kind, `{}`)), message.Assistant("end")}
				winner := looping(t, replies, pay, look)
				var res *agent.Result
				late := hook.Middleware{Name: "late", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
					res = second(t, winner, store) // before the first one's tool may start, another has done it all
					return hook.Decision{}, nil
				}}
				loser, err := agent.Run(t.Context(), agent.Agent{ID: "a", Hooks: []hook.Middleware{late}}, looping(t, replies, pay, look), asking("s", "go"), agent.WithJournal(store))
				if !errdefs.Conflict.Is(err) || loser.Status != agent.StatusFailed || !errdefs.Conflict.Is(loser.Err) || loser.Committed {
					t.Errorf("the first: %+v %v", loser, err)
				}
				total, most := w.total()
				if res.Status != agent.StatusCompleted || most > 1 || total > 1 || name == "a resume" && total != 1 {
					t.Errorf("the second: %+v, tools ran %d times", res, total)
				}
			})
		}
	}
}

func TestRunsThatRaceForASessionDoNoToolTwice(t *testing.T) {
	for range 30 {
		store := stale{journal.Memory()}
		var w works
		var wg sync.WaitGroup
		wins := make([]bool, 4)
		eng := looping(t, constantly{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
		for i := range wins {
			wg.Go(func() {
				res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, agent.Request{ContextID: "s", RunID: fmt.Sprint("r", i), Message: message.User("go")}, agent.WithJournal(store))
				if err != nil && !errdefs.Conflict.Is(err) {
					t.Error(err)
				}
				wins[i] = err == nil && res.Status == agent.StatusCompleted
			})
		}
		wg.Wait()
		if _, most := w.total(); most > 1 {
			t.Error("a call ran twice")
		}
		if st := state(t, store, "s"); st.Status != "completed" {
			t.Error("the last driver is done:", st.Status)
		}
		for i, m := range at(state(t, store, "s").Messages) {
			if m.Role() == message.RoleAssistant && len(m.ToolCalls()) > 0 && state(t, store, "s").Messages.At(i+1).Role() != message.RoleTool {
				t.Error("the transcript is not valid")
			}
		}
	}
}

func TestAQuestionThatNobodyAnswersParksTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		answer journal.Answered
		ran    int
		result string
	}{
		"yes":  {journal.Answered{ID: "c1", Approved: true, By: "ada"}, 1, "pay did c1"},
		"no":   {journal.Answered{ID: "c1", Text: "too dear"}, 0, "Rejected by a person: too dear"},
		"edit": {journal.Answered{ID: "c1", Approved: true, Input: `{"x":1}`}, 0, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			var w works
			asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { return hook.Asking("pay?"), nil }}
			ag := agent.Agent{Hooks: []hook.Middleware{asks}}
			eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
			res := run(t, ag, eng, asking("s", "go"), agent.WithJournal(store))
			if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseAwaitingPerson || len(res.Pending) != 1 || res.Pending[0].ID != "c1" || res.Pending[0].Prompt != "pay?" || res.Pending[0].Call.Name != "pay" {
				t.Fatalf("%+v", res)
			}
			if again := resume(t, ag, eng, "s", agent.WithJournal(disk{store})); again.Status != agent.StatusInterrupted || len(again.Pending) != 1 {
				t.Fatalf("%+v", again)
			}
			log, err := journal.Open(t.Context(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Answer(t.Context(), c.answer); err != nil {
				t.Fatal(err)
			}
			if err := log.Answer(t.Context(), journal.Answered{ID: "c1", Approved: true}); !errdefs.Conflict.Is(err) {
				t.Error("two answers:", err)
			}
			res = resume(t, ag, eng, "s", agent.WithJournal(disk{store}))
			total, _ := w.total()
			if res.Status != agent.StatusCompleted || total != c.ran || len(res.Pending) > 0 || !strings.Contains(lines(res.Messages...)[1], c.result) {
				t.Errorf("%+v, ran %d times", res, total)
			}
		})
	}
}

func TestAChildRunIsBoundByItsParent(t *testing.T) {
	var w works
	denies := hook.Middleware{Name: "parent", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Call.Name == "pay" {
			return hook.Denied("not for you"), nil
		}
		return hook.Decision{}, nil
	}, PreGeneration: func(_ context.Context, g *hook.Generation) error { g.System = "parent"; return nil }}
	childEng := looping(t, script{message.Assistant("", call("k1", "pay", `{}`)), message.Assistant("could not")}, w.tool("pay"))
	var children []*agent.Result
	task := tool.Func("task", "", func(ctx context.Context, _ struct{}) (string, error) {
		child, err := agent.Run(ctx, agent.Agent{ID: "child"}, childEng, agent.Request{Message: message.User("pay")}, agent.WithBudget(&engine.Budget{Tokens: 1000}))
		if b, ok := engine.BoundsFrom(ctx); !ok || b.Depth != 0 {
			t.Error(b, ok)
		}
		children = append(children, child)
		return child.Text(), err
	})
	budget := &engine.Budget{Tokens: 60}
	eng := looping(t, script{message.Assistant("", call("c1", "task", `{}`)), message.Assistant("", call("c2", "task", `{}`)), message.Assistant("end")}, task)
	res := run(t, agent.Agent{Hooks: []hook.Middleware{denies}}, eng, asking("s", "go"), agent.WithBudget(budget))
	if total, _ := w.total(); total != 0 || len(children) != 2 || !strings.Contains(lines(children[0].Messages...)[1], "not for you") {
		t.Error(total, children)
	}
	// 15 tokens a call: one of the parent's, two of the first child's, one of the parent's, and the second child may make none
	if tokens, _ := budget.Spent(); tokens != 60 || !errdefs.BudgetExceeded.Is(children[1].Err) || !errdefs.BudgetExceeded.Is(res.Err) {
		t.Errorf("%d tokens, %v %v", tokens, children[1].Err, res.Err)
	}
}
