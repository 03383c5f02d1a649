package stream

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// Item is a piece of what an attempt at an effect says. What it refers to is shared: read it only.
type Item struct {
	Offset int64     // its place in the session's stream: the store gives it
	Time   time.Time // when the store got it

	Session, Run string
	Key          journal.Key // of the effect
	Seq          int64       // of the journal's entry that began the effect; 0: there is none
	Behind       int64       // where the journal was when the attempt began: what is said comes behind that
	ParentRun    string      // of a child run

	Attempt int    // at the activity, from 1
	By      string // names this attempt, and no other one, also where two have one number
	Part    int    // the pieces of an attempt are 1, 2, 3 and so on
	Lost    int64  // so many bytes of the attempt are missing before this piece
	End     bool   // the attempt says no more

	Text string // what is said, in one piece
	Runs []Run  // what it consists of
}

// Run is a stretch of an item's text.
type Run struct {
	Kind   event.Delta   `json:"kind"`
	Stream string        `json:"stream,omitempty"` // of a tool's output
	Try    int           `json:"try,omitempty"`    // a model's own, within the attempt, from 0: what came of an earlier one is void
	Bytes  int           `json:"bytes"`
	Wait   time.Duration `json:"wait,omitempty"` // as event.Event has it, from when it was said, in nanoseconds
}

// Delta is what a stretch says.
type Delta struct {
	Run
	Text string
}

// Deltas are what the item says, in their order. They share its text.
func (i Item) Deltas() iter.Seq[Delta] {
	return func(yield func(Delta) bool) {
		rest := i.Text
		for _, r := range i.Runs {
			n := min(max(r.Bytes, 0), len(rest))
			if !yield(Delta{r, rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// size is what an item counts for, with what a store takes for a row.
func (i Item) size() int64 { return int64(len(i.Text) + rowBytes) }

const rowBytes = 200

// Check refuses an item that no store takes.
func (i Item) Check() error {
	if i.Session == "" || i.By == "" || i.Attempt < 1 || i.Part < 1 {
		return errdefs.Validation.Errorf("stream: append: an item needs a session, an attempt from 1, its name, and a part from 1: it has %q, %d, %q, %d", i.Session, i.Attempt, i.By, i.Part)
	}
	return nil
}

// Store keeps the streams of sessions. Safe for concurrent use, by many processes if it is more than memory.
type Store interface {
	// Append puts items behind those of their sessions, in one piece, in their order, and gives them offsets. An item whose By and Part are there is left out: so what may have been appended may be appended again. A reader that has an item finds behind it whatever is appended later.
	Append(ctx context.Context, items ...Item) error
	// Read gives the next items after an offset: some of them, in their order; none when there are no more now. After 0 that is from the oldest there is. A [GoneError] when items after the offset were deleted, or the stream never got to it.
	Read(ctx context.Context, session string, after int64) ([]Item, error)
	// Last is the offset from which on a reader gets what is new from now on; 0 where nothing was said yet.
	Last(ctx context.Context, session string) (int64, error)
	// Watch gives a channel that has something in it once there may be news, until stop is called: a hint, as journal.Watcher gives.
	Watch(ctx context.Context, session string) (woken <-chan struct{}, stop func())
}

// GoneError says that items after an offset were deleted, or that it is none of the stream's. Its class is errdefs.NotFound.
type GoneError struct {
	Session string
	After   int64 // what was asked for
	From    int64 // read on after this one; 0: from the oldest there is, for the stream is another one
}

// Error says where to go on.
func (e GoneError) Error() string {
	if e.From == 0 {
		return fmt.Sprintf("stream: session %q has not got to %d: it is another stream than that which was read: begin after 0", e.Session, e.After)
	}
	return fmt.Sprintf("stream: items of session %q after %d are deleted: read on after %d; what was said meanwhile is in the journal, or will be", e.Session, e.After, e.From)
}

// Is makes errors.Is(err, errdefs.NotFound) true.
func (e GoneError) Is(target error) bool { return target == error(errdefs.NotFound) }

// Retention bounds what a store keeps. Zero values are the defaults.
type Retention struct {
	Ended time.Duration // items of attempts that have ended, and of those before them. Default 1 min
	Age   time.Duration // any item. Default 1 h
	Bytes int64         // of a session, the newest. Default 4 MiB
	Names time.Duration // the name of a session of which nothing is left: an offset from before is of another stream then. Default 7 days
}

// OrDefaults fills in what is not set.
func (r Retention) OrDefaults() Retention {
	if r.Ended <= 0 {
		r.Ended = time.Minute
	}
	if r.Age <= 0 {
		r.Age = time.Hour
	}
	if r.Bytes <= 0 {
		r.Bytes = 4 << 20
	}
	if r.Names <= 0 {
		r.Names = 7 * 24 * time.Hour
	}
	return r
}
