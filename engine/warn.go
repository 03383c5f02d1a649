package engine

import (
	"context"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

type warnKey struct{}

// WithWarnings has [Warn] reach those who listen to run, which has a Background. Only agent.Run needs it.
func WithWarnings(ctx context.Context, run *Run) context.Context {
	id, session, parent, background := run.ID, run.Session, run.ParentRunID, run.Background
	if background == nil { // inside of a workflow nobody listens
		return ctx
	}
	return context.WithValue(ctx, warnKey{}, func(text string) {
		at := journal.Entry{Session: session, Run: id}
		background.Publish(event.Event{Entry: at, ParentRun: parent, Delta: event.Warning, Text: text})
	})
}

// Warn tells those who listen to the run that ctx is in: for hooks and tools, from any goroutine. They hear it as an event.Warning when the run's own goroutine gets to
// it: before its next effect, or at its end. It is false, and nobody hears it, outside of any run.
func Warn(ctx context.Context, text string) bool {
	warn, ok := ctx.Value(warnKey{}).(func(string))
	if ok {
		warn(text)
	}
	return ok
}
