package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// soon waits for a run that must not take long: one that hangs fails its test.
func soon(t testing.TB, h *temporal.Handle, within time.Duration) (*temporal.Done, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return h.Wait(ctx)
}

func short(events int) temporal.Timing { t := quick; t.Events = events; return t }

// failing is a model that fails.
type failing struct{ err error }

func (f failing) Complete(context.Context, model.Request) (*model.Response, error) { return nil, f.err }

func (f failing) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return f.err
}

// A message to the service with bytes that are no UTF-8 is never sent: what failed with them must not be tried for ever.
func TestErrorsOfAnyTextEndTheRun(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	for name, text := range map[string]string{"bytes": "bad \xff\xfe text", "cut within a letter": "x" + strings.Repeat("é", 20_000), "huge": strings.Repeat("x", 5<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works(t, c, store, "q"+name, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, failing{errdefs.Validation.Errorf("%s", text)})})
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "x" + name, Run: "r", Queue: "q" + name, Message: message.User("go")}), 15*time.Second)
			if err != nil || !errdefs.Validation.Is(d.Err()) {
				t.Fatalf("%+v %v", d, err)
			}
		})
	}
}

// A call may have a name that is too long to be part of a workflow's.
func TestTheNamesThatModelsGiveCalls(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil })
	id := strings.Repeat("i", 1200)
	ann := kid(t, "ann", says{message.Assistant("ann did")})
	for name, m := range map[string]temporal.Member{
		"a call":                   family(t, says{calls(call(id, "work", "{}")), message.Assistant("end")}, agent.Subagents{ann}, work),
		"a task":                   family(t, says{calls(gives(id, "ann", "do", false)), message.Assistant("end")}, agent.Subagents{ann}),
		"a task in the background": family(t, says{calls(gives(id, "ann", "do", true)), message.Assistant("mid"), message.Assistant("end")}, agent.Subagents{ann}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works(t, c, store, "ql"+name, m)
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "parent", Session: "l" + name, Run: "r", Queue: "ql" + name, Message: message.User("go")}), 15*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if d.Err() != nil || d.Text != "end" && d.Text != "mid" {
				t.Errorf("%+v: %v", d, d.Err())
			}
		})
	}
}

func TestAScriptReckonsForASecondAndMore(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	rounds := 1_500_000
	if raced.Enabled { // the detector makes each take about ten times as long
		rounds = 200_000
	}
	eng, err := script.New(script.Config{Source: fmt.Sprintf(`
def f():
    n = 0
    for i in range(%d):
        n += i
    return n
board.set("n", f())
`, rounds), Limits: script.Limits{Steps: 100_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng})
	d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")}), 25*time.Second)
	if err != nil || d.Err() != nil {
		t.Errorf("%+v %v", d, err)
	}
}

// A model or a hook that panics, or ends its goroutine, fails the run at once or denies the call, and lets no tool through; a tool's call has that as its outcome.
func TestWhatEndsAGoroutineOrPanics(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "did it", nil }, tool.Idempotent)
	var ran atomic.Int64
	fine := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "did it", nil }, tool.Idempotent)
	m := says{calls(call("c1", "work", "{}")), message.Assistant("end")}
	hooked := func(h hook.Middleware) engine.Engine {
		l, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{fine}, Hooks: []hook.Middleware{h}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, e := range map[string]engine.Engine{
		"tool":  looping(t, m, work),
		"panic": hooked(hook.Middleware{Name: "h", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) { panic("oh") }}),
		"exit": hooked(hook.Middleware{Name: "h", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
			runtime.Goexit()
			return hook.Decision{}, nil
		}}),
		"model": looping(t, exiting{}, fine),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works(t, c, store, "qe"+name, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: e})
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "e" + name, Run: "r", Queue: "qe" + name, Message: message.User("go")}), 15*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if failed := d.Status == agent.StatusFailed; failed != (name == "model" || name == "exit") || ran.Load() != 0 {
				t.Errorf("%+v: %v; the tool ran %d times", d, d.Err(), ran.Load())
			}
		})
	}
}

// exiting is a model that ends its goroutine.
type exiting struct{}

func (exiting) Complete(context.Context, model.Request) (*model.Response, error) {
	runtime.Goexit()
	return nil, nil
}

func (exiting) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	runtime.Goexit()
	return nil
}

// An order whose run has ended is given again, while another run of its session waits for a person, and after that.
func TestAnOrderThatIsOverLeavesOtherRunsAlone(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "did it", nil }, tool.RequiresApproval)
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{message.Assistant("first"), calls(call("c1", "work", "{}")), message.Assistant("second")}, work)})
	one := temporal.Order{Agent: "a", Session: "s", Run: "r1", Message: message.User("go")}
	if d := wait(t, begin(t, c, one)); d.Text != "first" {
		t.Fatal(d)
	}
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r2", Message: message.User("go on")})
	id := pending(t, store, "s")
	d, err := soon(t, begin(t, c, one), 15*time.Second)
	if err != nil || d.Text != "first" {
		t.Errorf("ordered again: %+v, %v", d, err)
	}
	if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); err != nil {
		t.Error(err)
	}
	if d := wait(t, h); d.Text != "second" || ran.Load() != 1 {
		t.Errorf("%+v: %v", d, d.Err())
	}
	if d := wait(t, begin(t, c, one)); d.Text != "first" {
		t.Errorf("ordered once more: %+v", d)
	}
}

// panicky is a host that panics when it is to ask.
type panicky struct{ engine.NoopHost }

func (panicky) AskUser(context.Context, engine.Prompt) (engine.Reply, error) { panic("oh") }

// refusing is one that can't.
type refusing struct{ engine.NoopHost }

func (refusing) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{}, errors.New("broken terminal")
}

// It fails the run, as one that is done here, which would wait for ever.
func TestAHostThatCannotAsk(t *testing.T) {
	t.Parallel()
	c := devserver.Shared(t).Client(t)
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil }, tool.RequiresApproval)
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("second")}, work)}
	for name, host := range map[string]engine.Host{"panics": panicky{}, "fails": refusing{}} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			res, err := agent.Run(t.Context(), m.Agent, m.Engine, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
			if err != nil || res.Status != agent.StatusFailed {
				t.Fatalf("locally: %+v %v", res, err)
			}
			store = journal.Memory()
			works(t, c, store, "qh"+name, m)
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			got, err := agent.Run(ctx, m.Agent, temporal.NewEngine(c, m.Engine, temporal.WithQueue("qh"+name)), agent.Request{ContextID: "h" + name, Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
			if err != nil || got.Status != res.Status || got.Err.Error() != res.Err.Error() {
				t.Errorf("temporal: %+v %v", got, err)
			}
		})
	}
}

func TestAnInterruptWhileAWorkflowIsAboutToGoOnInANewOne(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, on := make(chan bool, 1), make(chan bool)
	var after atomic.Int64
	slow := tool.Func("slow", "Takes long.", func(context.Context, struct{}) (string, error) { came <- true; <-on; return "did", nil })
	fast := tool.Func("fast", "Fast.", func(context.Context, struct{}) (string, error) { return "did", nil })
	late := tool.Func("late", "Comes late.", func(context.Context, struct{}) (string, error) { after.Add(1); return "did", nil })
	eng, err := script.New(script.Config{Source: `
def a():
    for i in range(20):
        tool("fast")
def b():
    tool("slow")
    tool("late")
parallel([a, b])
`, Loop: loop.Config{Tools: []tool.Tool{slow, fast, late}}})
	if err != nil {
		t.Fatal(err)
	}
	worksAt(t, c, store, temporal.Queue, short(40), temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})
	<-came
	for n := 0; ; time.Sleep(100 * time.Millisecond) { // until the other branch is at its end
		m := len(events(t, c, "pawl/s/r/1"))
		if m == n {
			break
		}
		n = m
	}
	if err := h.Interrupt(t.Context(), engine.Interrupt{Cause: engine.CauseUserInput}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	close(on)
	d, err := soon(t, h, 20*time.Second)
	if err != nil || d.Status != agent.StatusInterrupted || after.Load() != 0 {
		t.Errorf("%+v %v, late: %d", d, err, after.Load())
	}
}

// Each look at the journal for an answer makes the history longer.
func TestTheHistoryOfARunThatLooksOften(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil }, tool.RequiresApproval)
	worksAt(t, c, store, temporal.Queue, short(60), temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("end")}, work)})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})
	id := pending(t, store, "s")
	for range 15 {
		if err := c.SignalWorkflow(t.Context(), "pawl/s/r/1", "", "pawl.answered", "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n := len(events(t, c, "pawl/s/r/1")); n > 100 {
		t.Errorf("%d events", n)
	}
	if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if d, err := soon(t, h, 15*time.Second); err != nil || d.Text != "end" {
		t.Errorf("%+v %v", d, err)
	}
}

// The gate that a run was begun with binds it, whoever does its effects: also a worker whose agent has another one.
func TestTheCallersGateBindsEveryWorker(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var paid atomic.Int64
	read := tool.Func("read", "Reads.", func(_ context.Context, _ struct {
		N int `json:"n"`
	},
	) (string, error) {
		return "read", nil
	})
	careful := tool.Func("careful", "Asks.", func(context.Context, struct{}) (string, error) { return "did", nil }, tool.RequiresApproval)
	pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { paid.Add(1); return "paid", nil })
	var m says
	for i := range 6 {
		m = append(m, calls(call(fmt.Sprint("r", i), "read", fmt.Sprintf(`{"n":%d}`, i))))
	}
	eng := looping(t, append(m, calls(call("q", "careful", "{}")), calls(call("p", "pay", "{}")), message.Assistant("end")), read, careful, pay)
	ag := agent.Agent{ID: "a", Tools: []string{"read", "careful"}}
	start := func(ag agent.Agent) func() {
		w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: ag, Engine: eng}}, Timing: short(30), Options: worker.Options{StickyScheduleToStartTimeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := start(ag)
	over := make(chan *agent.Result, 1)
	go func() {
		res, err := agent.Run(t.Context(), ag, temporal.NewEngine(c, eng), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(patient{}))
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	id := pending(t, store, "s")
	stop()
	stop = start(agent.Agent{ID: "a"})
	defer func() { stop() }()
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if res := <-over; res.Text() != "end" || paid.Load() != 0 {
		t.Errorf("%+v, paid %d times", res, paid.Load())
	}
}

// patient is a host that asks, and gets no answer.
type patient struct{ engine.NoopHost }

func (patient) AskUser(ctx context.Context, _ engine.Prompt) (engine.Reply, error) {
	<-ctx.Done()
	return engine.Reply{}, ctx.Err()
}

// It is stopped by a later call of the same run, and the history gets long before that.
func TestACallInTheBackgroundThatWaitsForThePath(t *testing.T) {
	t.Parallel()
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

// A worker that has not the run's member takes a task of it, as old ones do while new ones are started: another worker has it.
func TestAWorkerWithoutTheMemberFailsNoRun(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	m := temporal.Member{Agent: agent.Agent{ID: "new"}, Engine: looping(t, answers("end"))}
	start := func(m temporal.Member) func() {
		w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{m}, Timing: quick})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stop := start(temporal.Member{Agent: agent.Agent{ID: "old"}, Engine: m.Engine})
	over := make(chan *agent.Result, 1)
	go func() {
		res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, m.Engine), agent.Request{ContextID: "s", RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
		if err != nil {
			t.Error(err)
		}
		over <- res
	}()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		d, err := c.DescribeWorkflowExecution(t.Context(), "pawl/s/r/1", "")
		if err == nil && (d.GetPendingWorkflowTask().GetAttempt() > 1 || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING) {
			break
		}
	}
	defer start(m)()
	stop()
	select {
	case res := <-over:
		if res.Text() != "end" {
			t.Errorf("%+v", res)
		}
	case <-time.After(30 * time.Second):
		t.Error("it does not go on")
	}
}
