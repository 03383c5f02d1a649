package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// providers are the conventions' names of ours.
var providers = map[string]string{"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}

// names parts "anthropic/claude-sonnet-5-5", as the catalogue has it.
func names(model string) (provider, name string) {
	provider, name, ok := strings.Cut(model, "/")
	if !ok {
		return "_OTHER", model
	}
	if known, ok := providers[provider]; ok {
		provider = known
	}
	return provider, name
}

// call is a model call under way.
type call struct {
	t              *Tracer
	of             whose
	span           trace.Span
	began          time.Time
	provider, name string
}

func (t *Tracer) begin(ctx context.Context, of whose, e engine.Effect, asked string) (context.Context, *call) {
	c := &call{t: t, of: of, began: time.Now()}
	first := askedOf(ctx)
	if asked != "" {
		c.provider, c.name = names(asked)
		first.set(c.provider, c.name)
	} else {
		c.provider, c.name = first.get()
	}
	ctx, c.span = t.start(ctx, of, e, "chat", c.name, client, c.began, func(attrs []attribute.KeyValue) []attribute.KeyValue { return c.measured(attrs, "") })
	return ctx, c
}

func (t *Tracer) chat(ctx context.Context, of whose, e engine.Effect, asks engine.Generate) (context.Context, func(engine.Traced)) {
	within, c := t.begin(ctx, of, e, asks.Model)
	return within, func(d engine.Traced) {
		now := time.Now()
		reply, _ := d.Outcome.(journal.ModelFinished)
		kind := t.fail(c.span, d.Err)
		if kind == "" && d.Err == nil && reply.Stop == model.StopWindow && reply.Message.Blank() && reply.Usage.Total() == 0 { // the provider's error, which the loop does something about
			kind = "context_overflow"
			failed(c.span, kind, t.said(reply.Reason))
		}
		if c.span.IsRecording() {
			c.span.SetAttributes(c.response(reply)...)
			if !d.First.IsZero() {
				c.span.SetAttributes(attribute.Bool("gen_ai.request.stream", true), attribute.Float64("gen_ai.response.time_to_first_chunk", d.First.Sub(c.began).Seconds()))
			}
			if t.content&OnSpans != 0 {
				for _, a := range conversation(asks, reply) {
					c.span.SetAttributes(attribute.String(string(a.Key), a.Value.String()))
				}
			}
		}
		t.end(c.span, now)
		c.measure(within, now, kind, reply.Model, d.First, reply.Usage)
		if t.content&OnEvents != 0 {
			t.details(within, now, c, kind, asks, reply)
		}
	}
}

// said is a text that may be told.
func (t *Tracer) said(text string) string {
	if t.content&OnSpans == 0 {
		return ""
	}
	return text
}

// compact is the call that writes a summary. Which model it asks is known when it is over.
func (t *Tracer) compact(ctx context.Context, of whose, e engine.Effect) (context.Context, func(engine.Traced)) {
	within, c := t.begin(ctx, of, e, "")
	return within, func(d engine.Traced) {
		now := time.Now()
		out, _ := d.Outcome.(journal.Compacted)
		if out.Model != "" {
			c.provider, c.name = names(out.Model)
			c.span.SetName("chat " + c.name)
		}
		kind := t.fail(c.span, d.Err)
		if kind == "" && out.Error != "" {
			kind = "_OTHER"
			failed(c.span, kind, t.said(out.Error))
		}
		c.span.SetAttributes(append(c.usage(out.Usage, out.CostMicros), attribute.String("gen_ai.provider.name", c.provider), attribute.String("gen_ai.request.model", c.name),
			attribute.Int("pawl.compaction.tokens_before", out.TokensBefore), attribute.Int("pawl.compaction.tokens_after", out.TokensAfter))...)
		t.end(c.span, now)
		if out.Usage.Total() > 0 || d.Err != nil { // else perhaps no model was asked
			c.measure(within, now, kind, "", time.Time{}, out.Usage)
		}
	}
}

// measured adds the attributes of a call's measurements, which its span has, too.
func (c *call) measured(attrs []attribute.KeyValue, answered string) []attribute.KeyValue {
	attrs = append(attrs,
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", c.provider), attribute.String("gen_ai.request.model", c.name))
	if answered != "" {
		attrs = append(attrs, attribute.String("gen_ai.response.model", answered))
	}
	return attrs
}

// measure adds what a call took to the histograms.
func (c *call) measure(ctx context.Context, now time.Time, kind, answered string, first time.Time, u model.Usage) {
	m := &c.t.metrics
	if !m.calls(ctx) {
		return
	}
	attrs := c.measured(make([]attribute.KeyValue, 0, 8), answered)
	if !first.IsZero() {
		record(ctx, m.first, first.Sub(c.began), attrs)
	}
	record(ctx, m.chat, now.Sub(c.began), withError(kind, attrs[:len(attrs):len(attrs)]...))
	m.count(ctx, "input", input(u), attrs)
	m.count(ctx, "output", u.Output, attrs)
}

// input are all tokens that went in: the conventions count those of the cache, too.
func input(u model.Usage) int { return u.Input + u.CacheRead + u.CacheWrite }

// usage is what a call took.
func (c *call) usage(u model.Usage, costMicros *int64) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 16), attribute.Int("gen_ai.usage.input_tokens", input(u)), attribute.Int("gen_ai.usage.output_tokens", u.Output))
	for _, some := range []struct {
		name string
		n    int
	}{{"gen_ai.usage.cache_read.input_tokens", u.CacheRead}, {"gen_ai.usage.cache_creation.input_tokens", u.CacheWrite}, {"gen_ai.usage.reasoning.output_tokens", u.Reasoning}} {
		if some.n > 0 {
			attrs = append(attrs, attribute.Int(some.name, some.n))
		}
	}
	if costMicros != nil {
		attrs = append(attrs, attribute.Float64("pawl.cost_usd", float64(*costMicros)/1e6))
	}
	return attrs
}

// response is what is known of a reply, without what it says.
func (c *call) response(d journal.ModelFinished) []attribute.KeyValue {
	if d.Usage.Total() == 0 && d.Message.IsZero() {
		return nil
	}
	attrs := c.usage(d.Usage, d.CostMicros)
	if d.ID != "" {
		attrs = append(attrs, attribute.String("gen_ai.response.id", d.ID))
	}
	if d.Model != "" {
		attrs = append(attrs, attribute.String("gen_ai.response.model", d.Model))
	}
	if d.Stop != "" {
		attrs = append(attrs, attribute.StringSlice("gen_ai.response.finish_reasons", []string{finish(d.Stop)}))
	}
	return attrs
}

// finish is a reason in the conventions' words, or the provider's own.
func finish(s model.StopReason) string {
	switch s {
	case model.StopEnd, model.StopSequence:
		return "stop"
	case model.StopTools:
		return "tool_call"
	case model.StopLength, model.StopWindow:
		return "length"
	case model.StopFilter, model.StopRefusal:
		return "content_filter"
	case model.StopBadCall:
		return "error"
	}
	return string(s)
}

// details is the event of a model call, with what was said.
func (t *Tracer) details(ctx context.Context, now time.Time, c *call, kind string, e engine.Generate, reply journal.ModelFinished) {
	const name = "gen_ai.client.inference.operation.details"
	if !t.logger.Enabled(ctx, log.EnabledParameters{Severity: log.SeverityInfo, EventName: name}) {
		return
	}
	var r log.Record
	r.SetEventName(name)
	r.SetTimestamp(now)
	r.SetSeverity(log.SeverityInfo)
	r.AddAttributes(append(c.measured(c.of.attributes(), ""), withError(kind, c.response(reply)...)...)...)
	r.AddAttributes(conversation(e, reply)...)
	t.logger.Emit(ctx, r)
}
