package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// Wrapped is an effect around another one with the same meaning: one in a scope, one with a time limit.
type Wrapped interface {
	Effect
	Unwrap() Effect
}

// Unwrap gives the effect without the scope.
func (s Scoped) Unwrap() Effect { return s.Effect }

// Bare is an effect without all that stands around it: what a Performer looks at to know what to do.
func Bare(e Effect) Effect {
	for {
		w, ok := e.(Wrapped)
		if !ok {
			return e
		}
		e = w.Unwrap()
	}
}

// Keep is for a path that goes on after a failure: it puts what effects fail with on record, as a journal.Failed, so that a resumed run, and a replay, find the same failure. The error that Do
// gives has the class of the failure and its text. A cancel, an interrupt, a Conflict, a budget that is used up and a journal that failed are not kept: they end the run.
func Keep(s Steps) Steps { return keeping{s} }

type keeping struct{ Steps }

func (k keeping) Do(ctx context.Context, effects ...Effect) ([]journal.Data, error) {
	all := make([]Effect, len(effects))
	for i, e := range effects {
		all[i] = kept{e}
	}
	out, err := k.Steps.Do(ctx, all...)
	var errs []error
	for i, d := range out {
		if f, ok := d.(journal.Failed); ok {
			out[i] = nil
			errs = append(errs, failure(f))
		}
	}
	return out, join(append(errs, err))
}

func (k keeping) Branch(ctx context.Context, branches ...Branch) error {
	all := make([]Branch, len(branches))
	for i, b := range branches {
		all[i] = Branch{b.Scope, func(ctx context.Context, s Steps) error { return b.Run(ctx, Keep(s)) }}
	}
	return k.Steps.Branch(ctx, all...)
}

// kept is an effect whose failure is an outcome.
type kept struct{ Effect }

func (k kept) Unwrap() Effect { return k.Effect }

// Kept reports whether the path that asks for e goes on when it fails, and may drop what e came to: see [Keep].
func Kept(e Effect) bool {
	for {
		if _, ok := e.(kept); ok {
			return true
		}
		w, ok := e.(Wrapped)
		if !ok {
			return false
		}
		e = w.Unwrap()
	}
}

// failedBy is a failure for the record.
func failedBy(err error) journal.Failed {
	d := journal.Failed{Error: strings.ToValidUTF8(err.Error(), "\uFFFD")}
	if c := errdefs.Of(err); c != nil {
		d.Class = c.Error()
	}
	return d
}

// failure is a failure from the record.
func failure(d journal.Failed) error {
	if c := errdefs.Named(d.Class); c != nil {
		return c.Errorf("%s", d.Error)
	}
	return errors.New(d.Error)
}
