package temporal_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// hosted is an Engine with a worker beside it, which has the journal of the run.
type hosted struct {
	*temporal.Engine
	client client.Client
	inner  engine.Engine
	queue  string
	once   sync.Once
	stop   func()
}

var queues atomic.Int64

func host(t *testing.T, c client.Client, inner engine.Engine) *hosted {
	h := &hosted{client: c, inner: inner, queue: fmt.Sprint("queue-", queues.Add(1))}
	h.Engine = temporal.NewEngine(c, inner, temporal.WithQueue(h.queue))
	return h
}

func (h *hosted) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if run.Log == nil {
		return h.Engine.Execute(ctx, run, host, board)
	}
	w, err := temporal.NewWorker(temporal.Config{
		Client: h.client, Store: run.Log.Store(), Members: []temporal.Member{{Agent: agent.Agent{ID: "agent"}, Engine: h.inner, Options: []agent.RunOption{agent.WithDependencies(run.Deps)}}},
		Queue: h.queue, Timing: quick, Options: worker.Options{WorkerStopTimeout: 0},
	})
	if err != nil {
		return board, err
	}
	work, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(work) }()
	defer func() { stop(); <-done }()
	return h.Engine.Execute(ctx, run, host, board)
}

func TestTheLoopKeepsTheContract(t *testing.T) {
	c := devserver.Start(t).Client(t)
	enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
		l, err := loop.New(loop.Config{Model: w.Model(), Tools: []tool.Tool{w.Tool()}})
		if err != nil {
			t.Fatal(err)
		}
		return host(t, c, l)
	}, enginetest.NoBranches)
}
