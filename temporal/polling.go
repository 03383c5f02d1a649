package temporal

import (
	"cmp"

	"go.temporal.io/sdk/worker"
)

// pollers is how many of a worker ask for tasks at the same time, if it is not told: two for each of the four partitions that a task queue has by default. Where nobody asks at a partition, a task there waits until one of the others is
// asked for it: with Temporal's own default of two, each fiftieth effect of a run waited two seconds.
const pollers = 8

func polling(o worker.Options) worker.Options {
	if o.ActivityTaskPollerBehavior == nil {
		o.MaxConcurrentActivityTaskPollers = cmp.Or(o.MaxConcurrentActivityTaskPollers, pollers)
	}
	if o.WorkflowTaskPollerBehavior == nil {
		o.MaxConcurrentWorkflowTaskPollers = cmp.Or(o.MaxConcurrentWorkflowTaskPollers, pollers)
	}
	return o
}
