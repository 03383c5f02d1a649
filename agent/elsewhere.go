package agent

import (
	"context"

	"github.com/pawl-dev/pawl/engine"
)

// TaskEngine gives the engine that the run of a task is driven with in place of the subagent's own; nil is the subagent's own. opts are those that the run is begun, or goes on, with. With an error the task is not
// begun; engine.ErrLeft leaves it, and the call that it is of, unfinished.
type TaskEngine func(ctx context.Context, sub Subagent, session string, opts []RunOption) (engine.Engine, error)

type taskEngineKey struct{}

// WithTaskEngine has f asked for each task that the tools of [Task] are given within ctx. It is how a place that does effects elsewhere has whole runs done there.
func WithTaskEngine(ctx context.Context, f TaskEngine) context.Context {
	return context.WithValue(ctx, taskEngineKey{}, f)
}

// elsewhere puts the engine in that the place wants.
func (s Subagent) elsewhere(ctx context.Context, session string, opts []RunOption) (Subagent, error) {
	f, ok := ctx.Value(taskEngineKey{}).(TaskEngine)
	if !ok {
		return s, nil
	}
	eng, err := f(ctx, s, session, opts)
	if eng != nil {
		s.Engine = eng
	}
	return s, err
}
