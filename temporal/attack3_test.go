package temporal_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

func TestXBackgroundWaitsForThePath(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	on := make(chan bool)
	var dug atomic.Int64
	dig := tool.Func("dig", "Digs.", func(ctx context.Context, _ struct{}) (tool.Result, error) {
		if !tool.FromContext(ctx).Background {
			return tool.Result{Content: "digging", Background: true}, nil
		}
		dug.Add(1)
		select {
		case <-on:
		case <-ctx.Done():
		}
		return tool.Result{Content: "dug it up"}, nil
	})
	stop := tool.Func("stop", "Stops it.", func(context.Context, struct{}) (string, error) { close(on); return "stopped", nil })
	m := says{calls(call("c1", "dig", "{}"))}
	for i := range 3 {
		m = append(m, calls(call(fmt.Sprint("l", i), "look", fmt.Sprintf(`{"n":%d}`, i))))
	}
	look := tool.Func("look", "Looks.", func(_ context.Context, _ struct {
		N int `json:"n"`
	},
	) (string, error) {
		return "seen", nil
	})
	m = append(m, calls(call("s", "stop", "{}")), message.Assistant("waiting"), message.Assistant("end"))
	worksAt(t, c, store, temporal.Queue, short(40), temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, m, dig, look, stop)})
	d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")}), 15*time.Second)
	if err != nil || d.Status != agent.StatusCompleted || dug.Load() != 1 {
		t.Errorf("%+v %v", d, err)
	}
}

// A worker without the member takes tasks from the same queue.
func TestXAWorkerWithoutTheMember(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var m says
	for i := range 4 {
		m = append(m, calls(call(fmt.Sprint("l", i), "look", fmt.Sprintf(`{"n":%d}`, i))))
	}
	look := tool.Func("look", "Looks.", func(_ context.Context, _ struct {
		N int `json:"n"`
	},
	) (string, error) {
		return "seen", nil
	})
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "old"}, Engine: looping(t, answers("hi"))})
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, append(m, message.Assistant("end")), look)})
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: fmt.Sprint("s", i), Run: "r", Message: message.User("go")}), 40*time.Second)
			if err != nil || d.Text != "end" {
				t.Errorf("%+v %v", d, err)
			}
		})
	}
	all.Wait()
}

// worst is a host that panics wherever it can.
type worst struct{ engine.NoopHost }

func (worst) Listening() bool                                     { return true }
func (worst) Publish(context.Context, event.Event) error          { panic("publish") }
func (worst) Checkpoint(context.Context, engine.Checkpoint) error { panic("checkpoint") }
func (worst) Interrupts() <-chan engine.Interrupt                 { panic("interrupts") }

func TestXAHostThatPanics(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, answers("end"))}
	works(t, c, store, temporal.Queue, m)
	res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(worst{}))
	if err != nil || res.Text() != "end" {
		t.Errorf("%+v %v", res, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err = agent.Run(ctx, m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s2", Message: message.User("go")}, agent.WithJournal(store))
	t.Log(res, err)
}

// Two programs resume a run at the same time, and many do.
func TestXManyResume(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) {
		ran.Add(1)
		time.Sleep(100 * time.Millisecond)
		return "did it", nil
	}, tool.RequiresApproval)
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}"), call("c2", "work", "{}")), message.Assistant("end")}, work)}
	works(t, c, store, temporal.Queue, m)
	res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store))
	if err != nil || res.Status != agent.StatusInterrupted {
		t.Fatal(res, err)
	}
	var all sync.WaitGroup
	var ended atomic.Int64
	for i := range 6 {
		all.Go(func() {
			opts := []agent.RunOption{agent.WithJournal(store), agent.WithEngineHost(yes{})}
			if i%2 == 0 {
				opts = append(opts, agent.WithWait())
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			res, err := agent.Resume(ctx, m.Agent, temporal.NewEngine(c, m.Engine), "s", opts...)
			if err == nil && res.Text() == "end" {
				ended.Add(1)
			} else if ctx.Err() != nil {
				t.Error("it hangs")
			}
			t.Log(res, err)
		})
	}
	all.Wait()
	if ran.Load() != 2 || ended.Load() == 0 {
		t.Errorf("ran %d times, %d ends", ran.Load(), ended.Load())
	}
}

type yes struct{ engine.NoopHost }

func (yes) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{Answered: journal.Answered{Approved: true}}, nil
}
