package model

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Error is a provider's failure. errors.As finds it; its class (errdefs) is what callers branch on.
type Error struct {
	Provider   string         // "anthropic", …
	Kind       *errdefs.Class // RateLimit, NotAvailable, Overflow, Unauthorized, Validation, …
	Status     int            // HTTP status; 0 when there was none (a broken stream, no connection)
	Code       string         // the provider's own word: "overloaded_error"
	Message    string         // the provider's own text
	RequestID  string         // for the provider's support
	RetryAfter time.Duration  // what the provider asks for; 0: it says nothing
	Rate       Rate           // what the provider says of the key's limits; of this moment, so that it is in no journal and no cassette
	Err        error          // the cause below HTTP, if that is what failed
}

// Error gives provider, status, code and text in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": HTTP %d", e.Status)
	}
	if e.Code != "" {
		b.WriteString(": " + e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.RequestID != "" {
		b.WriteString(" (request " + e.RequestID + ")")
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Class gives the class; errdefs.Of finds it.
func (e *Error) Class() *errdefs.Class { return e.Kind }

// Is makes errors.Is(err, errdefs.RateLimit) work.
func (e *Error) Is(target error) bool { return target == error(e.Kind) }

// ClassOfStatus gives the class of an HTTP status that a provider answers with, for those that have no better sign.
func ClassOfStatus(status int) *errdefs.Class {
	switch status {
	case 401, 403, 402:
		return errdefs.Unauthorized
	case 404:
		return errdefs.NotFound
	case 408, 504:
		return errdefs.Timeout
	case 409:
		return errdefs.Conflict
	case 413:
		return errdefs.Overflow
	case 429:
		return errdefs.RateLimit
	}
	if status >= 500 {
		return errdefs.NotAvailable
	}
	return errdefs.Validation
}
