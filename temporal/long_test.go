package temporal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// A run of a thousand steps whose results are 20 MB: no history of a workflow has more than 10,000 events or 5 MB, for it has none of what was said.
func TestALongRunHasShortHistories(t *testing.T) {
	steps, events := 1000, 0
	if testing.Short() {
		steps, events = 60, 300
	}
	server := devserver.Shared(t)
	c := server.Client(t)
	store := journal.Memory()
	eng, err := loop.New(loop.Config{Model: stepping(steps), Limits: loop.Limits{Steps: -1, Repeats: -1}, Tools: []tool.Tool{tool.Func("work", "Works.", func(context.Context, struct {
		Step int `json:"step"`
	}) (string, error) {
		return strings.Repeat("a result ", 20<<10/9), nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng}
	timing := quick
	timing.Events = events
	worksAt(t, c, store, "q", timing, m)
	began := time.Now()
	res, err := agent.Run(t.Context(), m.Agent, temporal.NewEngine(c, eng, temporal.WithQueue("q")), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store))
	if err != nil || res.Err != nil || res.Text() != "done" || res.Steps != steps+1 {
		t.Fatal(err, res.Err, res.Text(), res.Steps)
	}
	took := time.Since(began)
	all, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	var most, bytes int64
	for _, e := range all.GetExecutions() {
		d, err := c.DescribeWorkflowExecution(t.Context(), e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId())
		if err != nil {
			t.Fatal(err)
		}
		most, bytes = max(most, d.GetWorkflowExecutionInfo().GetHistoryLength()), max(bytes, d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
	}
	t.Logf("%v: %d steps, %d histories, of at most %d events and %d KB", took.Round(time.Second), steps, len(all.GetExecutions()), most, bytes>>10)
	if len(all.GetExecutions()) < 2 || most > 10_000 || bytes > 5<<20 {
		t.Error("the histories are too long, or there is one only")
	}
}
