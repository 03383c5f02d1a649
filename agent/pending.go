package agent

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Pending lists what waits for a person in a session, and in the unfinished tasks below it. The ID of a question below begins with the calls that lead to
// it ("c1/c7"). No such session has nothing pending.
func Pending(ctx context.Context, store journal.Store, session string) ([]journal.Pending, error) {
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return nil, err
	}
	all, err := pending(ctx, log)
	return seenFrom(all), err
}

// seenFrom gives questions the IDs that they have above.
func seenFrom(all []waiting) (out []journal.Pending) {
	for _, p := range all {
		p.ID = p.id
		out = append(out, p.Pending)
	}
	return out
}

// Answer answers what waits in a session, or in a task below it, from any process; a.ID is as in [Pending]. The first answer wins; a later one, or one to
// nothing, gets errdefs.Conflict. The run goes on when it is resumed.
func Answer(ctx context.Context, store journal.Store, session string, a journal.Answered) error {
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return err
	}
	all, err := pending(ctx, log)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p waiting) bool { return p.id == a.ID })
	if i < 0 {
		if log.Seq() == 0 {
			return errdefs.Conflict.Errorf("agent: answer: there is no session %s: see Pending for what waits", session)
		}
		return errdefs.Conflict.Errorf("agent: answer: %q is not pending in session %s: it was answered, its run was closed by a later prompt, or it was never asked", a.ID, session)
	}
	a.ID = all[i].ID
	return all[i].log.Answer(ctx, a)
}

// waiting is a question, where it is on record.
type waiting struct {
	journal.Pending
	id  string // seen from above
	log *journal.Log
}

func pending(ctx context.Context, log *journal.Log) (all []waiting, err error) {
	st := log.State()
	for _, p := range st.Pending {
		all = append(all, waiting{p, p.ID, log})
	}
	for _, call := range st.Unfinished() {
		child, err := journal.Open(ctx, log.Store(), journal.TaskSession(log.Session(), call))
		if err != nil {
			return nil, err
		}
		below, err := pending(ctx, child)
		if err != nil {
			return nil, err
		}
		for _, p := range below {
			p.id = call.ID + "/" + p.id
			all = append(all, p)
		}
	}
	return all, nil
}
