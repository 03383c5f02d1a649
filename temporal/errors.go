package temporal

import (
	"context"
	"errors"
	"time"

	sdk "go.temporal.io/sdk/temporal"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// failure is an error as it crosses.
type failure struct {
	Text  string `json:"text"`
	Class string `json:"class,omitempty"` // of errdefs, or canceled
	// Interrupt is there when it is one.
	Interrupt *interruption `json:"interrupt,omitempty"`
	// Deadline is when a question that is waited for can be answered no more.
	Deadline time.Time `json:"deadline,omitzero"`
}

// String is for those who print what has one.
func (f *failure) String() string { return f.Text }

const canceled = "canceled"

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: clip(err.Error(), mostError)}
	if c := errdefs.Of(err); c != nil {
		f.Class = c.Error()
	} else if errdefs.Canceled(err) {
		f.Class = canceled
	}
	if intr := (engine.InterruptedError{}); errors.As(err, &intr) {
		f.Interrupt = &interruption{string(intr.Cause), clip(intr.Detail, mostError)}
	}
	return f
}

// err is the error on this side: of the same class, with the same text.
func (f *failure) err() error {
	switch {
	case f == nil:
		return nil
	case f.Interrupt != nil:
		return engine.InterruptedError{Interrupt: f.Interrupt.interrupt()}
	case f.Class == canceled:
		return crossed{f.Text, context.Canceled}
	}
	if c := errdefs.Named(f.Class); c != nil {
		return crossed{f.Text, c}
	}
	return errors.New(f.Text)
}

// crossed is an error that crossed: text, and class.
type crossed struct {
	text string
	of   error
}

func (e crossed) Error() string { return e.text }
func (e crossed) Unwrap() error { return e.of }

// application is an error as Temporal has it: typed by its class, and with what can be made of it again.
func application(err error, again bool) error {
	f := failureOf(err)
	options := sdk.ApplicationErrorOptions{NonRetryable: !again, Details: []any{f}}
	var e *model.Error
	if again && errors.As(err, &e) && e.RetryAfter > 0 {
		options.NextRetryDelay = e.RetryAfter
	}
	return sdk.NewApplicationErrorWithOptions(f.Text, typeOf(f), options)
}

func typeOf(f *failure) string {
	if f.Class == "" {
		return "error"
	}
	return f.Class
}

// received is an error that Temporal gives, as it was before it crossed.
func received(err error) error {
	var app *sdk.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &app):
		f := new(failure)
		if app.HasDetails() && app.Details(&f) == nil && f != nil {
			return f.err()
		}
		return crossed{app.Error(), errdefs.Internal}
	case sdk.IsCanceledError(err):
		return context.Canceled
	case sdk.IsTimeoutError(err):
		return crossed{err.Error(), errdefs.Timeout}
	case sdk.IsTerminatedError(err):
		return crossed{err.Error(), errdefs.Aborted}
	}
	return err
}
