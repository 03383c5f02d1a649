package temporal

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/journal"
)

// behind is what of a path goes on in the background: calls whose results come as messages. Each is an activity of its own, beside the path.
type behind struct {
	wf      workflow.Context
	cancel  func()
	running map[string]bool
	over    int // how many have ended
	failed  error
}

// beginBehind has the rest of a call done, unless it is being done.
func (u *under) beginBehind(call string) {
	b := &u.behind
	if b.running[call] {
		return
	}
	if b.running == nil {
		b.running = map[string]bool{}
	}
	b.running[call] = true
	in := step{place: u.path.place, Inside: u.path.Inside}
	in.Key, in.Behind = journal.Key{Op: "tool", ID: call}, true
	workflow.Go(b.wf, func(wf workflow.Context) {
		_, err := u.through(wf, toolActivity, in)
		delete(b.running, call)
		b.over++
		if err != nil && !errors.Is(err, errAgain) && wf.Err() == nil && u.intr == nil && b.failed == nil {
			b.failed = err
		}
	})
}

// end waits for what goes on in the background when the path has ended. What goes on later, in another workflow, or because it was interrupted, is let come to its end; anything else is cancelled.
func (u *under) endBehind(wf workflow.Context, err error) {
	b := &u.behind
	if err != nil && !errors.Is(err, errAgain) && u.intr == nil {
		b.cancel()
	}
	apart, _ := workflow.NewDisconnectedContext(wf)
	_ = workflow.Await(apart, func() bool { return len(b.running) == 0 })
}
