package event

import (
	"time"

	"github.com/pawl-dev/pawl/journal"
)

// Event is one thing that happened, passed by value: a delta costs no allocation. What it refers to is shared by all listeners: read it only.
type Event struct {
	journal.Entry               // of a delta: Session, Run, Key and the Seq of the intent that it belongs to; Data is nil
	Delta         Delta         // what kind of delta; "" for an entry
	Text          string        // of a delta
	Stream        string        // of a ToolOutput: "stdout" or "stderr"
	Attempt       int           // deltas of an earlier attempt at the same Key are void
	ParentRun     string        // of a child run's events
	Wait          time.Duration // of a Retry: until the next attempt begins; of Waiting: at most. 0: not known
}

// Delta names a kind of delta.
type Delta string

// The deltas.
const (
	TextDelta      Delta = "text.delta"
	ReasoningDelta Delta = "reasoning.delta"
	ToolOutput     Delta = "tool.output"
	Retry          Delta = "retry" // a model call is tried again: Text says why, Attempt is the next one; what came of it so far is void
	Warning        Delta = "warning"
	Waiting        Delta = "waiting"  // the run waits for what no entry tells the beginning of, such as a summary of its transcript, or a rate limit of our own: Text says for what
	RunLeft        Delta = "run.left" // in place of the entry that ends a run here, when the journal did not take it; Text says why
)

// Type is the event's name: the entry's kind or the delta's.
func (e Event) Type() string {
	if e.Data != nil {
		return string(e.Data.Kind())
	}
	return string(e.Delta)
}
