package agenttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
)

// Observer checks an observer: it has no say, so it changes nothing, and it stands on the run's path, so it doesn't hold it up.
func Observer(t *testing.T, factory func(t *testing.T) agent.Observer) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, o agent.Observer){
		"it takes the least that a run gives": func(t *testing.T, o agent.Observer) {
			info, req, res := zero()
			for what, f := range calls(t.Context(), o, info, req, res) {
				soon(t, what, f)
			}
		},
		"it returns when the context has ended": func(t *testing.T, o agent.Observer) {
			info, req, res := given(agent.StatusCanceled)
			for what, f := range calls(ended(t), o, info, req, res) {
				soon(t, what, f)
			}
		},
		"it changes nothing that it is given": func(t *testing.T, o agent.Observer) {
			for _, status := range statuses {
				info, req, res := given(status)
				for what, f := range calls(t.Context(), o, info, req, res) {
					stays(t, what, req, res, func() { soon(t, what, f) })
				}
			}
		},
		"it sees a run that is done again, and one that never began": func(t *testing.T, o agent.Observer) {
			info, req, res := given(agent.StatusCompleted)
			soon(t, "a run", func() {
				o.OnRunEnd(t.Context(), info, res)
				o.OnRunStart(t.Context(), info, req)
				o.OnRunRevise(t.Context(), info, res, 2)
				o.OnRunStart(t.Context(), info, req)
				o.OnRunEnd(t.Context(), info, res)
			})
		},
		"it sees runs at the same time": func(t *testing.T, o agent.Observer) {
			atOnce(t, "the observer", func(i int) {
				info, req, res := given(statuses[i%len(statuses)])
				info.RunID = fmt.Sprint("run-", i)
				for range 10 {
					for _, f := range calls(t.Context(), o, info, req, res) {
						f()
					}
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, factory(t)) })
	}
}

// calls are all that an observer is told.
func calls(ctx context.Context, o agent.Observer, info agent.RunInfo, req *agent.Request, res *agent.Result) map[string]func() {
	return map[string]func(){
		"OnRunStart":  func() { o.OnRunStart(ctx, info, req) },
		"OnInterrupt": func() { o.OnInterrupt(ctx, info, engine.Interrupt{Cause: engine.CauseUserInput}) },
		"OnRunRevise": func() { o.OnRunRevise(ctx, info, res, 2) },
		"OnRunEnd":    func() { o.OnRunEnd(ctx, info, res) },
	}
}
