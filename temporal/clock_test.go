package temporal_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// A script's time is that of the workflow: its end cancels what is under way, and is the script's error.
func TestAScriptsTimeIsTheWorkflows(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	left := make(chan bool, 1)
	slow := tool.Func("slow", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		left <- true
		return "", ctx.Err()
	})
	eng, err := script.New(script.Config{Source: `tool("slow")`, Loop: loop.Config{Tools: []tool.Tool{slow}}, Limits: script.Limits{Time: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng})
	d := wait(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")}))
	if !errdefs.BudgetExceeded.Is(d.Err()) {
		t.Errorf("%+v: %v", d, d.Err())
	}
	<-left
	if n := count(events(t, c, "pawl/s/r/1"), enumspb.EVENT_TYPE_TIMER_FIRED); n != 1 {
		t.Errorf("%d timers fired", n)
	}
}

// A subagent's time, too, and the parent goes on.
func TestASubagentsTimeIsTheWorkflows(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	slow := tool.Func("slow", "Takes long.", func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	ann := kid(t, "ann", says{calls(call("p1", "slow", "{}")), message.Assistant("ann did")}, slow)
	ann.Timeout = time.Second
	works(t, c, store, temporal.Queue, family(t, says{calls(gives("c1", "ann", "do", false)), message.Assistant("end")}, agent.Subagents{ann}))
	if d := wait(t, begin(t, c, temporal.Order{Agent: "parent", Session: "s", Run: "r", Message: message.User("go")})); d.Text != "end" {
		t.Errorf("%+v: %v", d, d.Err())
	}
	log, err := journal.Open(t.Context(), store, "s/c1")
	if err != nil {
		t.Fatal(err)
	}
	if st := log.State(); st.Run != "" || st.Class != errdefs.BudgetExceeded.Error() {
		t.Errorf("the task ended as %s, %s: %s", st.Status, st.Class, st.Error)
	}
}

// What a graph waits for before it tries again is a timer, and no worker waits with it.
func TestAGraphsPauseIsATimer(t *testing.T) {
	t.Parallel()
	c, store := devserver.Shared(t).Client(t), journal.Memory()
	var tried atomic.Int64
	try := graph.Typed(func(context.Context, struct{}, engine.Snapshot) (journal.Board, error) {
		if tried.Add(1) == 1 {
			return journal.Board{}, errdefs.NotAvailable.Errorf("not now")
		}
		return journal.Board{Append: map[string][]message.Message{"main": {message.Assistant("done")}}}, nil
	})
	g, err := graph.Compile(graph.Definition{
		Name: "g", Entry: "n", Nodes: []graph.Node{{ID: "n", Type: "try", Retry: &graph.Retry{Attempts: 3, On: []string{"not_available"}, Wait: graph.Duration(time.Second)}}}, Edges: []graph.Edge{{From: "n", To: graph.End}},
	}, graph.Kinds{Types: map[string]graph.Type{"try": try}})
	if err != nil {
		t.Fatal(err)
	}
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: g})
	began := time.Now()
	if d := wait(t, begin(t, c, temporal.Order{Agent: "a", Session: "s", Run: "r", Message: message.User("go")})); d.Text != "done" || tried.Load() != 2 || time.Since(began) < 900*time.Millisecond {
		t.Errorf("%+v: %v; tried %d times in %v", d, d.Err(), tried.Load(), time.Since(began))
	}
	if n := count(events(t, c, "pawl/s/r/1"), enumspb.EVENT_TYPE_TIMER_FIRED); n != 1 {
		t.Errorf("%d timers fired", n)
	}
}
