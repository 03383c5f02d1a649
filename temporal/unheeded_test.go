package temporal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
)

// A caller who gives up is not kept by workers that there aren't, nor by those that have another journal.
func TestACancelThatNobodyHeeds(t *testing.T) {
	c := devserver.Shared(t).Client(t)
	t.Cleanup(temporal.HeededWithin(2 * time.Second))
	m := temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: looping(t, says{message.Assistant("done")})}
	works(t, c, journal.Memory(), "elsewhere", m)
	for _, queue := range []string{"nobody", "elsewhere"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			eng, store := temporal.NewEngine(c, m.Engine, temporal.WithQueue(queue)), journal.Memory()
			order := agent.Request{ContextID: queue, RunID: "r", Message: message.User("go")}
			began := time.Now()
			res, err := agent.Run(ctx, m.Agent, eng, order, agent.WithJournal(store))
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("the caller waited %v", took)
			}
			if err != nil || !errors.Is(res.Err, context.DeadlineExceeded) {
				t.Errorf("%+v, %v", res, err)
			}
			log, err := journal.Open(t.Context(), store, queue)
			if err != nil {
				t.Fatal(err)
			}
			switch status := agent.Status(log.State().Status); status {
			case agent.StatusCanceled, agent.StatusFailed:
			default:
				t.Errorf("the run is still open: %+v", log.State())
			}
			d, err := c.DescribeWorkflowExecution(t.Context(), "pawl/"+queue+"/r/1", "")
			if err != nil || d.GetWorkflowExecutionInfo().GetCloseTime() == nil {
				t.Errorf("the workflow is still there: %v, %v", d, err)
			}
		})
	}
}
