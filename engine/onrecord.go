package engine

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// OnRecord are steps that go over what is on record, and do nothing: an engine's path, run on them, comes to where it was. given gives the outcome on record of an effect, nil for none; an effect
// without one is shown to missing, with its scopes around it, and the error that missing gives ends the path, or the branch, there. Effects that belong together are all shown before that. Branches run one after the
// other, each as far as it gets. It is how an engine that does its effects elsewhere finds out what it is to do, and how it ended. Not safe for concurrent use.
func OnRecord(given func(journal.Key) journal.Data, missing func(Effect) error) Steps {
	return &onRecord{given: given, missing: missing}
}

type onRecord struct {
	given   func(journal.Key) journal.Data
	missing func(Effect) error
	scopes  []string
	beside  bool // other branches run beside these steps
}

func (s *onRecord) Do(ctx context.Context, effects ...Effect) ([]journal.Data, error) {
	out := make([]journal.Data, len(effects))
	effects = InScopes(s.scopes, s.beside, effects)
	for from, to := 0, 0; from < len(effects); from = to {
		var errs []error
		for to = from; to < len(effects) && (to == from || Together(effects[from], effects[to])); to++ {
			if out[to] = s.given(effects[to].Key()); out[to] == nil {
				errs = append(errs, s.missing(effects[to]))
			}
		}
		if err := join(errs); err != nil {
			return out, err
		}
	}
	return out, ctx.Err()
}

func (s *onRecord) Branch(ctx context.Context, branches ...Branch) error {
	errs := make([]error, len(branches))
	for i, b := range branches {
		sub := *s
		sub.scopes, sub.beside = append(slices.Clip(s.scopes), b.Scope), s.beside || len(branches) > 1
		errs[i] = b.Run(ctx, &sub)
	}
	return join(errs)
}

// errNotYet ends a path that [Find] has.
var errNotYet = errdefs.Interrupted.Errorf("engine: what comes next is not on record")

// Find goes over what is on record of a run, and gives the effect of a key that the engine asks for there, whole: with the transcript and all else that its Performer needs, and that doesn't travel.
// run and board are those that the run began with. NotFound when the path does not come to such an effect, because the code is not that which made the record, or what leads there is not on record yet. Cost: linear in the record.
func Find(ctx context.Context, eng Engine, run Run, board *Board, given func(journal.Key) journal.Data, key journal.Key) (Effect, error) {
	var found Effect
	run.Steps = OnRecord(func(k journal.Key) journal.Data {
		if k == key {
			return nil
		}
		return given(k)
	}, func(e Effect) error {
		if e.Key() == key {
			found = e
		}
		return errNotYet
	})
	_, err := eng.Execute(ctx, run, NoopHost{}, board)
	switch {
	case found != nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil || errdefs.Interrupted.Is(err):
		return nil, errdefs.NotFound.Errorf("engine: run %s does not come to %v by what is on record", run.ID, key)
	}
	return nil, errdefs.NotFound.Errorf("engine: run %s does not come to %v by what is on record: %w", run.ID, key, err)
}
