package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// fails is a function that fails so often, and notes when it was called.
func fails(times int, class *errdefs.Class, at *[]time.Duration) graph.NodeFunc {
	began, n := time.Now(), 0
	return func(_ context.Context, b engine.Snapshot) (journal.Board, error) {
		*at = append(*at, time.Since(began))
		if n++; n <= times {
			return journal.Board{}, class.Errorf("failure %d", n)
		}
		return journal.Board{Set: journal.Vars{"tries": n, "before": b.Vars["tries"]}}, nil
	}
}

const retried = `
entry: work
vars: [tries]
nodes: [{id: work, type: func, retry: {attempts: 3, wait: 2s}, config: {func: work}}]
edges: [{from: work, to: __end__}]
`

func TestWhatFailsIsTriedAgainAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		g := compile(t, retried, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": fails(2, errdefs.RateLimit, &at)}})
		store := journal.Memory()
		board := completed(t, run(t, g, store, nil))
		if board.Var("tries") != 3 || fmt.Sprint(at) != "[0s 2s 6s]" {
			t.Error(board.Var("tries"), at)
		}
		same(t, "effects", []string{"work:visit", "work:clock/attempt-1", "work:wait/1", "work:~2:visit", "work:clock/attempt-2", "work:wait/2", "work:~3:visit", "wave/1"}, effects(t, store))
		replayed(t, g, store)
	})
}

func TestWhatAnotherAttemptWouldNotChangeIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, class := range []*errdefs.Class{errdefs.Validation, errdefs.BudgetExceeded, errdefs.PolicyDenied, errdefs.Conflict, errdefs.Internal} {
			var at []time.Duration
			g := compile(t, retried, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": fails(2, class, &at)}})
			if res := run(t, g, journal.Memory(), nil); !errors.Is(res.Err, class) || len(at) != 1 {
				t.Error(class, res.Err, at)
			}
		}
		var at []time.Duration
		g := compile(t, retried, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": fails(5, errdefs.Timeout, &at)}})
		if res := run(t, g, journal.Memory(), nil); !errdefs.Timeout.Is(res.Err) || len(at) != 3 || !strings.Contains(res.Err.Error(), "node work: failure 3") {
			t.Error(res.Err, at)
		}
	})
}

// A run that died while it waited goes on with the failure that is on record, waits for what is left, and what the failed attempt did is dropped.
func TestARetryGoesOnWhereTheProcessDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		work := fails(1, errdefs.RateLimit, &at)
		g := compile(t, retried, graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": work}})
		store := journal.Memory()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := agent.Run(ctx, agent.Agent{ID: "a"}, g, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(dying{store, ctx}))
		if err == nil && res.Status == agent.StatusCompleted {
			t.Fatal("it was cut off")
		}
		time.Sleep(500 * time.Millisecond)
		res, err = agent.Resume(t.Context(), agent.Agent{ID: "a"}, g, "s", agent.WithJournal(store))
		if err != nil {
			t.Fatal(err)
		}
		if completed(t, res).Var("tries") != 2 || time.Since(began) != 2*time.Second {
			t.Error(res.LastBoard.Var("tries"), time.Since(began))
		}
	})
}

// dying is a store that takes nothing more once a context has ended: as if the process died.
type dying struct {
	journal.Store
	ctx context.Context
}

func (d dying) Append(ctx context.Context, session string, after int64, entries ...journal.Entry) error {
	if d.ctx.Err() != nil {
		return errdefs.NotAvailable.Errorf("the process is gone")
	}
	return d.Store.Append(ctx, session, after, entries...)
}

// slow is a model that takes its time.
type slow struct{ takes time.Duration }

func (s slow) Complete(ctx context.Context, _ model.Request) (*model.Response, error) {
	select {
	case <-time.After(s.takes):
		return &model.Response{Message: message.Assistant("at last"), Stop: model.StopEnd}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s slow) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	resp, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: resp})
}

func TestANodeThatTakesTooLongFails(t *testing.T) {
	text := `
entry: talk
nodes: [{id: talk, type: model, timeout: %s, config: {prompt: hi, output: got}}]
edges: [{from: talk, to: __end__}]
`
	for timeout, want := range map[string]string{"9s": "", "3s": "node talk: talk:model/1: the node's time is over"} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			res := run(t, compile(t, fmt.Sprintf(text, timeout), graph.Kinds{Loop: loop.Config{Model: slow{5 * time.Second}}}), journal.Memory(), nil)
			switch {
			case want == "" && (res.Err != nil || res.LastBoard.Var("got") != "at last"):
				t.Error(timeout, res.Err)
			case want != "" && (!errdefs.Timeout.Is(res.Err) || !strings.Contains(res.Err.Error(), want) || time.Since(began) != 3*time.Second):
				t.Error(timeout, res.Err, time.Since(began))
			}
		})
	}
}

// What a tool came to at the end of the time counts; the step behind it fails. A cancel stays one.
func TestTimeThatIsOverEndsTheNodeAndNotMore(t *testing.T) {
	wait := tool.Func("wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	text := `
entry: sub
nodes:
- id: sub
  type: subgraph
  timeout: 3s
  config:
    graph:
      entry: one
      nodes:
      - {id: one, type: tool, config: {tool: wait, on_error: continue, output: got}}
      - {id: two, type: tool, config: {tool: wait}}
      edges: [{from: one, to: two}, {from: two, to: __end__}]
edges: [{from: sub, to: __end__}]
`
	synctest.Test(t, func(t *testing.T) {
		g := compile(t, text, graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{wait}}})
		store := journal.Memory()
		res := run(t, g, store, nil)
		if !errdefs.Timeout.Is(res.Err) || !strings.Contains(res.Err.Error(), "node sub:two") {
			t.Error(res.Err)
		}
		replayed(t, g, store)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := agent.Run(ctx, agent.Agent{ID: "a"}, g, agent.Request{Message: message.User("go")})
		if err != nil || res.Status == agent.StatusCompleted || errdefs.Timeout.Is(res.Err) {
			t.Error(err, res.Status, res.Err)
		}
	})
}

// flaky is a tool that fails so often, with a class or without one, and notes the keys of its calls.
func flaky(times int, class *errdefs.Class, keys *[]string, opts ...tool.Option) tool.Tool {
	return tool.Func("flaky", "", func(ctx context.Context, _ struct{}) (string, error) {
		*keys = append(*keys, tool.FromContext(ctx).Key)
		if len(*keys) > times {
			return "well", nil
		}
		if class == nil {
			return "", errors.New("it broke")
		}
		return "", class.Errorf("it broke")
	}, opts...)
}

const retriedTool = `
entry: work
nodes: [{id: work, type: tool, retry: {attempts: 3, on: [timeout, rate_limit], wait: 2s}, config: {tool: flaky, output: got, on_error: %s}}]
edges: [{from: work, to: __end__}]
`

func TestAToolThatMayBeRepeatedIsTriedAgainByTheClassOfItsError(t *testing.T) {
	for name, c := range map[string]struct {
		times   int
		class   *errdefs.Class
		onError string
		calls   int
		got     any // of the var
		err     string
	}{
		"it fails twice":                    {2, errdefs.RateLimit, "fail", 3, "well", ""},
		"it fails each time":                {9, errdefs.Timeout, "fail", 3, nil, "graph: node work: the tool flaky failed: it broke"},
		"it fails each time, and goes on":   {9, errdefs.Timeout, "continue", 3, "it broke", ""},
		"it fails twice, and goes on":       {2, errdefs.Timeout, "continue", 3, "well", ""},
		"another class":                     {9, errdefs.NotFound, "fail", 1, nil, "graph: node work: the tool flaky failed: it broke"},
		"another class, and it goes on":     {9, errdefs.NotFound, "continue", 1, "it broke", ""},
		"a class that is never tried again": {9, errdefs.Validation, "fail", 1, nil, "graph: node work: the tool flaky failed: it broke"},
		"no class":                          {9, nil, "fail", 1, nil, "graph: node work: the tool flaky failed: it broke"},
	} {
		for _, may := range []tool.Option{tool.ReadOnly, tool.Idempotent} {
			synctest.Test(t, func(t *testing.T) {
				var keys []string
				began := time.Now()
				g := compile(t, fmt.Sprintf(retriedTool, c.onError), graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{flaky(c.times, c.class, &keys, may)}}})
				store := journal.Memory()
				res := run(t, g, store, nil)
				switch {
				case c.err != "" && (!errdefs.Aborted.Is(res.Err) || res.Err.Error() != c.err):
					t.Errorf("%s: %v", name, res.Err)
				case c.err == "" && completed(t, res).Var("got") != c.got:
					t.Errorf("%s: %v", name, res.LastBoard.Var("got"))
				}
				if len(keys) != c.calls || len(slices.Compact(keys)) != 1 {
					t.Errorf("%s: calls with the keys %q: want %d with one key", name, keys, c.calls)
				}
				if took := time.Since(began); took != []time.Duration{0, 0, 0, 6 * time.Second}[c.calls] {
					t.Errorf("%s: %v", name, took)
				}
				replayed(t, g, store)
			})
		}
	}
}

// A refusal and a person's no are no failures of the tool.
func TestACallThatIsRefusedIsNotTriedAgain(t *testing.T) {
	for name, d := range map[string]hook.Decision{"denied": hook.Denied("no"), "rejected": hook.Asking("may I?")} {
		var keys []string
		judged := 0
		judge := hook.Middleware{Name: "judge", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
			judged++
			return d, nil
		}}
		host := engine.HostFuncs{AskUserFunc: func(_ context.Context, p engine.Prompt) (engine.Reply, error) {
			return engine.Reply{Answered: journal.Answered{ID: p.ID, Text: "no"}}, nil
		}}
		g := compile(t, fmt.Sprintf(retriedTool, "fail"), graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{flaky(1, errdefs.Timeout, &keys, tool.Idempotent)}, Hooks: []hook.Middleware{judge}}})
		if res := run(t, g, journal.Memory(), nil, agent.WithEngineHost(host)); !errdefs.Aborted.Is(res.Err) || len(keys) > 0 || judged != 1 {
			t.Error(name, res.Err, keys, judged)
		}
	}
}

// In a graph that is tried again as a whole, a tool is called anew: that is another call.
func TestACallInAGraphThatIsTriedAgainIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		var at []time.Duration
		k := graph.Kinds{Loop: loop.Config{Tools: []tool.Tool{flaky(1, errdefs.Timeout, &keys, tool.Idempotent)}}, Funcs: map[string]graph.NodeFunc{"fails": fails(1, errdefs.Timeout, &at)}}
		g := compile(t, `
entry: sub
nodes:
- id: sub
  type: subgraph
  retry: {attempts: 2}
  config:
    graph:
      entry: work
      nodes: [{id: work, type: tool, retry: {attempts: 2}, config: {tool: flaky}}, {id: end, type: func, config: {func: fails}}]
      edges: [{from: work, to: end}, {from: end, to: __end__}]
edges: [{from: sub, to: __end__}]
`, k)
		store := journal.Memory()
		completed(t, run(t, g, store, nil))
		if len(keys) != 3 || keys[0] != keys[1] || keys[1] == keys[2] {
			t.Error(keys)
		}
		replayed(t, g, store)
	})
}

// The waits between attempts are part of the node's time.
func TestTimeIsOverWhileANodeWaitsForItsNextAttempt(t *testing.T) {
	for wait, calls := range map[string]int{"2s": 2, "10s": 1} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			began := time.Now()
			g := compile(t, strings.Replace(retried, "retry: {attempts: 3, wait: 2s}", "timeout: 3s, retry: {attempts: 3, wait: "+wait+"}", 1), graph.Kinds{Funcs: map[string]graph.NodeFunc{"work": fails(9, errdefs.RateLimit, &at)}})
			store := journal.Memory()
			res := run(t, g, store, nil)
			if !errdefs.Timeout.Is(res.Err) || !strings.Contains(res.Err.Error(), "the node's time is over") || time.Since(began) != 3*time.Second || len(at) != calls {
				t.Error(wait, res.Err, time.Since(began), at)
			}
			replayed(t, g, store)
		})
	}
}
