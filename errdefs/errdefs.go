package errdefs

import (
	"context"
	"errors"
	"fmt"
)

// A Class is a kind of failure. It is itself an error, so that errors.Is(err, class) asks for it. The set is closed:
// the variables of this package are all there are.
type Class struct {
	name   string
	status int
}

// The classes. The HTTP status that a server answers with stands behind each name.
var (
	Validation     = &Class{"validation", 400}       // the input is wrong: correct it
	Unauthorized   = &Class{"unauthorized", 401}     // no credentials, or wrong ones
	PolicyDenied   = &Class{"policy_denied", 403}    // a rule forbids it
	NotFound       = &Class{"not_found", 404}        // no such thing
	Conflict       = &Class{"conflict", 409}         // somebody else was first
	Interrupted    = &Class{"interrupted", 409}      // stopped at a step boundary; can be resumed
	Aborted        = &Class{"aborted", 409}          // ended on purpose, by a hook or a decider
	Overflow       = &Class{"context_overflow", 413} // the request does not fit the model's context window
	Refused        = &Class{"refused", 422}          // the model or the provider's filter refused to answer
	Truncated      = &Class{"truncated", 422}        // the reply was still cut off at the output limit after all continuations
	RateLimit      = &Class{"rate_limit", 429}       // too many requests: wait
	BudgetExceeded = &Class{"budget_exceeded", 429}  // a limit of the caller's was reached: steps, calls, tokens, money, time
	Internal       = &Class{"internal", 500}         // a defect, ours or a plug-in's
	NoProgress     = &Class{"no_progress", 500}      // the model repeats itself or says nothing
	NotAvailable   = &Class{"not_available", 503}    // not here, or not now
	Timeout        = &Class{"timeout", 504}          // the other side took too long
)

// classes lists every class, for Of.
var classes = []*Class{
	Validation, Unauthorized, PolicyDenied, NotFound, Conflict, Interrupted, Aborted, Overflow, Refused, Truncated,
	RateLimit, BudgetExceeded, Internal, NoProgress, NotAvailable, Timeout,
}

// Error gives the name of the class, a lower-case word with underscores that never changes.
func (c *Class) Error() string { return c.name }

// HTTPStatus is the status that a server answers with for this class.
func (c *Class) HTTPStatus() int { return c.status }

// Errorf makes an error of this class; %w wraps as in fmt.Errorf. The class's name is not part of the text.
func (c *Class) Errorf(format string, args ...any) error {
	return &classed{c, fmt.Errorf(format, args...)}
}

// Is reports whether err is of this class; false for nil.
func (c *Class) Is(err error) bool {
	if other, ok := err.(*Class); ok { // errors.Is asks every class in a chain this way: unwrapping would ask it back, for ever
		return c == other
	}
	return errors.Is(err, c)
}

// Of gives the class of err: the outermost one in its chain, or nil when it has none.
func Of(err error) *Class {
	var own interface{ Class() *Class }
	if errors.As(err, &own) {
		return own.Class()
	}
	for _, c := range classes {
		if errors.Is(err, c) {
			return c
		}
	}
	return nil
}

// Named gives the class of a name, nil when no class has it.
func Named(name string) *Class {
	for _, c := range classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

type classed struct {
	class *Class
	err   error
}

func (e *classed) Error() string        { return e.err.Error() }
func (e *classed) Unwrap() error        { return e.err }
func (e *classed) Class() *Class        { return e.class }
func (e *classed) Is(target error) bool { return target == e.class }

// Canceled reports whether err came from a cancelled context or an expired one. Every engine answers a cancel with such an error.
func Canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
