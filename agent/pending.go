package agent

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/schema"
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
// nothing, gets errdefs.Conflict. What can't be meant of the question (an Input that is no JSON object, or for a question without a call; Session where it is asked each
// time; a Rule without Session) is errdefs.Validation: nothing is on record then, and the question still waits. The run goes on when it is resumed; an Input is
// held against the tool's schema only then, and where it breaks that the model is told so.
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
	if why := unfit(all[i].Asked, a); why != "" {
		return errdefs.Validation.Errorf("agent: answer: %s: %s", a.ID, why)
	}
	a.ID = all[i].ID
	return all[i].log.Answer(ctx, a)
}

// unfit says why an answer can't be meant of what was asked; "" when it can.
func unfit(q journal.Asked, a journal.Answered) string {
	switch {
	case a.Input != "" && q.Call == nil:
		return "it is a question: only a call has an input to edit"
	case a.Input != "" && !isObject(a.Input):
		return "the input that the call is to run with: want a JSON object, as text: " + schema.Clip(a.Input)
	case a.Session && (q.Call == nil || q.Unknown):
		return "it can be answered for this once only, not for the session"
	case a.Session && q.Once:
		return "a hook, or the tool itself, asks about calls like it each time: it can't be approved for the session"
	case a.Rule != "" && !a.Session:
		return "a rule says what is approved for the session: it needs session"
	}
	return ""
}

func isObject(text string) bool {
	v, err := schema.Parse([]byte(text))
	_, is := v.(map[string]any)
	return err == nil && is
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
