package engine

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// Host is the place a run happens in. Embed [NoopHost] and override what you have, or make one of functions: [HostFuncs]. Safe for concurrent use, but
// Publish is called from one goroutine at a time, the one that called Execute. enginetest.Host proves that a Host is one.
//
// A Host with a method Listening() bool says whether anybody listens; when not, no event is built and models are called
// without a stream. One without the method is taken to listen; NoopHost itself does not.
type Host interface {
	Publisher
	Interrupter
	UserPrompter
	Checkpointer
	UsageReporter
}

// Publisher is told what happens.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error // an error never fails the run
}

// Interrupter stops runs at their next step.
type Interrupter interface {
	Interrupts() <-chan Interrupt // nil: never; read once and seen by every part of the run
}

// UserPrompter puts questions to people.
type UserPrompter interface {
	AskUser(ctx context.Context, p Prompt) (Reply, error) // NotAvailable: nobody is there now, the run parks
}

// Checkpointer is told how far a run is. A [CheckpointStore]'s Save is such a method by another name.
type Checkpointer interface {
	Checkpoint(ctx context.Context, c Checkpoint) error // after each outcome; the journal has it already, so an error does not fail the run
}

// UsageReporter is told what model calls take.
type UsageReporter interface {
	ReportUsage(ctx context.Context, u model.Usage) error // a delta per call; BudgetExceeded stops the run, any other error does not
}

// NoopHost drops, never interrupts, and has nobody to ask.
type NoopHost struct{}

// Publish drops the event.
func (NoopHost) Publish(context.Context, event.Event) error { return nil }

// Interrupts never fires.
func (NoopHost) Interrupts() <-chan Interrupt { return nil }

// AskUser is not available.
func (NoopHost) AskUser(context.Context, Prompt) (Reply, error) {
	return Reply{}, errdefs.NotAvailable.Errorf("engine: nobody to ask")
}

// Checkpoint drops it.
func (NoopHost) Checkpoint(context.Context, Checkpoint) error { return nil }

// ReportUsage drops it.
func (NoopHost) ReportUsage(context.Context, model.Usage) error { return nil }

// Listening reports whether an event would reach anybody.
func Listening(h Host) bool {
	switch h := h.(type) {
	case NoopHost, *NoopHost:
		return false
	case interface{ Listening() bool }:
		return listens(h)
	}
	return true
}

// listens takes one that panics to listen: what it is told then can't fail a run either.
func listens(h interface{ Listening() bool }) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = true
		}
	}()
	return h.Listening()
}

// Prompt is a question to a person; Reply the answer.
type Prompt struct {
	journal.Asked
	Schema []byte // JSON Schema of the wanted text; nil: free text or yes and no
}

// Reply answers a Prompt.
type Reply struct{ journal.Answered }

// Cause says why a run was interrupted.
type Cause string

// The causes.
const (
	CauseUserCancel     Cause = "user_cancel"
	CauseUserInput      Cause = "user_input"
	CauseHostShutdown   Cause = "host_shutdown"
	CauseAwaitingPerson Cause = "awaiting_person" // a run that parks until a person answers
	CauseJournal        Cause = "journal"         // the journal could not be written: the run's end is not on record either
	CauseCommit         Cause = "commit"          // a committer failed: the run is over but for that
	CauseBackground     Cause = "background"      // what the run waits for goes on in the background, elsewhere: see [BackgroundElsewhere]. No run ends with it
	CauseCustom         Cause = "custom"
)

// Interrupt stops a run at its next step. Unlike a cancel it loses nothing: the run can be resumed.
type Interrupt struct {
	Cause  Cause
	Detail string
}

// InterruptedError is what an interrupted engine returns; its class is errdefs.Interrupted.
type InterruptedError struct{ Interrupt }

// Error names the cause.
func (e InterruptedError) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("interrupted: %s", e.Cause)
	}
	return fmt.Sprintf("interrupted: %s: %s", e.Cause, e.Detail)
}

// Is makes errors.Is(err, errdefs.Interrupted) true.
func (e InterruptedError) Is(target error) bool { return target == error(errdefs.Interrupted) }
