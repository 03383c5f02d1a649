package agent

import (
	"context"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Steer says something to the run that is under way in a session, from any process: it is on record at once, and the model hears it before its next reply, behind
// all results of the step before. A run that was about to end goes on. See [journal.Log.Steer] for what holds when the run ends all the same.
func Steer(ctx context.Context, store journal.Store, session string, m message.Message) error {
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return err
	}
	return log.Steer(ctx, m)
}

// SteerOnce is Steer under a name of the caller's: what was said to the run under that name is not said again. See [journal.Log.SteerOnce].
func SteerOnce(ctx context.Context, store journal.Store, session, name string, m message.Message) error {
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return err
	}
	return log.SteerOnce(ctx, name, m)
}
