package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/engine"
)

// onPath makes a workflow's context a context.Context for an engine's path, which asks it for Err and Value alone. Nobody may wait on it: it has no Done and no deadline.
type onPath struct {
	wf    workflow.Context
	began time.Time // the path
	late  *bool     // its time is up; nil: it has no limit
}

func (onPath) Deadline() (t time.Time, ok bool) { return t, false }

func (onPath) Done() <-chan struct{} { return nil }

// Err is context.Canceled when the workflow was cancelled.
func (c onPath) Err() error {
	if c.late != nil && *c.late {
		return context.DeadlineExceeded
	}
	if err := c.wf.Err(); errors.Is(err, workflow.ErrDeadlineExceeded) {
		return context.DeadlineExceeded
	} else if err != nil {
		return context.Canceled
	}
	return nil
}

// Value gives the workflow's context by its own key, and the path's timer.
func (c onPath) Value(key any) any {
	switch key {
	case workflowKey{}:
		return c.wf
	case engine.TimerKey{}:
		return engine.Timer(func(d time.Duration) (context.Context, func(), func() bool) { return c.until(c.began.Add(d)) })
	}
	return c.wf.Value(key)
}

// until ends a path by a timer of the workflow.
func (c onPath) until(end time.Time) (context.Context, func(), func() bool) {
	wf, cancel := workflow.WithCancel(c.wf)
	late := new(bool)
	workflow.Go(wf, func(wf workflow.Context) {
		if workflow.Sleep(wf, max(end.Sub(workflow.Now(wf)), 0)) == nil {
			*late = true
			cancel()
		}
	})
	return onPath{wf, c.began, late}, cancel, func() bool { return *late }
}

type workflowKey struct{}

// workflowOf is the context of the coroutine that runs the path that ctx is of.
func workflowOf(ctx context.Context) workflow.Context {
	wf, _ := ctx.Value(workflowKey{}).(workflow.Context)
	return wf
}
