package eval

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Recorded reads sessions of a journal as samples, the one with the newest entry first; no model is called and nothing is written. All of them are held in memory: narrow q. Put them into [Suite.Samples].
//
// finished are those whose last run has ended and whose output counts. others are told apart by their Status and Discarded: sessions whose last run is under way, was left by a process that died ([StatusUnfinished]) or waits for a person (interrupted),
// and those of which all runs were discarded. Sessions in which nothing was run are in neither; those of tasks are samples of their own.
func Recorded(ctx context.Context, store journal.Store, q journal.Query) (finished, others []Sample, err error) {
	for info, err := range store.Sessions(ctx, q) {
		if err != nil {
			return nil, nil, fmt.Errorf("eval: recorded: %w", err)
		}
		s, err := Read(ctx, store, info.Session)
		switch {
		case errdefs.NotFound.Is(err): // nothing was run, or it was deleted meanwhile
		case err != nil:
			return nil, nil, err
		case s.over():
			finished = append(finished, s)
		default:
			others = append(others, s)
		}
	}
	return finished, others, nil
}

// over reports whether the last run ended, and something that was said counts.
func (s Sample) over() bool {
	if s.Status == StatusUnfinished || s.Status == agent.StatusInterrupted {
		return false
	}
	for _, t := range s.Turns {
		if !t.Discarded {
			return true
		}
	}
	return false
}
