package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/tool"
)

// Inside is what a tool finds in its context of the run that uses it: by it a tool asks a person, or starts a run below. An engine's Performer sets it.
type Inside struct {
	Run       Run
	Host      Host        // see [Relay]
	Key       journal.Key // of the call
	Performer Performer   // of the run's engine

	questions *atomic.Int64
	above     *Inside
}

type insideKey struct{}

// WithInside is for a Performer that runs a tool: it is tool.WithCall, with what the tool needs to go on below the run. What it starts there is bound by b. All three are copied. The
// call's Commands are those of the run; nil for one without a journal.
func WithInside(ctx context.Context, in *Inside, b *Bounds, call *tool.Call) context.Context {
	c := &inside{Context: ctx, in: *in, bounds: *b, call: *call}
	c.in.questions = &c.questions
	c.in.above, _ = ctx.Value(insideKey{}).(*Inside)
	if run := &in.Run; run.Log != nil {
		c.commands = commands{log: run.Log, run: run.ID, call: call.ID, below: run.Bounds.Depth > 0, background: run.Background}
		c.call.Commands = &c.commands
	}
	return c
}

// inside is a context with a call, an Inside and bounds, in one piece: each tool call has one.
type inside struct {
	context.Context
	in        Inside
	bounds    Bounds
	call      tool.Call
	commands  commands
	questions atomic.Int64
}

func (c *inside) Value(key any) any {
	switch key.(type) {
	case insideKey:
		return &c.in
	case boundsKey:
		return &c.bounds
	case tool.CallKey:
		return &c.call
	}
	return c.Context.Value(key)
}

// InsideOf gives the run that a tool is used by; ok is false outside of any.
func InsideOf(ctx context.Context) (in Inside, ok bool) {
	if p, is := ctx.Value(insideKey{}).(*Inside); is {
		return *p, true
	}
	return in, false
}

// Above gives the call that the run is below, by which another run started it; ok is false when no run did, in this process.
func (in Inside) Above() (above Inside, ok bool) {
	if in.above == nil {
		return above, false
	}
	return *in.above, true
}

// Ask puts a question to a person, durably: it is on record before anybody is asked, the answer before it is returned, and when nobody is there Ask fails with an
// InterruptedError. A tool that is read-only or idempotent hands that on: the run parks, the answer may come from another process, and when the run is resumed the
// tool runs again, and the same questions, in the same order, give the answers on record.
func (in Inside) Ask(ctx context.Context, p Prompt) (Reply, error) {
	p.ID = in.Key.ID
	if n := in.questions.Add(1); n > 1 {
		p.ID = fmt.Sprintf("%s/question-%d", in.Key.ID, n)
	}
	p.TTL = in.Run.AskTTL.Milliseconds()
	var e Effect = Ask{Asked: p.Asked, Question: true, Schema: string(p.Schema)}
	if in.Key.Scope != "" {
		e = Scoped{Scope: in.Key.Scope, Effect: e}
	}
	a, err := Do[journal.Answered](ctx, Local(in.Run, in.Host, in.Performer), e)
	return Reply{a}, err
}

// Child is the host of a run below: it publishes, asks and reports where this run does, and is interrupted when this run is.
func (in Inside) Child() Host { return childHost{in.Host, in.Run.intr} }

// childHost shares the interrupt of the run above: whoever reads it first, all see it.
type childHost struct {
	Host
	intr *latch
}

func (h childHost) Listening() bool { return Listening(h.Host) }

func (h childHost) interrupts() *latch { return h.intr }

// Relay is Host, but for what is published: that goes to To, from any goroutine.
type Relay struct {
	Host
	To Publisher
}

// Publish implements [Host].
func (r Relay) Publish(ctx context.Context, e event.Event) error { return r.To.Publish(ctx, e) }

// Listening reports whether the host listens: see [Listening].
func (r Relay) Listening() bool { return Listening(r.Host) }

func (r Relay) interrupts() *latch { return above(r.Host) }
