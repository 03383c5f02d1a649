package temporal_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

func soon(t testing.TB, h *temporal.Handle, within time.Duration) (*temporal.Done, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return h.Wait(ctx)
}

// failing is a model that fails.
type failing struct{ err error }

func (f failing) Complete(context.Context, model.Request) (*model.Response, error) { return nil, f.err }
func (f failing) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	return f.err
}

func dump(t testing.TB, c client.Client, id string) {
	defer func() { _ = recover() }()
	for _, e := range events(t, c, id) {
		t.Logf("%d %v %.600s", e.GetEventId(), e.GetEventType(), e.String())
	}
}

func TestXErrorsOfAnyText(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	for name, text := range map[string]string{"bytes": "bad \xff\xfe text", "cut": strings.Repeat("é", 20000) + "x", "cut2": "x" + strings.Repeat("é", 20000), "huge": strings.Repeat("x", 5<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works(t, c, store, "q"+name, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, failing{errdefs.Validation.Errorf("%s", text)})})
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "x" + name, Run: "r", Queue: "q" + name, Message: message.User("go")}), 15*time.Second)
			if err != nil || !errdefs.Validation.Is(d.Err()) {
				dump(t, c, "pawl/x"+name+"/r/1")
				t.Fatalf("%+v %v", d, err)
			}
		})
	}
}

func TestXLongCalls(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil })
	id := strings.Repeat("i", 1200)
	kidd := kid(t, "ann", says{message.Assistant("ann did")})
	for name, m := range map[string]temporal.Member{
		"tool": family(t, says{calls(call(id, "work", "{}")), message.Assistant("end")}, agent.Subagents{kidd}, work),
		"task": family(t, says{calls(gives(id, "ann", "do", false)), message.Assistant("end")}, agent.Subagents{kidd}),
		"back": family(t, says{calls(gives(id, "ann", "do", true)), message.Assistant("mid"), message.Assistant("end")}, agent.Subagents{kidd}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			works(t, c, store, "ql"+name, m)
			d, err := soon(t, begin(t, c, temporal.Order{Agent: "parent", Session: "l" + name, Run: "r", Queue: "ql" + name, Message: message.User("go")}), 15*time.Second)
			if err != nil {
				dump(t, c, "pawl/l"+name+"/r/1")
				t.Fatalf("%+v %v", d, err)
			}
			t.Logf("%+v %v", d, d.Err())
		})
	}
}

func TestXLongScript(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	eng, err := script.New(script.Config{Source: `
def f():
    n = 0
    for i in range(30000000):
        n += i
    return n
board.set("n", f())
`, Limits: script.Limits{Steps: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng})
	began := time.Now()
	d, err := soon(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")}), 25*time.Second)
	t.Log(time.Since(began), d, err)
	if err != nil {
		dump(t, c, "pawl/s/r/1")
		t.Fatal()
	}
}

func TestXGoexit(t *testing.T) {
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "did it", nil }, tool.Idempotent)
	fine := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil }, tool.Idempotent)
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
				dump(t, c, "pawl/e"+name+"/r/1")
				t.Fatalf("%+v %v", d, err)
			}
			t.Logf("%+v %v", d, d.Err())
		})
	}
}

type exiting struct{}

func (exiting) Complete(context.Context, model.Request) (*model.Response, error) {
	runtime.Goexit()
	return nil, nil
}
func (exiting) CompleteStream(context.Context, model.Request, model.StreamHandler) error {
	runtime.Goexit()
	return nil
}

// An order that came to its end is ordered again while another run of its session waits for a person.
func TestXReorder(t *testing.T) {
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
	time.Sleep(300 * time.Millisecond)
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

type panicky struct{ engine.NoopHost }

func (panicky) AskUser(context.Context, engine.Prompt) (engine.Reply, error) { panic("oh") }

type refusing struct{ engine.NoopHost }

func (refusing) AskUser(context.Context, engine.Prompt) (engine.Reply, error) {
	return engine.Reply{}, errors.New("broken terminal")
}

func TestXAHostThatCannotAsk(t *testing.T) {
	c := devserver.Shared(t).Client(t)
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil }, tool.RequiresApproval)
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("second")}, work)}
	for name, host := range map[string]engine.Host{"panics": panicky{}, "fails": refusing{}} {
		t.Run(name, func(t *testing.T) {
			store := journal.Memory()
			res, err := agent.Run(t.Context(), m.Agent, m.Engine, agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
			t.Logf("local: %+v %v", res, err)
			store = journal.Memory()
			works(t, c, store, "qh"+name, m)
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			got, err := agent.Run(ctx, m.Agent, temporal.NewEngine(c, m.Engine, temporal.WithQueue("qh"+name)), agent.Request{ContextID: "h" + name, Message: message.User("go")}, agent.WithJournal(store), agent.WithEngineHost(host))
			if ctx.Err() != nil || got.Status != res.Status {
				t.Errorf("temporal: %+v %v", got, err)
			}
		})
	}
}
