package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
)

// toolAttributes say which call it is.
func (t *Tracer) toolAttributes(c journal.Called) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 8), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", c.Name), attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.tool.call.id", c.ID))
	if t.content&OnSpans != 0 {
		attrs = append(attrs, attribute.String("gen_ai.tool.call.arguments", valid(c.Input)))
	}
	return attrs
}

func (t *Tracer) tool(ctx context.Context, run engine.Run, key journal.Key, e engine.UseTool) (context.Context, func(engine.Traced)) {
	began := time.Now()
	ctx, span := t.start(ctx, run, key, "execute_tool "+e.Call.Name, trace.SpanKindInternal, began, t.toolAttributes(e.Call)...)
	return ctx, func(d engine.Traced) {
		now := time.Now()
		kind := t.fail(span, d.Err)
		if out, ok := d.Outcome.(journal.ToolFinished); ok {
			span.SetAttributes(attribute.String("pawl.tool.outcome", string(out.Outcome)))
			if t.content&OnSpans != 0 {
				span.SetAttributes(attribute.String("gen_ai.tool.call.result", valid(out.Content)))
			}
			if kind == "" && out.Outcome != journal.OutcomeOK {
				kind = string(out.Outcome)
				failed(span, kind, t.said(out.Content))
			}
		}
		span.End(trace.WithTimestamp(now))
		t.executed(ctx, e.Call.Name, now.Sub(began), kind)
	}
}

func (t *Tracer) executed(ctx context.Context, tool string, took time.Duration, kind string) {
	t.metrics.record(ctx, t.metrics.tool, took, withError(kind, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", tool)))
}

// judged tells of a call that was refused: it never runs, and so has a span that says no more than why. The name is the model's own word: only one that is refused for its input, or by a rule, is a tool's.
func (t *Tracer) judged(ctx context.Context, run engine.Run, key journal.Key, e engine.Judge) func(engine.Traced) {
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
		_, span := t.start(ctx, run, key, "execute_tool "+e.Call.Name, trace.SpanKindInternal, began, t.toolAttributes(journal.CalledOf(e.Call))...)
		span.SetAttributes(attribute.String("pawl.tool.outcome", kind))
		failed(span, kind, t.said(out.Reason))
		span.End()
	}
}

// ask is a question to a person, as long as somebody is there to be asked.
func (t *Tracer) ask(ctx context.Context, run engine.Run, key journal.Key, e engine.Ask) (context.Context, func(engine.Traced)) {
	began := time.Now()
	attrs := append(make([]attribute.KeyValue, 0, 4), attribute.String("pawl.question.id", e.ID))
	if e.Call != nil {
		attrs = append(attrs, attribute.String("gen_ai.tool.name", e.Call.Name), attribute.String("gen_ai.tool.call.id", e.Call.ID))
	}
	ctx, span := t.start(ctx, run, key, "ask_person", trace.SpanKindInternal, began, attrs...)
	return ctx, func(d engine.Traced) {
		t.fail(span, d.Err)
		if a, ok := d.Outcome.(journal.Answered); ok {
			span.SetAttributes(attribute.Bool("pawl.question.approved", a.Approved))
		} else if errorType(d.Err) == "" {
			span.SetAttributes(attribute.Bool("pawl.question.waits", true))
		}
		span.End()
	}
}
