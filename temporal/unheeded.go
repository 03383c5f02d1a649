package temporal

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// heededWithin is the time that workers have to take up a cancel. A workflow that the worker which had it lost is offered to all others 5 s later.
var heededWithin = 8 * time.Second

// unheeded ends a workflow that was cancelled and whose task nobody takes up, or that nobody gets done: there is no worker, or none that has the journal. Who cancels would wait for ever else. What a worker may still be at for
// it stops, for it hears that the workflow is gone. It reports whether it did.
func (w *watch) unheeded(ctx context.Context, wf client.WorkflowRun) bool {
	ctx, stop := context.WithTimeout(ctx, heededWithin)
	defer stop()
	d, err := w.engine.client.DescribeWorkflowExecution(ctx, wf.GetID(), wf.GetRunID())
	task := d.GetPendingWorkflowTask()
	if err != nil || task == nil {
		return false // it is at its effects' ends, or over
	}
	since := task.GetOriginalScheduledTime()
	if since == nil {
		since = task.GetScheduledTime()
	}
	if task.GetAttempt() <= 1 && (task.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED || time.Since(since.AsTime()) < heededWithin) {
		return false // it may be that somebody is at it; one that is tried again fails
	}
	return w.engine.client.TerminateWorkflow(ctx, wf.GetID(), wf.GetRunID(), "cancelled, and no worker takes it up") == nil
}
