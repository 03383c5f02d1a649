package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// does is an engine of one function, which says ok when it gives no error.
func does(f func(r engine.Run) error) engine.Engine {
	return engine.Func(func(_ context.Context, r engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		err := f(r)
		if err == nil {
			b.Append(engine.MainChannel, message.Assistant("ok"))
		}
		return b, err
	})
}

func TestAPanicFailsTheRunWithItsStackOnRecordAndOneEnd(t *testing.T) {
	fine := does(func(engine.Run) error { return nil })
	attempts := 0
	for name, c := range map[string]struct {
		eng  engine.Engine
		opts []agent.RunOption
		text string // what is kept of the output
		err  bool   // Run's own
		log  []string
	}{
		"in the engine":      {does(func(engine.Run) error { panic("boom") }), nil, "", false, []string{"start", "end failed"}},
		"in a decider":       {fine, []agent.RunOption{agent.WithDecider(decider("boom"))}, "ok", true, []string{"start", "end failed"}},
		"in a later decider": {fine, []agent.RunOption{agent.WithDecider(decider(agent.FinalizeDecision{AcceptOutput: true})), agent.WithDecider(decider("boom"))}, "ok", true, []string{"start", "end failed"}},
		"in the seeder":      {fine, []agent.RunOption{agent.WithBoardSeed(func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) { panic("boom") })}, "", false, []string{"start", "end failed"}},
		"in the seeder of a later attempt": {fine, []agent.RunOption{
			agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})), agent.WithMaxRevise(2),
			agent.WithBoardSeed(func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
				if attempts++; attempts > 1 {
					panic("boom")
				}
				return agent.BoardWith(message.History{}, req), nil
			}),
		}, "ok", false, []string{"start", "revise 1 to 2, committed false", "end failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			store, seen := journal.Memory(), &watcher{}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, c.eng, asking("s", "go"), append(c.opts, agent.WithJournal(store), agent.WithObserver(seen))...)
			if (err != nil) != c.err || err != nil && !errdefs.Internal.Is(err) {
				t.Error(err)
			}
			if res == nil || res.Status != agent.StatusFailed || !errdefs.Internal.Is(res.Err) || res.Committed || res.Text() != c.text || (res.Attempts == 0) != (name == "in the seeder") {
				t.Fatalf("%+v", res)
			}
			end := last[journal.RunFinished](t, store, "s")
			if end.Status != "failed" || end.Class != "internal" || end.Committed || !strings.Contains(end.Error, "boom") || !strings.Contains(end.Stack, "contract_test.go") && !strings.Contains(end.Stack, "around_test.go") {
				t.Errorf("%+v", end)
			}
			same(t, "observers", c.log, seen.log)
		})
	}
}

func TestADecidersPanicLeavesAnInterruptedRunToBeResumed(t *testing.T) {
	store := journal.Memory()
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	host.interrupts <- engine.Interrupt{Cause: engine.CauseUserCancel}
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host), agent.WithDecider(decider("boom")))
	if !errdefs.Internal.Is(err) || res.Status != agent.StatusInterrupted || res.Committed {
		t.Fatalf("%+v %v", res, err)
	}
	if res := resume(t, agent.Agent{}, saying(t, "hi"), "s", agent.WithJournal(store)); res.Text() != "hi" {
		t.Errorf("%+v", res)
	}
}

func TestASeederErrorOfASecondAttemptGivesThePreviousResultWithIt(t *testing.T) {
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})), agent.WithMaxRevise(2), agent.WithBoardSeed(once()))
	if err != nil || res.Text() != "hi" || res.Attempts != 1 || res.Err == nil || !strings.Contains(res.Err.Error(), "seed board (attempt 2): the database is gone") || res.LastBoard == nil {
		t.Errorf("%+v %v", res, err)
	}
}

func TestARunIDThatContradictsTheCheckpointIsValidation(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	cp := agent.WithResumeFrom(&engine.Checkpoint{ExecID: "r", Session: "s"})
	before := len(read(t, store, "s"))
	if _, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), agent.Request{RunID: "other"}, agent.WithJournal(store), cp); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "run other, the checkpoint is of run r") || len(read(t, store, "s")) != before {
		t.Error(err)
	}
	if res := run(t, agent.Agent{}, saying(t, "hi"), agent.Request{RunID: "r"}, agent.WithJournal(store), cp); res.RunID != "r" || res.Text() != "hi" {
		t.Errorf("the same id is no contradiction: %+v", res)
	}
}

func TestTheEngineGetsTheVeryHost(t *testing.T) {
	for name, opts := range map[string][]agent.RunOption{"with a journal": {agent.WithJournal(journal.Memory())}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			given := &myHost{}
			var got engine.Host
			spy := engine.Func(func(_ context.Context, _ engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
				got = h
				return b, nil
			})
			run(t, agent.Agent{}, spy, asking("s", "go"), append(opts, agent.WithEngineHost(given))...)
			if got != engine.Host(given) {
				t.Errorf("%T %p", got, got)
			}
			run(t, agent.Agent{}, spy, asking("s", "go"), opts...)
			if got != engine.Host(engine.NoopHost{}) {
				t.Errorf("without one: %T", got)
			}
		})
	}
}

func TestWhatTheCallerGaveIsNotChanged(t *testing.T) {
	attrs, more := map[string]string{"run.id": "evil", "team": "x"}, map[string]string{"team": "y"}
	deps, inputs, tools := provided(42), map[string]any{"k": "v"}, []string{"read"}
	var seen []string
	spy := does(func(r engine.Run) error {
		seen = append(seen, fmt.Sprintf("%s %s %s %v", r.Attributes["run.id"], r.Attributes["team"], r.Attributes["agent.attempt"], r.Attributes["mine"]))
		if r.Deps != deps || !r.Deps.Has(reflect.TypeFor[int]()) {
			t.Error("other dependencies")
		}
		r.Attributes["mine"], r.Attributes["run.id"] = "written", "written" // an engine that breaks its contract harms nobody else
		r.Tools[0] = "written"
		return nil
	})
	ag := agent.Agent{ID: "a", Tools: tools}
	req := agent.Request{RunID: "r", ContextID: "s", Message: message.User("go"), Inputs: inputs}
	opts := []agent.RunOption{agent.WithAttributes(attrs), agent.WithAttributes(more), agent.WithDependencies(deps), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})), agent.WithMaxRevise(2)}
	for range 2 { // options may be used again
		res := run(t, ag, spy, req, opts...)
		res.LastBoard.SetVar("k", "written")
	}
	same(t, "each attempt", []string{"r y 1 ", "r y 2 ", "r y 1 ", "r y 2 "}, seen)
	same(t, "attributes", map[string]string{"run.id": "evil", "team": "x"}, attrs)
	same(t, "more attributes", map[string]string{"team": "y"}, more)
	same(t, "inputs", map[string]any{"k": "v"}, inputs)
	same(t, "tools", []string{"read"}, tools)
}

func TestIdentityCannotBeSpoofedAndIsReadBack(t *testing.T) {
	evil := map[string]string{"agent.id": "evil", "run.id": "evil", "task.id": "evil", "conversation.id": "evil", "agent.attempt": "evil", "x": "1"}
	for name, task := range map[string]string{"with a task": "t", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"agent.id": "a", "run.id": "r", "conversation.id": "s", "agent.attempt": "1", "x": "1"}
			if task != "" {
				want["task.id"] = task
			}
			run(t, agent.Agent{}, does(func(r engine.Run) error {
				same(t, "attributes", want, maps.Clone(r.Attributes))
				same(t, "info", agent.RunInfo{AgentID: "a", RunID: "r", TaskID: task, ContextID: "s"}, agent.RunInfoFromAttributes(r.ID, r.Attributes))
				return nil
			}), agent.Request{RunID: "r", ContextID: "s", TaskID: task, Message: message.User("go")}, agent.WithAttributes(evil))
		})
	}
	same(t, "the argument counts", agent.RunInfo{RunID: "mine"}, agent.RunInfoFromAttributes("mine", map[string]string{"run.id": "other"}))
	same(t, "nothing is nothing", agent.RunInfo{}, agent.RunInfoFromAttributes("", nil))
}

func TestANilBoardOfTheEngineIsTheSeededOne(t *testing.T) {
	eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		b.Append(engine.MainChannel, message.Assistant("ok"))
		return nil, nil
	})
	if res := run(t, agent.Agent{}, eng, asking("s", "go")); res.LastBoard == nil || res.Text() != "ok" {
		t.Errorf("%+v", res)
	}
}

func TestAForeignInterruptIsAStatusWithoutACall(t *testing.T) {
	seen := &watcher{}
	res := run(t, agent.Agent{}, does(func(engine.Run) error { return errdefs.Interrupted.Errorf("later") }), asking("s", "go"), agent.WithObserver(seen))
	if res.Status != agent.StatusInterrupted || res.Cause != engine.CauseCustom || res.Committed {
		t.Errorf("%+v", res)
	}
	same(t, "observers", []string{"start", "end interrupted"}, seen.log)
}

func TestAnInterruptIsLookedForBeforeACancelAndThatBeforeAnAbort(t *testing.T) {
	intr := engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseUserInput}}
	for name, c := range map[string]struct {
		err  error
		want agent.Status
	}{
		"all three":          {errors.Join(errdefs.Aborted.Errorf("x"), context.Canceled, intr), agent.StatusInterrupted},
		"cancel and abort":   {errors.Join(errdefs.Aborted.Errorf("x"), context.Canceled), agent.StatusCanceled},
		"abort":              {errdefs.Aborted.Errorf("x"), agent.StatusAborted},
		"none, though ended": {nil, agent.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			live, end := context.WithCancel(t.Context())
			res, err := agent.Run(live, agent.Agent{ID: "a"}, does(func(engine.Run) error { end(); return c.err }), asking("s", "go"))
			if err != nil || res.Status != c.want {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
}

func TestTheBudgetOfRevisions(t *testing.T) {
	for n, want := range map[int]int{-1: 1, 0: 1, 1: 1, 2: 2, 4: 4} {
		var ids, attempts []string
		eng := does(func(r engine.Run) error {
			ids, attempts = append(ids, r.ID), append(attempts, r.Attributes["agent.attempt"])
			return nil
		})
		req := asking("s", "go")
		req.RunID = "r"
		res := run(t, agent.Agent{}, eng, req, agent.WithMaxRevise(n), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true, Reason: "again"})))
		if res.Attempts != want || len(ids) != want || !res.Committed || res.State[agent.StateFinalizeReason] != "again" {
			t.Errorf("WithMaxRevise(%d): %+v, %v", n, res, ids)
		}
		for i := range ids {
			if ids[i] != "r" || attempts[i] != fmt.Sprint(i+1) {
				t.Error("the run keeps its id over its attempts:", ids, attempts)
			}
		}
	}
}

func TestOnlyTheFirstAttemptIsResumed(t *testing.T) {
	store := journal.Memory()
	parked(t, store)
	var from []bool
	eng := describes{Engine: does(func(r engine.Run) error { from = append(from, r.ResumeFrom != nil); return nil }), can: engine.Capabilities{Name: "loop", Resume: true}}
	res := resume(t, agent.Agent{}, eng, "s", agent.WithJournal(store), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})), agent.WithMaxRevise(3))
	same(t, "resumed", []bool{true, false, false}, from)
	if res.Attempts != 3 {
		t.Error(res.Attempts)
	}
}

func TestHalfASentenceIsDroppedWhenTheUserTalksIntoIt(t *testing.T) {
	d := agent.NewDiscardOnInterruptCauses("barge-in", engine.CauseUserInput, engine.CauseUserCancel)
	drop := agent.FinalizeDecision{DiscardOutput: true, Reason: "barge-in"}
	for name, c := range map[string]struct {
		d    *agent.DiscardOnInterruptCauses
		res  *agent.Result
		want agent.FinalizeDecision
	}{
		"one of the causes": {d, &agent.Result{Status: agent.StatusInterrupted, Cause: engine.CauseUserInput}, drop},
		"another of them":   {d, &agent.Result{Status: agent.StatusInterrupted, Cause: engine.CauseUserCancel}, drop},
		"none of them":      {d, &agent.Result{Status: agent.StatusInterrupted, Cause: engine.CauseHostShutdown}, agent.FinalizeDecision{}},
		"another status":    {d, &agent.Result{Status: agent.StatusFailed, Cause: engine.CauseUserInput}, agent.FinalizeDecision{}},
		"no Result":         {d, nil, agent.FinalizeDecision{}},
		"no causes":         {new(agent.DiscardOnInterruptCauses), &agent.Result{Status: agent.StatusInterrupted}, agent.FinalizeDecision{}},
		"a nil one":         {nil, &agent.Result{Status: agent.StatusInterrupted}, agent.FinalizeDecision{}},
	} {
		got, err := c.d.BeforeFinalize(t.Context(), agent.RunInfo{}, nil, c.res)
		if err != nil {
			t.Error(err)
		}
		same(t, name, c.want, got)
	}
	store := journal.Memory()
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	host.interrupts <- engine.Interrupt{Cause: engine.CauseUserInput}
	res := run(t, agent.Agent{Deciders: []agent.Decider{agent.BaseDecider{}, d}}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithEngineHost(host))
	if res.Committed || res.State[agent.StateFinalizeReason] != "barge-in" || !last[journal.RunFinished](t, store, "s").Discarded {
		t.Errorf("%+v", res)
	}
}

func TestTheModesThatACallerAcceptsReachTheEngine(t *testing.T) {
	modes := []string{"application/json"}
	req := asking("s", "go")
	req.Config = &agent.RequestConfig{AcceptedOutputModes: modes}
	run(t, agent.Agent{}, does(func(r engine.Run) error {
		same(t, "modes", []string{"application/json"}, r.OutputModes)
		r.OutputModes[0] = "written"
		return nil
	}), req)
	same(t, "the caller's", []string{"application/json"}, modes)

	store := journal.Memory()
	res := run(t, agent.Agent{}, saying(t, "hi"), req, agent.WithJournal(store))
	if res.Status != agent.StatusFailed || !errdefs.NotAvailable.Is(res.Err) || res.Steps != 0 {
		t.Errorf("%+v", res)
	}
	if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), "s", agent.WithJournal(store)); err != nil {
		t.Error(err)
	}
	store = journal.Memory()
	parked(t, store)
	if res := resume(t, agent.Agent{}, saying(t, "hi"), "s", agent.WithJournal(store)); res.Status != agent.StatusCompleted {
		t.Errorf("a resume takes anything: %+v", res)
	}
	store = journal.Memory()
	parked(t, store)
	again := agent.Request{Config: req.Config}
	if res := run(t, agent.Agent{}, saying(t, "hi"), again, agent.WithJournal(store), agent.WithResumeFrom(&engine.Checkpoint{ExecID: "r", Session: "s"})); !errdefs.NotAvailable.Is(res.Err) {
		t.Errorf("unless its request says what: %+v", res)
	}
}
