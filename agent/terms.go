package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/sandbox"
)

// Terms are what a run may do: what of it goes on record, and what binds the run besides what it is given. Nothing here widens anything.
type Terms struct {
	Record  json.RawMessage   // with the run's beginning, or its going on: a JSON value; nil for none, and for the same as before
	Hooks   []hook.Middleware // before all others
	Sandbox *sandbox.Policy   // narrows, as that of [WithSandbox]; nil for none
	Warning string            // for the host, with the first one of [WithWarning]
}

// WithTerms asks f what binds the run, before it begins or goes on, once. recorded is what is on record of the unfinished run that goes on, so that f can hold it to that; nil for a new
// run, and for one that has none. The error of f, which Run returns, keeps the run as it was: nothing is on record of the try.
func WithTerms(f func(recorded json.RawMessage) (Terms, error)) RunOption {
	return func(c *config) { c.terms = f }
}

// agree puts the terms into force. The session is leased and read to its end.
func (t *turn) agree(ctx context.Context) (context.Context, error) {
	if t.terms == nil {
		return ctx, nil
	}
	return t.bind(ctx)
}

// bind asks for the terms.
func (t *turn) bind(ctx context.Context) (context.Context, error) {
	var recorded json.RawMessage
	if t.resume != nil {
		recorded = t.log.State().Terms
	}
	terms := Terms{}
	err := guard("the terms", func() (err error) {
		terms, err = t.terms(slices.Clone(recorded))
		return err
	})
	if err != nil {
		return ctx, err
	}
	t.record = terms.Record
	switch {
	case terms.Warning == "":
	case len(t.warnings) == 0:
		t.warnings = []string{terms.Warning}
	default:
		t.warnings = slices.Clone(t.warnings) // the options may be used again
		t.warnings[0] += "; " + terms.Warning
	}
	if len(terms.Hooks) > 0 {
		t.bounds.Hooks = slices.Concat(terms.Hooks, t.bounds.Hooks)
		ctx = engine.WithBounds(ctx, t.bounds)
	}
	if terms.Sandbox != nil {
		ctx = sandbox.With(ctx, *terms.Sandbox)
	}
	return ctx, nil
}
