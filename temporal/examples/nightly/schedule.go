package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
)

// queue is where Nightly is done. The agent's runs have another one, temporal.Queue.
const queue = "nightly"

// schedule has the service start Nightly at three each night, from now on.
func schedule(ctx context.Context, c client.Client) error {
	_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:                 "nightly",
		Spec:               client.ScheduleSpec{CronExpressions: []string{"0 3 * * *"}},
		Action:             &client.ScheduleWorkflowAction{ID: "nightly", Workflow: Nightly, TaskQueue: queue},
		TriggerImmediately: *now,
	})
	return err
}

// Nightly orders the run of a night.
func Nightly(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	night := workflow.Now(ctx).Format(time.DateOnly)
	return workflow.ExecuteActivity(ctx, (*Clerk).Order, night).Get(ctx, nil)
}

// Clerk has what Nightly's activity needs.
type Clerk struct{ Client client.Client }

// Order has workers do the run, and waits for no one. The session and the run are named after the night, so a night that is ordered again, since an answer was lost, is the same run.
func (c *Clerk) Order(ctx context.Context, night string) error {
	_, err := temporal.Begin(ctx, c.Client, temporal.Order{
		Agent:   "reporter",
		Session: "report-" + night,
		Run:     "report-" + night,
		Message: message.User("Write the report of " + night + "."),
	})
	return err
}
