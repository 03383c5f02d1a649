package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/enginetest"
	"github.com/pawl-dev/pawl/errdefs"
)

// An agent elsewhere does a step for each message, and asks whether to go on.
func TestAnAgentElsewhereIsAnEngine(t *testing.T) {
	for name, c := range map[string]struct {
		version a2a.Version
		streams bool
	}{
		"1.0, by streams": {a2a.V1, true},
		"0.3, by asking":  {a2a.V03, false},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, func(t *testing.T, w *enginetest.Work) engine.Engine {
				a := newAgent(t, c.version, c.streams, func(ctx context.Context, k *task, turn int, _ string) {
					result, err := w.Do(ctx, enginetest.Step{Number: turn})
					switch {
					case ctx.Err() != nil:
						k.update(a2a.StateCanceled, "")
					case err != nil && errdefs.Of(err) != nil:
						k.update(a2a.StateFailed, err.Error(), errdefs.Of(err).Error())
					case err != nil:
						k.update(a2a.StateFailed, err.Error())
					case turn < w.Steps():
						k.update(a2a.StateInputRequired, result+" Go on?")
					default:
						k.artifact("a", "", result, false)
						k.update(a2a.StateCompleted, "")
					}
				})
				a.begins = 5 * time.Millisecond
				return a.engine(t)
			}, enginetest.NoBranches, enginetest.NoTools, enginetest.NoUsage)
		})
	}
}
