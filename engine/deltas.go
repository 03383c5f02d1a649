package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// Deltas publishes what is to be seen of a running effect before it is done. Made once an effect, it costs nothing a delta.
type Deltas struct {
	host  Host
	event event.Event
	on    bool
}

// DeltasOf is for the effect of a key, which must have begun. attempt counts the tries at it, from 0.
func DeltasOf(run *Run, host Host, key journal.Key, attempt int) Deltas {
	d := Deltas{host: host, on: Listening(host)}
	if d.on {
		d.event = event.Event{Entry: journal.Entry{Session: run.Session, Run: run.ID, Key: key}, Attempt: attempt, ParentRun: run.ParentRunID}
		if run.Log != nil {
			d.event.Seq = run.Log.Begun(key)
		}
	}
	return d
}

// On reports whether anybody listens.
func (d *Deltas) On() bool { return d.on }

// Emit publishes a delta, if it says something and anybody listens.
func (d *Deltas) Emit(ctx context.Context, kind event.Delta, stream, text string) {
	if d.on && text != "" {
		d.emit(ctx, kind, stream, text)
	}
}

// emit copies the event once, into the call.
func (d *Deltas) emit(ctx context.Context, kind event.Delta, stream, text string) {
	defer func() { _ = recover() }() // as in publish
	d.event.Delta, d.event.Stream, d.event.Text = kind, stream, text
	_ = d.host.Publish(ctx, d.event)
}

// Waits publishes that the run waits for what no entry tells the beginning of, and how long at most; 0: that is not known.
func (d *Deltas) Waits(ctx context.Context, what string, most time.Duration) {
	d.event.Wait = most
	defer func() { d.event.Wait = 0 }()
	d.Emit(ctx, event.Waiting, "", what)
}

// Again publishes that the effect is tried again, after a wait, and why. The deltas from then on are of the next attempt.
func (d *Deltas) Again(ctx context.Context, why string, wait time.Duration) {
	d.event.Attempt++
	d.event.Wait = wait
	defer func() { d.event.Wait = 0 }()
	d.Emit(ctx, event.Retry, "", cmp.Or(why, "no reason was given"))
}

// Publish hands an event to a host, for a Performer: an error or a panic of the host does not fail the run.
func Publish(ctx context.Context, host Host, e event.Event) { publish(ctx, host, e) }

// publish hands an event to a host. A listener cannot fail a run: not by an error, and not by a panic.
func publish(ctx context.Context, host Host, e event.Event) {
	defer func() { _ = recover() }()
	_ = host.Publish(ctx, e)
}
