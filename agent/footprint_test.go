//go:build !race

package agent_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// parking is a model that asks for a tool, and then keeps each of its callers waiting.
type parking struct{ came, leave chan struct{} }

func (p parking) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, fmt.Errorf("it is asked for a stream")
}

func (p parking) CompleteStream(_ context.Context, req model.Request, cb model.StreamHandler) error {
	reply, stop := message.Assistant("a", call("c", "x", `{}`)), model.StopTools
	if req.Messages.Len() > 1 {
		p.came <- struct{}{}
		<-p.leave
		reply, stop = message.Assistant("end"), model.StopEnd
	}
	if err := cb(model.StreamResult{Text: reply.Text()}); err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: reply, Stop: stop}})
}

// A goroutine's stack has twice the size when it was too small once: what stands deep in it must not have large frames. (The race detector makes all of them larger.)
func TestARunThatWaitsForItsModelHasAStackOf16KB(t *testing.T) {
	const many = 400
	p := parking{make(chan struct{}, many), make(chan struct{})}
	x := tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	eng, err := loop.New(loop.Config{Model: p, Tools: []tool.Tool{x}})
	if err != nil {
		t.Fatal(err)
	}
	host := engine.HostFuncs{PublishFunc: func(context.Context, event.Event) error { return nil }}
	stacks := func() uint64 {
		runtime.GC()
		s := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before := stacks()
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, asking(fmt.Sprint("s", i), "go"), agent.WithEngineHost(host))
			if err != nil || res.Text() != "end" {
				t.Error(res, err)
			}
		})
	}
	for range many {
		<-p.came
	}
	each := float64(stacks()-before) / many / 1024
	close(p.leave)
	all.Wait()
	t.Logf("%.1f KB of stack a run", each)
	if each > 20 { // the next size is 32; what ran its tools may have left a little
		t.Errorf("%.1f KB of stack for a run that waits for its model, want 16", each)
	}
}

// Who keeps a Result keeps what was said, and not the journal, the run, or what was sent.
func TestAResultHoldsWhatWasSaidAndLittleElse(t *testing.T) {
	const many, steps = 200, 10
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	run := runs(t, steps)
	run() // what is made once
	least := math.Inf(1)
	for range 5 {
		held := make([]*agent.Result, many)
		before := heap()
		for i := range held {
			held[i] = run()
		}
		least = min(least, float64(heap()-before)/many)
		runtime.KeepAlive(held)
	}
	t.Logf("%.0f bytes a Result", least)
	if least > 4500 { // half of it are the results of tools; the journal alone would be 8 KB more
		t.Errorf("a Result of %d steps, without the replies that all of them share, holds %.0f bytes", steps, least)
	}
}
