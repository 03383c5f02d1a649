package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// watcher notes what an observer is told. It panics when it is told to.
type watcher struct {
	name  string
	log   []string
	to    *[]string
	panic bool
	ended context.Context //nolint:containedctx // looked at in a test
}

func (w *watcher) note(s string) {
	if w.name != "" {
		s = w.name + ": " + s
	}
	if w.log = append(w.log, s); w.to != nil {
		*w.to = append(*w.to, s)
	}
	if w.panic {
		panic("observer")
	}
}

func (w *watcher) OnRunStart(context.Context, agent.RunInfo, *agent.Request) { w.note("start") }

func (w *watcher) OnInterrupt(_ context.Context, _ agent.RunInfo, i engine.Interrupt) {
	w.note("interrupt " + string(i.Cause))
}

func (w *watcher) OnRunRevise(_ context.Context, _ agent.RunInfo, prev *agent.Result, next int) {
	w.note(fmt.Sprintf("revise %d to %d, committed %t", prev.Attempts, next, prev.Committed))
}

func (w *watcher) OnRunEnd(ctx context.Context, _ agent.RunInfo, res *agent.Result) {
	w.ended = ctx
	w.note("end " + string(res.Status))
}

func TestObserversAreCalledInOrderAndTheirPanicsAreDropped(t *testing.T) {
	var all []string
	a, b := &watcher{name: "agent", to: &all, panic: true}, &watcher{name: "run", to: &all}
	tries := 0
	again := agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		tries++
		return agent.FinalizeDecision{Revise: tries < 2}, nil
	})
	res := run(t, agent.Agent{Observers: []agent.Observer{a, nil}}, saying(t, "hi"), asking("s", "go"), agent.WithObserver(b), agent.WithDecider(again), agent.WithMaxRevise(5))
	if res.Status != agent.StatusCompleted || res.Attempts != 2 {
		t.Error(res.Err, res.Attempts)
	}
	var want []string
	for _, s := range []string{"start", "revise 1 to 2, committed false", "start", "end completed"} {
		want = append(want, "agent: "+s, "run: "+s)
	}
	same(t, "calls", want, all)
	var _ agent.Observer = agent.BaseObserver{}
}

func TestOnRunEndComesOnceOnEveryExit(t *testing.T) {
	fails := func(err error) engine.Engine {
		return engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
			return b, err
		})
	}
	decides := func(d agent.FinalizeDecision, err error) agent.RunOption {
		return agent.WithDecider(agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
			return d, err
		}))
	}
	oops := errors.New("oops")
	for name, c := range map[string]struct {
		eng  engine.Engine
		opts []agent.RunOption
		log  []string
		err  bool
	}{
		"completed":         {saying(t, "hi"), nil, []string{"start", "end completed"}, false},
		"failed":            {fails(oops), nil, []string{"start", "end failed"}, false},
		"aborted":           {fails(errdefs.Aborted.Errorf("no")), nil, []string{"start", "end aborted"}, false},
		"interrupted":       {fails(engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseUserCancel}}), nil, []string{"start", "interrupt user_cancel", "end interrupted"}, false},
		"a decider fails":   {saying(t, "hi"), []agent.RunOption{decides(agent.FinalizeDecision{}, oops)}, []string{"start", "end completed"}, true},
		"a committer fails": {saying(t, "hi"), []agent.RunOption{agent.WithCommitter(commits(func() error { return oops }))}, []string{"start", "end completed"}, true},
		"a later attempt has no board": {
			saying(t, "hi"),
			[]agent.RunOption{decides(agent.FinalizeDecision{Revise: true}, nil), agent.WithMaxRevise(2), agent.WithBoardSeed(once())},
			[]string{"start", "revise 1 to 2, committed false", "end failed"},
			false,
		},
		"the journal breaks at the end": {saying(t, "hi"), []agent.RunOption{agent.WithJournal(&dying{Store: journal.Memory(), n: 7})}, []string{"start", "end completed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &watcher{}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, c.eng, asking("s", "go"), append(c.opts, agent.WithObserver(seen))...)
			if res == nil || (err != nil) != c.err || err != nil && res.Committed {
				t.Errorf("%+v %v", res, err)
			}
			same(t, "calls", c.log, seen.log)
			if seen.ended.Err() != nil {
				t.Error("an observer of the end has time to store it")
			}
		})
	}
}

// once is a seeder that works once.
func once() agent.Seeder {
	n := 0
	return func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		if n++; n > 1 {
			return nil, errors.New("the database is gone")
		}
		return agent.BoardWith(message.History{}, req), nil
	}
}

func TestALaterAttemptThatCannotBeginFailsTheRunAndKeepsWhatThereWas(t *testing.T) {
	store := journal.Memory()
	again := agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: true}, nil
	})
	res := run(t, agent.Agent{}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithDecider(again), agent.WithMaxRevise(3), agent.WithBoardSeed(once()))
	if res.Status != agent.StatusFailed || res.Committed || res.Text() != "hi" || res.Attempts != 1 || !strings.Contains(res.Err.Error(), "attempt 2") {
		t.Errorf("%+v", res)
	}
	if st := state(t, store, "s"); st.Run != "" || st.Status != "failed" {
		t.Error(st.Run, st.Status)
	}
}

func TestDecidersAreMerged(t *testing.T) {
	type decision = agent.FinalizeDecision
	oops := errors.New("oops")
	for name, c := range map[string]struct {
		fail      bool // the engine
		decisions []any
		committed bool
		discarded bool
		reason    string
		state     map[string]any
		err       *errdefs.Class
	}{
		"nobody":                    {committed: true},
		"a failed run isn't kept":   {fail: true},
		"unless somebody wants it":  {fail: true, decisions: []any{decision{}, decision{AcceptOutput: true}}, committed: true},
		"discard beats accept":      {decisions: []any{decision{DiscardOutput: true, Reason: "toxic"}, decision{AcceptOutput: true, Reason: "nice"}}, discarded: true, reason: "toxic"},
		"in any order":              {decisions: []any{decision{AcceptOutput: true, Reason: "nice"}, decision{DiscardOutput: true, Reason: "toxic"}}, discarded: true, reason: "nice"},
		"the first reason":          {decisions: []any{decision{}, decision{Reason: "a"}, decision{Reason: "b"}}, committed: true, reason: "a"},
		"the later state":           {decisions: []any{decision{State: map[string]any{"x": 1, "y": 1}}, decision{State: map[string]any{"y": 2}}}, committed: true, state: map[string]any{"x": 1, "y": 2}},
		"revise once too often":     {decisions: []any{decision{Revise: true}}, committed: true},
		"an error fails closed":     {decisions: []any{decision{AcceptOutput: true}, errdefs.PolicyDenied.Errorf("no"), decision{State: map[string]any{"late": true}}}, err: errdefs.PolicyDenied},
		"a panic fails closed":      {decisions: []any{decision{AcceptOutput: true}, "boom"}, err: errdefs.Internal},
		"an error keeps a discard":  {decisions: []any{decision{DiscardOutput: true}, errdefs.PolicyDenied.Errorf("no")}, discarded: true, err: errdefs.PolicyDenied},
		"what it says of a failure": {fail: true, decisions: []any{decision{Reason: "sad"}}, reason: "sad"},
	} {
		t.Run(name, func(t *testing.T) {
			eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
				if c.fail {
					return b, oops
				}
				return b, nil
			})
			store, opts := journal.Memory(), []agent.RunOption(nil)
			for _, d := range c.decisions {
				opts = append(opts, agent.WithDecider(decider(d)))
			}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, asking("s", "go"), append(opts, agent.WithJournal(store))...)
			if res == nil || c.err == nil && err != nil || c.err != nil && !errors.Is(err, c.err) || res.Committed != c.committed {
				t.Fatalf("%+v %v", res, err)
			}
			want := map[string]any{"run_id": res.RunID}
			for k, v := range c.state {
				want[k] = v
			}
			if c.reason != "" {
				want["finalize_reason"] = c.reason
			}
			if c.err == nil {
				same(t, "state", want, res.State)
			}
			if end := last[journal.RunFinished](t, store, "s"); end.Committed != c.committed || end.Discarded != c.discarded {
				t.Errorf("%+v", end)
			}
		})
	}
}

func decider(d any) agent.Decider {
	switch d := d.(type) {
	case nil:
		return nil
	case agent.FinalizeDecision:
		return agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
			return d, nil
		})
	case error:
		return agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
			return agent.FinalizeDecision{AcceptOutput: true}, d
		})
	}
	return agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		panic(d)
	})
}

func TestADiscardedRunLeavesTheTranscriptButNotTheJournal(t *testing.T) {
	store := journal.Memory()
	run(t, agent.Agent{}, saying(t, "toxic"), asking("s", "go"), agent.WithJournal(store), agent.WithDecider(decider(agent.FinalizeDecision{DiscardOutput: true})))
	same(t, "transcript", []string{"user: go"}, history(state(t, store, "s").Messages))
	if got := last[journal.ModelFinished](t, store, "s").Message.Text(); got != "toxic" {
		t.Error(got)
	}
}

func TestAReviseIsAFreshAttemptWithToolsOfItsOwn(t *testing.T) {
	var w works
	store := journal.Memory()
	var attempts []string
	eng := looping(t, script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("end")}, w.tool("pay"))
	spy := describes{Engine: engine.Func(func(ctx context.Context, r engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
		attempts = append(attempts, fmt.Sprintf("%d %s %v", r.Attempt, r.Attributes["agent.attempt"], history(b.Channel(engine.MainChannel))))
		return eng.Execute(ctx, r, h, b)
	}), can: engine.Capabilities{Resume: true}}
	asked := 0
	always := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		asked++
		if res.Attempts != asked {
			t.Error(res.Attempts, asked)
		}
		return agent.FinalizeDecision{Revise: true}, nil
	})
	res := run(t, agent.Agent{}, spy, agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store), agent.WithDecider(always), agent.WithMaxRevise(3))
	same(t, "attempts", []string{"1 1 [user: go]", "2 2 [user: go]", "3 3 [user: go]"}, attempts)
	if res.Attempts != 3 || !res.Committed || res.Steps != 6 || res.Usage.Input != 60 || len(res.Messages) != 3 {
		t.Errorf("%+v", res)
	}
	want := map[string]int{"r.1/tool/c1": 1, "r.2/tool/c1_1_1": 1, "r.3/tool/c1_1_1_1": 1}
	if diff := cmp.Diff(want, w.runs); diff != "" {
		t.Error("idempotency keys:", diff)
	}
	same(t, "transcript", []string{"user: go", "assistant:  <c1_1_1_1 pay>", "tool:  [c1_1_1_1 pay did c1_1_1_1]", "assistant: end"}, history(state(t, store, "s").Messages))
	var said, started int
	for _, e := range read(t, store, "s") {
		switch e.Data.(type) {
		case journal.Said:
			said++
		case journal.RunStarted:
			started++
		}
	}
	if said != 1 || started != 3 {
		t.Error(said, started)
	}
}

func TestOnlyACompletedRunIsRevised(t *testing.T) {
	n := 0
	eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
		n++
		return b, errors.New("no")
	})
	run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithDecider(decider(agent.FinalizeDecision{Revise: true})), agent.WithMaxRevise(3))
	if n != 1 {
		t.Error(n)
	}
}

type commits func() error

func (f commits) Commit(context.Context, agent.RunInfo, *agent.Result) error { return f() }

func TestCommittersStoreWhatWasKeptInOrder(t *testing.T) {
	oops := errors.New("disk full")
	for name, c := range map[string]struct {
		discard bool
		fail    func() error
		order   string
		err     bool
	}{
		"all":          {order: "abz"},
		"not kept":     {discard: true},
		"an error":     {fail: func() error { return oops }, order: "ab", err: true},
		"a panic":      {fail: func() error { panic("boom") }, order: "ab", err: true},
		"a cancel not": {fail: func() error { return nil }, order: "abz"},
	} {
		t.Run(name, func(t *testing.T) {
			order := ""
			note := func(s string) func() error { return func() error { order += s; return nil } }
			b := note("b")
			if c.fail != nil {
				b = func() error { order += "b"; return c.fail() }
			}
			seen := &watcher{}
			ctx, cancel := context.WithCancel(t.Context())
			eng := engine.Func(func(_ context.Context, _ engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
				cancel()
				return b, nil
			})
			res, err := agent.Run(ctx, agent.Agent{ID: "a"}, eng, asking("s", "go"), agent.WithObserver(seen), agent.WithDecider(decider(agent.FinalizeDecision{DiscardOutput: c.discard, Reason: "why"})),
				agent.WithCommitter(commits(note("a"))), agent.WithCommitter(commits(b)), agent.WithCommitter(commits(note("z"))))
			if order != c.order || (err != nil) != c.err || res.Committed != (c.order == "abz") {
				t.Error(order, err, res.Committed)
			}
			if c.err {
				same(t, "reason", "commit_failed", res.State[agent.StateFinalizeReason])
			}
			same(t, "observers", []string{"start", "end completed"}, seen.log)
		})
	}
}

func TestASeederMakesTheFirstBoard(t *testing.T) {
	old := message.NewHistory(message.User("before"), message.Assistant("yes"))
	seed := func(h message.History) agent.Seeder {
		return func(_ context.Context, info agent.RunInfo, req *agent.Request) (*engine.Board, error) {
			b := agent.BoardWith(h, req)
			b.SetVar("seeded", info.RunID)
			return b, nil
		}
	}
	lost := message.Results(message.ToolResult{Call: "gone", Content: "?"})
	open := message.Assistant("", call("c9", "x", `{}`))
	for name, c := range map[string]struct {
		history message.History
		want    []string
	}{
		"a transcript of the caller's": {old, []string{"user: before", "assistant: yes", "user: go"}},
		"none":                         {message.History{}, []string{"user: go"}},
		"one that was cut in the middle of a tool use": {message.NewHistory(lost, message.Assistant("yes")), []string{"assistant: yes", "user: go"}},
		"one with an open call": {message.NewHistory(message.User("before"), open), []string{
			"user: before", "assistant:  <c9 x>", "tool:  [c9 This call has no result: it was interrupted before it was answered.]", "user: go",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			run(t, agent.Agent{}, saying(t, "the journal's own"), asking("s", "first"), agent.WithJournal(store))
			var got []string
			var vars any
			eng := engine.Func(func(ctx context.Context, r engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
				got, vars = history(b.Channel(engine.MainChannel)), b.Var("seeded")
				return saying(t, "a", "b", "c", "d").Execute(ctx, r, h, b)
			})
			res := run(t, agent.Agent{}, eng, asking("s", "go"), agent.WithJournal(store), agent.WithBoardSeed(seed(c.history)))
			same(t, "seed", c.want, got)
			if vars != res.RunID || len(res.Messages) != 1 {
				t.Error(vars, lines(res.Messages...))
			}
			same(t, "the fold and the board", history(res.LastBoard.Channel(engine.MainChannel)), history(state(t, store, "s").Messages))
			same(t, "on disk", history(state(t, disk{store}, "s").Messages), history(state(t, store, "s").Messages))
		})
	}
}

func TestASeederThatFailsKeepsTheRunFromBeginning(t *testing.T) {
	for name, s := range map[string]agent.Seeder{
		"error": func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) {
			return nil, errdefs.NotAvailable.Errorf("gone")
		},
		"nil": func(context.Context, agent.RunInfo, *agent.Request) (*engine.Board, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			store, seen := journal.Memory(), &watcher{}
			res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), asking("s", "go"), agent.WithJournal(store), agent.WithBoardSeed(s), agent.WithObserver(seen))
			if res != nil || err == nil || !strings.Contains(err.Error(), "seed board (attempt 1)") || errdefs.Of(err) == nil {
				t.Error(res, err)
			}
			if len(read(t, store, "s")) > 0 || len(seen.log) > 0 {
				t.Error("it began all the same")
			}
		})
	}
}

func TestASeededRunIsRevisedAndResumedFromItsOwnSeed(t *testing.T) {
	store := journal.Memory()
	seed := func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		return agent.BoardWith(message.NewHistory(message.User("memory")), req), nil
	}
	again := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, req *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		if req.Message.Text() != "go" || req.Inputs["k"] != "v" {
			t.Errorf("a decider sees another request: %+v", req)
		}
		return agent.FinalizeDecision{Revise: res.Attempts < 2}, nil
	})
	var w works
	eng := looping(t, script{message.Assistant("", call("c1", "x", `{}`)), message.Assistant("end")}, w.tool("x"))
	with := func(s journal.Store) []agent.RunOption {
		return []agent.RunOption{agent.WithJournal(s), agent.WithBoardSeed(seed), agent.WithDecider(again), agent.WithMaxRevise(2)}
	}
	req := asking("s", "go")
	req.Inputs = map[string]any{"k": "v"}
	_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, req, with(&dying{Store: store, n: 5})...)
	res := resume(t, agent.Agent{}, eng, "s", with(disk{store})...)
	if res.Status != agent.StatusCompleted || res.Attempts != 2 || res.LastBoard.Var("k") != "v" {
		t.Errorf("%+v", res)
	}
	same(t, "transcript", []string{"user: memory", "user: go", "assistant:  <c1_1_1 x>", "tool:  [c1_1_1 x did c1_1_1]", "assistant: end"}, history(state(t, store, "s").Messages))
}

// seeing notes the board that the engine is given.
type seeing struct {
	*loop.Engine
	boards *[]string
}

func (s seeing) Execute(ctx context.Context, run engine.Run, h engine.Host, b *engine.Board) (*engine.Board, error) {
	j, err := json.Marshal(b)
	if *s.boards = append(*s.boards, string(j)); err != nil {
		return b, err
	}
	return s.Engine.Execute(ctx, run, h, b)
}

func TestARunIsResumedAndReplayedWithTheBoardThatItBeganWith(t *testing.T) {
	seed := func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		b := agent.BoardWith(message.History{}, req)
		b.Append("notes", message.User("remember this"))
		b.SetVar("whole", 3.0)
		b.SetVar("since", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
		return b, nil
	}
	for name, opts := range map[string][]agent.RunOption{"a seeder": {agent.WithBoardSeed(seed)}, "no seeder": nil} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			var boards []string
			var w works
			eng := seeing{looping(t, script{message.Assistant("", call("c1", "x", `{}`)), message.Assistant("end")}, w.tool("x")), &boards}
			req := asking("s", "go")
			req.Inputs = map[string]any{"n": 1, "x": 1.0, "list": []any{int64(7), []byte("b")}}
			d := &dyingAt{Store: disk{store}, match: func(e journal.Entry) bool { return e.Data.Kind() == "tool.started" }}
			_, _ = agent.Run(t.Context(), agent.Agent{ID: "a"}, eng, req, append(opts, agent.WithJournal(d))...)
			resume(t, agent.Agent{}, eng, "s", agent.WithJournal(disk{store})) // its seeder is not asked again
			if _, err := agent.Replay(t.Context(), agent.Agent{ID: "a"}, eng, "s", agent.WithJournal(disk{store})); err != nil {
				t.Error(err)
			}
			if len(boards) != 3 || boards[0] != boards[1] || boards[0] != boards[2] || !strings.Contains(boards[0], `"n":1,`) || !strings.Contains(boards[0], `"x":1.0`) {
				t.Errorf("%q", boards)
			}
		})
	}
}

func TestWhatCantBeJournaledIsOnNoBoard(t *testing.T) {
	live := func(_ context.Context, _ agent.RunInfo, req *agent.Request) (*engine.Board, error) {
		b := agent.BoardWith(message.History{}, req)
		b.SetVar("conn", new(sync.Mutex))
		return b, nil
	}
	for where, c := range map[string]struct {
		inputs map[string]any
		opts   []agent.RunOption
	}{
		"the request's Inputs": {map[string]any{"conn": new(sync.Mutex)}, nil},
		"seed board":           {nil, []agent.RunOption{agent.WithBoardSeed(live)}},
	} {
		store := journal.Memory()
		req := asking("s", "go")
		req.Inputs = c.inputs
		_, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, saying(t, "hi"), req, append(c.opts, agent.WithJournal(store))...)
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), `"conn"`) {
			t.Errorf("%s: %v", where, err)
		}
		if len(read(t, store, "s")) > 0 {
			t.Errorf("%s: it began all the same", where)
		}
	}
}
