package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/traced"
)

var _ engine.Propagator = (*Tracer)(nil)

// w3c is the form in which traces go on elsewhere, whatever propagator the program has: MCP, and what is on record, know no other. Baggage stays here.
var w3c propagation.TraceContext

// Inject implements [engine.Propagator].
func (t *Tracer) Inject(ctx context.Context, set func(name, value string)) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		w3c.Inject(ctx, carrier{set: set})
	}
}

// Note implements [engine.Propagator].
func (t *Tracer) Note(ctx context.Context, name, value string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String(name, value))
	}
}

// under puts a run where it lies: in the span of whoever called, here or, by what came with the call, elsewhere; else in that of what it follows. What it follows and does not lie in it has a link to.
func (t *Tracer) under(ctx context.Context, run *engine.Run) (context.Context, []trace.Link) {
	follows := trace.SpanContextFromContext(placed(context.Background(), run.Trace))
	if !trace.SpanContextFromContext(ctx).IsValid() {
		if parent, state := traced.Remote(ctx); parent != "" {
			ctx = extracted(ctx, parent, state)
		}
	}
	if ctx = placed(ctx, run.Trace); !follows.IsValid() || trace.SpanContextFromContext(ctx).SpanID() == follows.SpanID() {
		return ctx, nil
	}
	id := run.ID
	if run.Attempt <= 1 && run.ResumeFrom == nil {
		id = run.ParentRunID // it handed over
	}
	return ctx, []trace.Link{{SpanContext: follows, Attributes: []attribute.KeyValue{attribute.String("pawl.run.id", id)}}}
}

// placed gives a context in no span the one of a traceparent.
func placed(ctx context.Context, parent string) context.Context {
	if parent == "" || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return extracted(ctx, parent, "")
}

func extracted(ctx context.Context, parent, state string) context.Context {
	return w3c.Extract(ctx, carrier{parent: parent, state: state})
}

// carrier is the headers of one span.
type carrier struct {
	parent, state string
	set           func(name, value string)
}

func (c carrier) Get(name string) string {
	switch name {
	case traced.Parent:
		return c.parent
	case traced.State:
		return c.state
	}
	return ""
}

func (c carrier) Set(name, value string) { c.set(name, value) }

func (c carrier) Keys() []string { return []string{traced.Parent, traced.State} }
