package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"
)

// onPath makes a workflow's context a context.Context for an engine's path, which asks it for Err and Value alone. Nobody may wait on it: it has no Done and no deadline.
type onPath struct{ wf workflow.Context }

func (onPath) Deadline() (t time.Time, ok bool) { return t, false }

func (onPath) Done() <-chan struct{} { return nil }

// Err is context.Canceled when the workflow was cancelled.
func (c onPath) Err() error {
	if err := c.wf.Err(); errors.Is(err, workflow.ErrDeadlineExceeded) {
		return context.DeadlineExceeded
	} else if err != nil {
		return context.Canceled
	}
	return nil
}

// Value gives the workflow's context by its own key.
func (c onPath) Value(key any) any {
	if key == (workflowKey{}) {
		return c.wf
	}
	return c.wf.Value(key)
}

type workflowKey struct{}

// workflowOf is the context of the coroutine that runs the path that ctx is of.
func workflowOf(ctx context.Context) workflow.Context {
	wf, _ := ctx.Value(workflowKey{}).(workflow.Context)
	return wf
}
