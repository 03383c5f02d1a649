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
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		store, over := journal.Memory(), make(chan *agent.Result, 1)
		go func() {
			res, err := agent.Run(ctx, m.Agent, temporal.NewEngine(c, m.Engine, temporal.WithQueue(queue)), agent.Request{ContextID: queue, RunID: "r", Message: message.User("go")}, agent.WithJournal(store))
			if err != nil {
				t.Error(err)
			}
			over <- res
		}()
		select {
		case res := <-over:
			if res == nil || !errors.Is(res.Err, context.DeadlineExceeded) {
				t.Errorf("%s: %+v", queue, res)
			}
			if log, err := journal.Open(t.Context(), store, queue); err != nil || log.State().Status != string(agent.StatusCanceled) && log.State().Status != string(agent.StatusFailed) {
				t.Errorf("%s: the run is still open: %+v, %v", queue, log.State(), err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the caller still waits", queue)
		}
		cancel()
		d, err := c.DescribeWorkflowExecution(t.Context(), "pawl/"+queue+"/r/1", "")
		if err != nil || d.GetWorkflowExecutionInfo().GetCloseTime() == nil {
			t.Errorf("%s: the workflow is still there: %v, %v", queue, d, err)
		}
	}
}
