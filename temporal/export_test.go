package temporal

import (
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/pawl-dev/pawl/journal"
)

// Waiting is how many effects the worker keeps for activities that are under way.
func (w *Worker) Waiting() int {
	w.alive.mu.Lock()
	defer w.alive.mu.Unlock()
	return len(w.alive.all)
}

// Replayer goes over histories as a worker with such members does that takes a workflow over.
func Replayer(store journal.Store, teams []Team, members ...Member) (worker.WorkflowReplayer, error) {
	w := &Worker{store: store, members: map[string]Member{}, teams: map[string]Team{}, timing: Timing{}.orDefaults()}
	if err := w.enlist(Config{Members: members, Teams: teams}); err != nil {
		return nil, err
	}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
	if err != nil {
		return nil, err
	}
	w.workflows(r)
	return r, nil
}

// HeededWithin sets how long a cancel waits for workers, until the function that it gives is called.
func HeededWithin(d time.Duration) func() {
	was := heededWithin
	heededWithin = d
	return func() { heededWithin = was }
}
