package engine

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Steps performs effects for an engine. It is the only way from an engine's own path to the world: on that path stand no goroutine,
// select, map iteration, clock or random number, and a context is asked for its Err and Value and never derived with a deadline.
// The clock of the path is the journal's; ids come from keys.
type Steps interface {
	// Do performs effects and gives their outcomes in the order of the effects. An outcome on record is given again and
	// nothing happens. Neighbours that are Concurrent may run together, a bounded number at a time; any other is a barrier. It returns when
	// all are done. Before anything new begins it looks for a cancel, a journal that failed, and an interrupt, and then returns ctx.Err(), the
	// journal's error or an InterruptedError; what fails once ctx has ended is a cancel too. With an error, the outcomes that were reached are there all the same.
	Do(ctx context.Context, effects ...Effect) ([]journal.Data, error)
	// Branch runs parts of an engine side by side, each with its own Steps whose keys begin with the branch's scope. All are
	// waited for; the errors are joined in order. One branch is how a graph node gets a scope. They begin in order, and of one call a bounded number runs at a
	// time: none may wait for what a later one does.
	Branch(ctx context.Context, branches ...Branch) error
}

// Branch is a part of an engine with its own scope.
type Branch struct {
	Scope string
	Run   func(ctx context.Context, s Steps) error
}

// Do performs one effect whose outcome is an Out.
func Do[Out journal.Data](ctx context.Context, s Steps, e Effect) (out Out, err error) {
	if l, ok := s.(*local); ok { // the same, in one piece
		d, err := l.single(ctx, e)
		return as[Out](e, d, err)
	}
	all, err := s.Do(ctx, e)
	if len(all) == 1 {
		out, err = as[Out](e, all[0], err)
	}
	return out, err
}

// DoAll performs effects of one type. With an error, outcomes that were reached are there all the same.
func DoAll[Out journal.Data, E Effect](ctx context.Context, s Steps, es []E) ([]Out, error) {
	if len(es) == 0 {
		return nil, nil
	}
	if len(es) > 1 {
		return doSeveral[Out](ctx, s, es)
	}
	outs := make([]Out, 1)
	var err error
	outs[0], err = Do[Out](ctx, s, es[0])
	return outs, err
}

func doSeveral[Out journal.Data, E Effect](ctx context.Context, s Steps, es []E) ([]Out, error) {
	effects := make([]Effect, len(es))
	for i, e := range es {
		effects[i] = e
	}
	all, err := s.Do(ctx, effects...)
	outs := make([]Out, len(es))
	for i, d := range all {
		outs[i], err = as[Out](effects[i], d, err)
	}
	return outs, err
}

// as is a type assertion with an error: a record of another type than the code asks for comes from other code.
func as[Out journal.Data](e Effect, d journal.Data, err error) (Out, error) {
	out, ok := d.(Out)
	if d != nil && !ok && err == nil {
		err = errdefs.Conflict.Errorf("engine: %v is on record as %s, the code wants %s: it is not the code that made the record", e.Key(), d.Kind(), out.Kind())
	}
	return out, err
}

// StepsOf gives run.Steps, or else Local: the first line of every engine. When the run is to go on from a checkpoint of another run, every step is
// errdefs.Validation.
func StepsOf(run Run, host Host, p Performer) Steps {
	if cp := run.ResumeFrom; cp != nil && cp.ExecID != "" && cp.ExecID != run.ID {
		return refusing(errdefs.Validation.Errorf("engine: run %s can't go on from a checkpoint of run %s", run.ID, cp.ExecID))
	}
	if run.Steps != nil {
		return run.Steps
	}
	return Local(run, host, p)
}

// refusing are steps of which each fails with err.
func refusing(err error) Steps {
	return StepsFunc(func(_ context.Context, effects ...Effect) ([]journal.Data, error) {
		return make([]journal.Data, len(effects)), err
	})
}

// Scoped is an effect inside a branch; a Performer routes it by Scope.
type Scoped struct {
	Scope string
	Effect
	Alone bool // no other branch runs beside this one, nor beside those that it is in. Whoever can't tell leaves it false: then ids of calls have the scope in them
}

// InScopes puts effects into the scopes of the branches that ask for them, the outermost first. beside says that other branches run beside these.
func InScopes(scopes []string, beside bool, effects []Effect) []Effect {
	for _, scope := range slices.Backward(scopes) {
		effects = slices.Clone(effects)
		for i, e := range effects {
			effects[i] = Scoped{scope, e, !beside}
		}
	}
	return effects
}

// Alone reports whether nothing else of the run can go on beside the path that asks for e: all that was done before is on record.
func Alone(e Effect) bool {
	for {
		if s, ok := e.(Scoped); ok && !s.Alone {
			return false
		}
		w, ok := e.(Wrapped)
		if !ok {
			return true
		}
		e = w.Unwrap()
	}
}

// Key has the scope in front.
func (s Scoped) Key() journal.Key {
	k := s.Effect.Key()
	if k.Scope == "" {
		k.Scope = s.Scope
	} else {
		k.Scope = s.Scope + ":" + k.Scope
	}
	return k
}

// StepsFunc makes a Do function a Steps whose branches run one after the other: for tests.
type StepsFunc func(ctx context.Context, effects ...Effect) ([]journal.Data, error)

// Do calls f.
func (f StepsFunc) Do(ctx context.Context, effects ...Effect) ([]journal.Data, error) {
	return f(ctx, effects...)
}

// Branch runs the branches in order.
func (f StepsFunc) Branch(ctx context.Context, branches ...Branch) error {
	for _, b := range branches {
		inner := StepsFunc(func(ctx context.Context, es ...Effect) ([]journal.Data, error) {
			scoped := make([]Effect, len(es))
			for i, e := range es {
				scoped[i] = Scoped{Scope: b.Scope, Effect: e}
			}
			return f(ctx, scoped...)
		})
		if err := b.Run(ctx, inner); err != nil {
			return err
		}
	}
	return nil
}
