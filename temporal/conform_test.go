package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// hosted is an Engine with a worker beside it, which has the journal of the run. Runs at the same time have one worker, and it ends with the last of them: what comes then has another one at a queue of its own, for what the server
// hands to one that is ending is not seen again before its time is out.
type hosted struct {
	*temporal.Engine
	client client.Client
	inner  engine.Engine

	mu    sync.Mutex
	runs  int
	queue string
	stop  func() error

	failed error // of the worker that has stopped
}

var queues atomic.Int64

func host(c client.Client, inner engine.Engine) *hosted {
	return &hosted{Engine: temporal.NewEngine(c, inner), client: c, inner: inner}
}

func (h *hosted) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (_ *engine.Board, err error) {
	if run.Log == nil {
		return h.Engine.Execute(ctx, run, host, board)
	}
	queue, err := h.enter(&run)
	if err != nil {
		return board, err
	}
	defer func() { err = errors.Join(err, h.leave()) }()
	return temporal.NewEngine(h.client, h.inner, temporal.WithQueue(queue)).Execute(ctx, run, host, board)
}

// enter starts the worker, if there is none.
func (h *hosted) enter(run *engine.Run) (queue string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs++; h.runs > 1 {
		return h.queue, nil
	}
	h.queue = fmt.Sprint("queue-", queues.Add(1))
	w, err := temporal.NewWorker(temporal.Config{
		Client: h.client, Store: run.Log.Store(), Members: []temporal.Member{{Agent: agent.Agent{ID: "agent"}, Engine: h.inner, Options: []agent.RunOption{agent.WithDependencies(run.Deps)}}},
		Queue: h.queue, Timing: quick, Options: worker.Options{WorkerStopTimeout: 0},
	})
	if err != nil {
		h.runs--
		return "", err
	}
	work, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.failed = w.Run(work) }()
	h.stop = func() error { stop(); <-done; return h.failed }
	return h.queue, nil
}

// leave stops the worker that nobody needs any more.
func (h *hosted) leave() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs--; h.runs == 0 {
		return h.stop()
	}
	return nil
}

func TestTheLoopKeepsTheContract(t *testing.T) {
	c := devserver.Shared(t).Client(t)
	enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
		l, err := loop.New(loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}})
		if err != nil {
			t.Fatal(err)
		}
		return host(c, l)
	}, enginetest.NoBranches)
}

// program is a script that does the work, side by side where there are branches.
const program = `
def steps(branch):
    for step in range(1, STEPS + 1):
        board.set("result %d.%d" % (branch, step), tool("work", branch = branch, step = step))

if BRANCHES:
    parallel([lambda b = b: steps(b) for b in range(1, BRANCHES + 1)])
else:
    steps(0)
`

func TestAScriptKeepsTheContract(t *testing.T) {
	tier.SkipUnlessAll(t, "the contract is tried with a loop, which has tools, and a graph, which has branches")
	c := devserver.Shared(t).Client(t)
	enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
		work := tool.Func(enginetest.ToolName, "Does a step.", func(ctx context.Context, in struct {
			Branch int `json:"branch"`
			Step   int `json:"step"`
		},
		) (string, error) {
			return w.Do(ctx, enginetest.Step{Branch: in.Branch, Number: in.Step})
		})
		eng, err := script.New(script.Config{Source: fmt.Sprintf("STEPS = %d\nBRANCHES = %d\n", w.Steps(), w.Branches()) + program, Loop: loop.Config{Tools: []tool.Tool{work}}})
		if err != nil {
			t.Fatal(err)
		}
		return host(c, eng)
	}, enginetest.NoUsage)
}

// lines is a graph of functions: a node a step, and a line of them for each branch.
func lines(w *enginetest.Work) (*graph.Engine, error) {
	type place struct {
		Branch int `json:"branch"`
		Number int `json:"number"`
	}
	do := graph.Typed(func(ctx context.Context, at place, _ engine.Snapshot) (journal.Board, error) {
		result, err := w.Do(ctx, enginetest.Step{Branch: at.Branch, Number: at.Number})
		if err != nil {
			return journal.Board{}, err
		}
		return journal.Board{Append: map[string][]message.Message{"main": {message.Assistant(result)}}}, nil
	})
	d := graph.Definition{Name: "work", Entry: "begin", Nodes: []graph.Node{{ID: "begin", Type: "script", Config: map[string]any{"source": "return {'ready': True}", "outputs": []any{"ready"}}}}}
	for branch := min(1, w.Branches()); branch <= w.Branches(); branch++ {
		before := "begin"
		for n := 1; n <= w.Steps(); n++ {
			node := graph.Node{
				ID: fmt.Sprintf("step-%d-%d", branch, n), Type: "step", Config: map[string]any{"branch": branch, "number": n},
				Retry: &graph.Retry{Attempts: 3, On: []string{"timeout", "not_available"}}, Timeout: graph.Duration(time.Hour),
			}
			d.Nodes = append(d.Nodes, node)
			d.Edges = append(d.Edges, graph.Edge{From: before, To: node.ID})
			before = node.ID
		}
		d.Edges = append(d.Edges, graph.Edge{From: before, To: graph.End})
	}
	return graph.Compile(d, graph.Kinds{Types: map[string]graph.Type{"step": do}})
}

func TestAGraphKeepsTheContract(t *testing.T) {
	c := devserver.Shared(t).Client(t)
	enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
		g, err := lines(w)
		if err != nil {
			t.Fatal(err)
		}
		return host(c, g)
	}, enginetest.NoTools, enginetest.NoUsage)
}
