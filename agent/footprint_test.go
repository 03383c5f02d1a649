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
	"github.com/pawl-dev/pawl/journal"
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

// heap is what is held on it.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// pacing is a parking model that asks for a tool some times before.
type pacing struct {
	parking
	steps int
}

func (p pacing) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	n := req.Messages.Len() / 2
	if n >= p.steps {
		return p.parking.CompleteStream(ctx, req, cb)
	}
	reply := message.Assistant("a", call(fmt.Sprint("c", n), "x", `{}`))
	if err := cb(model.StreamResult{Text: "a"}); err != nil {
		return err
	}
	return cb(model.StreamResult{Final: true, Response: &model.Response{Message: reply, Stop: model.StopTools}})
}

func (p pacing) engine(t *testing.T) engine.Engine {
	x := tool.Func("x", "", func(context.Context, struct{}) (string, error) { return "ok", nil })
	eng, err := loop.New(loop.Config{Model: p, Tools: []tool.Tool{x}, Limits: loop.Limits{Steps: -1, Repeats: -1}})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// What a run holds while it waits is there twice, for the collector lets the heap grow to double what is alive.
func TestARunUnderWayHoldsLittleBesideWhatWasSaidAndDone(t *testing.T) {
	const many, steps = 200, 10
	p := pacing{parking{make(chan struct{}, many), make(chan struct{})}, steps}
	eng := p.engine(t)
	host := engine.HostFuncs{PublishFunc: func(context.Context, event.Event) error { return nil }}
	underWay := func() float64 {
		before := heap()
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
		each := float64(heap()-before) / many
		for range many {
			p.leave <- struct{}{}
		}
		all.Wait()
		return each
	}
	least := underWay()
	for range 4 {
		least = min(least, underWay())
	}
	t.Logf("%.0f bytes a run", least)
	if least > 24_400 {
		t.Errorf("a run of %d steps holds %.0f bytes while it waits", steps, least)
	}
}

func TestASessionInMemoryTakesLittleBesideWhatWasSaidAndDone(t *testing.T) {
	const many, steps = 200, 10
	p := pacing{parking{make(chan struct{}, 6*many), make(chan struct{})}, steps}
	close(p.leave)
	eng := p.engine(t)
	host := engine.HostFuncs{PublishFunc: func(context.Context, event.Event) error { return nil }}
	sessions := func() float64 {
		store, before := journal.Memory(), heap()
		for i := range many {
			if res := run(t, agent.Agent{}, eng, asking(fmt.Sprint("s", i), "go"), agent.WithJournal(store), agent.WithEngineHost(host)); res.Text() != "end" {
				t.Fatal(res)
			}
		}
		each := float64(heap()-before) / many
		runtime.KeepAlive(store)
		return each
	}
	least := sessions()
	for range 4 {
		least = min(least, sessions())
	}
	t.Logf("%.0f bytes a session", least)
	if least > 14_200 { // two thirds of it are the data of its 54 entries, and the messages in them
		t.Errorf("a session of %d steps takes %.0f bytes", steps, least)
	}
}

// Who keeps a Result keeps what was said, and not the journal, the run, or what was sent.
func TestAResultHoldsWhatWasSaidAndLittleElse(t *testing.T) {
	const many, steps = 200, 10
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
	if least > 3200 { // half of it are the results of tools; the journal alone would be 5 KB more
		t.Errorf("a Result of %d steps, without the replies that all of them share, holds %.0f bytes", steps, least)
	}
}
