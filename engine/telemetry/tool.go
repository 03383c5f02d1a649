package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// startTool opens the span of a call, which says which one it is.
func (t *Tracer) startTool(ctx context.Context, of whose, e engine.Effect, c *journal.Called, began time.Time) (context.Context, trace.Span) {
	const does = "execute_tool"
	return t.start(ctx, of, e, does, c.Name, internal, began, func(attrs []attribute.KeyValue) []attribute.KeyValue {
		attrs = append(attrs, attribute.String("gen_ai.operation.name", does),
			attribute.String("gen_ai.tool.name", c.Name), attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.tool.call.id", c.ID))
		if t.content&OnSpans != 0 {
			attrs = append(attrs, attribute.String("gen_ai.tool.call.arguments", valid(c.Input)))
		}
		return attrs
	})
}

func (t *Tracer) tool(ctx context.Context, of whose, e engine.Effect, c *journal.Called) (context.Context, func(engine.Traced)) {
	began, name := time.Now(), c.Name
	within, span := t.startTool(ctx, of, e, c, began)
	return within, func(d engine.Traced) {
		now := time.Now()
		kind := t.fail(span, d.Err)
		if out, ok := d.Outcome.(journal.ToolFinished); ok {
			if span.IsRecording() {
				span.SetAttributes(attribute.String("pawl.tool.outcome", string(out.Outcome)))
				if t.content&OnSpans != 0 {
					span.SetAttributes(attribute.String("gen_ai.tool.call.result", valid(out.Content)))
				}
			}
			if kind == "" && out.Outcome != journal.OutcomeOK {
				kind = string(out.Outcome)
				failed(span, kind, t.said(out.Content))
			}
		}
		t.end(span, now)
		if m := &t.metrics; m.tool.Enabled(within) {
			record(within, m.tool, now.Sub(began), withError(kind, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name)))
		}
	}
}

// judged tells of a call that was refused: it never runs, and so has a span that says no more than why. The name is the model's own word: only one that is refused for its input, or by a rule, is a tool's.
func (t *Tracer) judged(ctx context.Context, of whose, e engine.Effect, c message.ToolCall) func(engine.Traced) {
	began := time.Now()
	return func(d engine.Traced) {
		out, ok := d.Outcome.(journal.ToolJudged)
		if !ok || !out.Refused() {
			return
		}
		kind := string(journal.OutcomeDenied)
		if out.Verdict != "deny" {
			kind = out.Verdict
		}
		call := journal.CalledOf(c)
		_, span := t.startTool(ctx, of, e, &call, began)
		span.SetAttributes(attribute.String("pawl.tool.outcome", kind))
		failed(span, kind, t.said(out.Reason))
		span.End()
	}
}

// ask is a question to a person, as long as somebody is there to be asked.
func (t *Tracer) ask(ctx context.Context, of whose, e engine.Effect, q *engine.Ask) (context.Context, func(engine.Traced)) {
	within, span := t.start(ctx, of, e, "ask_person", "", internal, time.Now(), func(attrs []attribute.KeyValue) []attribute.KeyValue {
		attrs = append(attrs, attribute.String("pawl.question.id", q.ID))
		if q.Call != nil {
			attrs = append(attrs, attribute.String("gen_ai.tool.name", q.Call.Name), attribute.String("gen_ai.tool.call.id", q.Call.ID))
		}
		return attrs
	})
	return within, func(d engine.Traced) {
		t.fail(span, d.Err)
		if a, ok := d.Outcome.(journal.Answered); ok {
			span.SetAttributes(attribute.Bool("pawl.question.approved", a.Approved))
		} else if errorType(d.Err) == "" {
			span.SetAttributes(attribute.Bool("pawl.question.waits", true))
		}
		span.End()
	}
}
