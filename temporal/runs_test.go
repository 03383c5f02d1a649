package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/resilience"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// says is a model that gives one reply after the other, told by how many it sees: any worker's is the same.
type says []message.Message

func (s says) Complete(_ context.Context, req model.Request) (*model.Response, error) {
	n := 0
	for _, m := range req.Messages.All() {
		if m.Role() == message.RoleAssistant {
			n++
		}
	}
	if n >= len(s) {
		return nil, errdefs.Internal.Errorf("the model has no reply number %d", n)
	}
	return &model.Response{Message: s[n], Usage: model.Usage{Input: 10, Output: 5}}, nil
}

func (s says) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	r, err := s.Complete(ctx, req)
	if err != nil {
		return err
	}
	return cb(model.StreamResult{Text: r.Message.Text(), Final: true, Response: r})
}

func calls(cs ...message.ToolCall) message.Message { return message.Assistant("", cs...) }

func call(id, name, input string) message.ToolCall {
	return message.ToolCall{ID: id, Name: name, Input: input}
}

func looping(t testing.TB, m model.Model, tools ...tool.Tool) *loop.Engine {
	t.Helper()
	l, err := loop.New(loop.Config{Model: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func begin(t testing.TB, c client.Client, o temporal.Order) *temporal.Handle {
	t.Helper()
	h, err := temporal.Begin(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wait(t testing.TB, h *temporal.Handle) *temporal.Done {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := h.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pending waits until something waits for a person.
func pending(t testing.TB, store journal.Store, session string) string {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if all, err := agent.Pending(t.Context(), store, session); err == nil && len(all) > 0 {
			return all[0].ID
		}
	}
	t.Fatal("nobody was asked")
	return ""
}

// events are the events of a workflow.
func events(t testing.TB, c client.Client, id string) (all []*historypb.HistoryEvent) {
	t.Helper()
	it := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func count(all []*historypb.HistoryEvent, of enumspb.EventType) (n int) {
	for _, e := range all {
		if e.GetEventType() == of {
			n++
		}
	}
	return n
}

func TestARunThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "did it", nil })
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("done")}, work)})
	order := temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go"), Attributes: map[string]string{"user.id": "ada"}}
	h, again := begin(t, c, order), begin(t, c, order)
	d := wait(t, h)
	if d.Status != agent.StatusCompleted || d.Text != "done" || d.Err() != nil || !d.Committed || ran.Load() != 1 {
		t.Errorf("%+v, the tool ran %d times", d, ran.Load())
	}
	if twice := wait(t, again); twice.Text != d.Text || twice.Run != d.Run {
		t.Errorf("ordered twice: %+v", twice)
	}
	log, err := journal.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if st := log.State(); st.Status != "completed" || st.Messages.Len() != 4 || st.User != "ada" {
		t.Errorf("%s, %d messages, of %q", st.Status, st.Messages.Len(), st.User)
	}
	if d := wait(t, begin(t, c, order)); d.Text != "done" || ran.Load() != 1 {
		t.Errorf("ordered when it was over: %+v, the tool ran %d times", d, ran.Load())
	}
}

func TestWhatAnOrderMustHave(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{})})
	for name, o := range map[string]temporal.Order{
		"no agent": {Message: message.User("go")}, "nothing to do": {Agent: "a"}, "too large": {Agent: "a", Message: message.User(strings.Repeat("x", 600<<10))},
	} {
		if _, err := temporal.Begin(t.Context(), c, o); !errdefs.Validation.Is(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := begin(t, c, temporal.Order{Agent: "a", Message: message.User("go")})
	d := wait(t, h)
	ends(t, c, h, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
	if d.Status != agent.StatusFailed || !errdefs.Internal.Is(d.Err()) || !strings.Contains(d.Err().Error(), "no reply number 0") {
		t.Errorf("a run that failed: %+v: %v", d, d.Err())
	}
	if err := temporal.Attach(c, "s", "nobody").Interrupt(t.Context(), engine.Interrupt{Cause: engine.CauseUserCancel}); !errdefs.NotFound.Is(err) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// careful is a member whose tool needs an approval.
func careful(t testing.TB, ran *atomic.Int64) temporal.Member {
	pay := tool.Func("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran.Add(1); return "paid", nil }, tool.RequiresApproval)
	return temporal.Member{Agent: agent.Agent{ID: "careful"}, Engine: looping(t, says{calls(call("c1", "pay", "{}")), message.Assistant("done")}, pay)}
}

func TestAnAnswerComesAsAnUpdate(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	works(t, c, store, temporal.Queue, careful(t, &ran))
	h := begin(t, c, temporal.Order{Agent: "careful", Session: "s", Message: message.User("go")})
	id := pending(t, store, "s")
	if err := h.Answer(t.Context(), journal.Answered{ID: "another"}); !errdefs.Conflict.Is(err) {
		t.Errorf("an answer to nothing: %v", err)
	}
	if ran.Load() != 0 {
		t.Error("it ran before it was approved")
	}
	if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	if d := wait(t, h); d.Text != "done" || ran.Load() != 1 {
		t.Errorf("%+v, it ran %d times", d, ran.Load())
	}
	if err := h.Answer(t.Context(), journal.Answered{ID: id, Approved: true}); !errdefs.NotFound.Is(err) {
		t.Errorf("an answer when it is over: %v", err)
	}
}

func TestARunIsInterruptedAndGoesOn(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var ran atomic.Int64
	works(t, c, store, temporal.Queue, careful(t, &ran))
	h := begin(t, c, temporal.Order{Agent: "careful", Session: "s", Run: "r", Message: message.User("go")})
	id := pending(t, store, "s")
	if err := h.Interrupt(t.Context(), engine.Interrupt{Cause: engine.CauseUserInput, Detail: "wait"}); err != nil {
		t.Fatal(err)
	}
	if d := wait(t, h); d.Status != agent.StatusInterrupted || d.Cause != engine.CauseUserInput {
		t.Fatalf("%+v", d)
	}
	if err := agent.Answer(t.Context(), store, "s", journal.Answered{ID: id, Approved: true}); err != nil {
		t.Fatal(err)
	}
	h = begin(t, c, temporal.Order{Agent: "careful", Session: "s", Run: "r"})
	if d := wait(t, h); d.Text != "done" || ran.Load() != 1 {
		t.Errorf("%+v, it ran %d times", d, ran.Load())
	}
}

func TestACancelReachesTheTool(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, left := make(chan bool, 1), make(chan error, 1)
	slow := tool.Func("slow", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) {
		came <- true
		<-ctx.Done()
		left <- ctx.Err()
		return "", ctx.Err()
	})
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "slow", "{}")), message.Assistant("done")}, slow)})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Message: message.User("go")})
	<-came
	if err := h.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the tool goes on")
	}
	if d := wait(t, h); d.Status != agent.StatusCanceled {
		t.Errorf("%+v: %v", d, d.Err())
	}
	ends(t, c, h, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED)
}

// ends says how the workflow of a run has to have ended.
func ends(t testing.TB, c client.Client, h *temporal.Handle, as enumspb.WorkflowExecutionStatus) {
	t.Helper()
	d, err := c.DescribeWorkflowExecution(t.Context(), "pawl-run/"+h.Session+"/"+h.Run, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.GetWorkflowExecutionInfo().GetStatus(); got != as {
		t.Errorf("the workflow ended as %v, want %v", got, as)
	}
}

// flaky is a model that fails so often, for a reason that may pass.
type flaky struct {
	says
	fails int64
	tried *atomic.Int64
	after time.Duration
}

func (f flaky) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if f.tried.Add(1) <= f.fails {
		return nil, &model.Error{Provider: "p", Status: 429, Kind: errdefs.RateLimit, RetryAfter: f.after, Message: "slow down"}
	}
	return f.says.Complete(ctx, req)
}

func TestAModelIsTriedAgainByItsClass(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		fails int64
		most  int
		want  agent.Status
		tried int64
	}{
		"it passes": {2, 5, agent.StatusCompleted, 3}, "it does not": {100, 3, agent.StatusFailed, 4}, "never": {1, -1, agent.StatusFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, store := devserver.Shared(t).Client(t), journal.Memory()
			var tried atomic.Int64
			timing := quick
			timing.Retries = at.most
			m := model.Wrap(flaky{says{message.Assistant("done")}, at.fails, &tried, 0}, resilience.Retry(resilience.RetryPolicy{Attempts: 9, Wait: 1})) // whose own retries are off here
			worksAt(t, c, store, temporal.Queue, timing, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, m)})
			d := wait(t, begin(t, c, temporal.Order{Agent: "a", Message: message.User("go")}))
			if d.Status != at.want || tried.Load() != at.tried {
				t.Errorf("%s after %d tries: %v", d.Status, tried.Load(), d.Err())
			}
			if at.want == agent.StatusFailed && !errdefs.RateLimit.Is(d.Err()) {
				t.Errorf("its class is lost: %v", d.Err())
			}
		})
	}
}

func TestTheServiceWaitsAsLongAsTheProviderAsks(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var tried atomic.Int64
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, flaky{says{message.Assistant("done")}, 1, &tried, 3 * time.Second})})
	began := time.Now()
	if d := wait(t, begin(t, c, temporal.Order{Agent: "a", Message: message.User("go")})); d.Text != "done" || time.Since(began) < 3*time.Second {
		t.Errorf("%+v after %v", d, time.Since(began))
	}
}

// What binds a run has to be where it is done: a run that was begun with more than the worker has is refused before anything happens.
func TestACallersHooksMustBeTheWorkers(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var asked atomic.Int64
	l := looping(t, flaky{says{message.Assistant("done")}, 0, &asked, 0})
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: l})
	for name, opt := range map[string]agent.RunOption{"a budget": agent.WithBudget(&engine.Budget{Calls: 3}), "a sandbox": agent.WithSandbox(sandbox.Policy{})} {
		res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, temporal.NewEngine(c, l), agent.Request{Message: message.User("go")}, agent.WithJournal(store), opt)
		if err != nil || !errdefs.Conflict.Is(res.Err) && res.Status != agent.StatusInterrupted || asked.Load() > 0 {
			t.Errorf("%s: %v, %+v; the model was asked %d times", name, err, res.Err, asked.Load())
		}
		if !strings.Contains(fmt.Sprint(res.Err), "Member.Options") {
			t.Errorf("%s: it does not say what to do: %v", name, res.Err)
		}
	}
}

// A session that workers are at work on is nobody else's, although whoever began the run is gone.
func TestASessionAtWorkIsLeased(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	came, on := make(chan bool), make(chan bool)
	slow := tool.Func("slow", "Takes long.", func(context.Context, struct{}) (string, error) {
		came <- true
		<-on
		return "did", nil
	})
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{calls(call("c1", "slow", "{}")), message.Assistant("done")}, slow)})
	h := begin(t, c, temporal.Order{Agent: "a", Session: "s", Message: message.User("go")})
	<-came
	if res, err := agent.Run(t.Context(), agent.Agent{ID: "b"}, looping(t, says{message.Assistant("mine")}), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store)); !errdefs.Conflict.Is(err) {
		t.Errorf("another prompt began: %v, %+v", err, res)
	}
	close(on)
	if d := wait(t, h); d.Text != "done" {
		t.Errorf("%+v: %v", d, d.Err())
	}
}

// What hooks of a run share is shared in a worker, too.
func TestHooksOfARunShareValues(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var seen atomic.Int64
	h := hook.Middleware{Name: "h", PreGeneration: func(_ context.Context, g *hook.Generation) error {
		n, _ := g.Values["n"].(int)
		g.Values["n"] = n + 1
		return nil
	}, PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		n, _ := u.Values["n"].(int)
		seen.Store(int64(n))
		return hook.Decision{}, nil
	}}
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil })
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a", Hooks: []hook.Middleware{h}}, Engine: looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("done")}, work)})
	if d := wait(t, begin(t, c, temporal.Order{Agent: "a", Message: message.User("go")})); d.Text != "done" || seen.Load() != 1 {
		t.Errorf("%+v: the second hook saw %d", d, seen.Load())
	}
}

// tracer counts what it stands around.
type tracer struct{ effects, failed *atomic.Int64 }

func (tracer) TraceRun(context.Context, engine.Run) (context.Context, func(error)) { return nil, nil }

func (t tracer) TraceEffect(context.Context, engine.Run, engine.Effect) (context.Context, func(engine.Traced)) {
	return nil, func(d engine.Traced) {
		if t.effects.Add(1); d.Err != nil {
			t.failed.Add(1)
		}
	}
}

// A worker's tracers stand around the effects that it does, each attempt of them.
func TestAWorkerTracesWhatItDoes(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var tried, effects, failed atomic.Int64
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, flaky{says{message.Assistant("done")}, 1, &tried, 0}), Options: []agent.RunOption{agent.WithTracer(tracer{&effects, &failed})}}
	works(t, c, store, temporal.Queue, m)
	if d := wait(t, begin(t, c, temporal.Order{Agent: "a", Message: message.User("go")})); d.Text != "done" || failed.Load() != 1 || effects.Load() < 3 {
		t.Errorf("%+v: %d effects traced, %d of them failed", d, effects.Load(), failed.Load())
	}
}
