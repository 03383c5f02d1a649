package live

import (
	"context"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// TakeUp goes on with the runs that processes which died or were shut down have left, until as many are under way as may be. It leaves those alone that wait for a person's answer, that somebody interrupted on purpose, that another process drives, and those of tasks, which their parents take up. It gives the sessions.
func (r *Runs) TakeUp(ctx context.Context) (sessions []string, err error) {
	var all []string
	for _, status := range []string{"running", "interrupted"} {
		for i, err := range r.Journal().Sessions(ctx, journal.Query{Status: status}) {
			if err != nil {
				return nil, err
			}
			all = append(all, i.Session)
		}
	}
	for _, session := range all {
		left, err := r.left(ctx, session)
		if errdefs.NotFound.Is(err) { // it was deleted meanwhile
			continue
		}
		if err != nil {
			return sessions, err
		}
		if !left || r.Of(session) != nil {
			continue
		}
		_, err = r.Resume(ctx, session)
		switch {
		case err == nil:
			sessions = append(sessions, session)
		case errdefs.Conflict.Is(err), errdefs.NotFound.Is(err): // somebody else was faster
		case errdefs.RateLimit.Is(err), ctx.Err() != nil:
			return sessions, err
		default:
			r.log.Warn("a run that was left can't go on", "session", session, "error", err)
		}
	}
	return sessions, nil
}

// left reports whether the last run of a session was left by its process, or waited for a person who has answered since.
func (r *Runs) left(ctx context.Context, session string) (left bool, err error) {
	waits := false
	for e, err := range r.Journal().Read(ctx, session, 0) {
		if err != nil {
			return false, err
		}
		switch d := e.Data.(type) {
		case journal.SessionCreated:
			if d.TaskOf != "" {
				return false, nil
			}
			left = false // a fork's: what was under way is not its own
		case journal.RunStarted, journal.Resumed:
			left, waits = true, false
		case journal.Parked:
			waits = d.Cause == string(engine.CauseAwaitingPerson)
			left = waits || d.Cause == string(engine.CauseHostShutdown)
		case journal.RunFinished:
			left = false
		}
	}
	if !left || !waits {
		return left, nil
	}
	pending, err := agent.Pending(ctx, r.Journal(), session)
	return len(pending) == 0, err
}
