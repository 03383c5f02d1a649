package engine

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/traced"
	"github.com/pawl-dev/pawl/journal"
)

// Tracer stands around the attempts of runs and around their effects, for traces and metrics: see engine/telemetry. What it puts into a context is found there by models, hooks, tools, and the runs
// below, which it stands around too ([Bounds]). It has no say: what it does with outcomes changes nothing, and its panics are dropped. Effects whose outcome is on record are
// not performed, and so not traced; a replay performs none. Safe for concurrent use; what it does is waited for, on the run's way.
type Tracer interface {
	// TraceRun is called when an attempt is about to begin, or to go on; done, which may be nil, once when it is over, with the Err of its Result, or with why it could not begin. [Run.Trace] says what it follows.
	TraceRun(ctx context.Context, run Run) (_ context.Context, done func(err error))
	// TraceEffect is called when an effect begins; done, which may be nil, once when it is performed and before that is on record. Of a tool in the background it is the call, not what goes on behind it.
	TraceEffect(ctx context.Context, run Run, e Effect) (_ context.Context, done func(Traced))
}

// Propagator is a Tracer whose traces go on beyond the process: in MCP servers, in commands, in agents elsewhere, and in the process that resumes the run.
type Propagator interface {
	Tracer
	// Inject calls set with the headers of the W3C's Trace Context that say in which span ctx lies: traceparent, and tracestate if there is one. In none it calls nothing.
	Inject(ctx context.Context, set func(name, value string))
	// Note puts an attribute on the span that ctx lies in.
	Note(ctx context.Context, name, value string)
}

// Traced is what came of an effect.
type Traced struct {
	Outcome journal.Data // may be nil
	Err     error
	First   time.Time // when the first text of a model call came; zero: none did, or nobody listens and there is no stream
}

// TraceRun has the tracers that bind run stand around an attempt; only agent.Run needs it. run.Trace is its own then: the first Propagator says it, and is who is asked below; without one it is where the run was asked for. done is never nil.
func TraceRun(ctx context.Context, run *Run) (_ context.Context, done func(err error)) {
	var all []func(error)
	var first Propagator
	for _, t := range run.Bounds.Tracers {
		if p, ok := t.(Propagator); ok && first == nil {
			first = p
		}
		quietly(func() {
			next, done := t.TraceRun(ctx, *run)
			if next != nil {
				ctx = next
			}
			if done != nil {
				all = append(all, done)
			}
		})
	}
	if first != nil {
		ctx = traced.With(ctx, quiet{first})
	}
	run.Trace = ""
	traced.Inject(ctx, func(name, value string) {
		if name == traced.Parent {
			run.Trace = value
		}
	})
	return ctx, func(err error) {
		for i := len(all) - 1; i >= 0; i-- {
			quietly(func() { all[i](err) })
		}
	}
}

// quiet is a Propagator whose panics are dropped.
type quiet struct{ of Propagator }

func (q quiet) Inject(ctx context.Context, set func(name, value string)) {
	quietly(func() { q.of.Inject(ctx, set) })
}

func (q quiet) Note(ctx context.Context, name, value string) {
	quietly(func() { q.of.Note(ctx, name, value) })
}

// withTracers performs an effect with the tracers around it.
func withTracers(ctx context.Context, p Performer, run *Run, host Host, e Effect) (d journal.Data, err error) {
	var room [2]func(Traced) // there are seldom more tracers
	all := room[:0]
	for _, t := range run.Bounds.Tracers {
		quietly(func() {
			next, done := t.TraceEffect(ctx, *run, e)
			if next != nil {
				ctx = next
			}
			if done != nil {
				all = append(all, done)
			}
		})
	}
	var noted *noting
	if _, ok := Bare(e).(Generate); ok && len(all) > 0 && Listening(host) {
		noted = &noting{Host: host}
		host = noted
	}
	defer func() { // an effect may end its goroutine
		var first time.Time
		if noted != nil {
			first = noted.first
		}
		for i := len(all) - 1; i >= 0; i-- {
			quietly(func() { all[i](Traced{d, err, first}) })
		}
	}()
	return perform(ctx, p, run, host, e)
}

// quietly drops a panic.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

// noting notes when the first text comes.
type noting struct {
	Host
	first time.Time
}

func (n *noting) Publish(ctx context.Context, e event.Event) error {
	if n.first.IsZero() && (e.Delta == event.TextDelta || e.Delta == event.ReasoningDelta) {
		n.first = time.Now()
	}
	return n.Host.Publish(ctx, e)
}

func (n *noting) Listening() bool { return Listening(n.Host) }

func (n *noting) interrupts() *latch { return above(n.Host) }
