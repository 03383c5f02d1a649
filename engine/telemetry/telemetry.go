package telemetry

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

// Content says where what was said and read goes. It may hold secrets, and grows: each model call has its whole conversation.
type Content int

// The places; together: OnSpans|OnEvents. 0 is nowhere.
const (
	OnSpans  Content = 1 << iota // attributes of spans, as JSON; the texts of errors too
	OnEvents                     // an event gen_ai.client.inference.operation.details for each model call
)

// ContentFromEnv is what the environment asks for, by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: SPAN_ONLY (or true), EVENT_ONLY, SPAN_AND_EVENT; anything else is nowhere.
func ContentFromEnv() Content {
	switch strings.ToUpper(strings.TrimSpace(os.Getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))) {
	case "TRUE", "SPAN_ONLY":
		return OnSpans
	case "EVENT_ONLY":
		return OnEvents
	case "SPAN_AND_EVENT":
		return OnSpans | OnEvents
	}
	return 0
}

// Config makes a Tracer. What is nil is the program's: otel.SetTracerProvider and the like.
type Config struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	LoggerProvider log.LoggerProvider
	Content        Content // 0: what is said stays here
}

// Tracer is an [engine.Tracer]: give it to pawl.Options.Tracer or agent.WithTracer. Safe for concurrent use; it has no goroutine and nothing to close.
type Tracer struct {
	tracer  trace.Tracer
	idle    bool // the tracer is OpenTelemetry's own that does nothing: its spans begin and end, but what they would be told is not even put together
	logger  log.Logger
	metrics metrics
	content Content
}

// scope is the name of the instrumentation.
const scope = "github.com/pawl-dev/pawl/engine/telemetry"

// New makes a Tracer. It fails when the meter provider does.
func New(cfg Config) (*Tracer, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.LoggerProvider == nil {
		cfg.LoggerProvider = otel.GetLoggerProvider()
	}
	t := &Tracer{tracer: cfg.TracerProvider.Tracer(scope), logger: cfg.LoggerProvider.Logger(scope), content: cfg.Content}
	_, t.idle = t.tracer.(noop.Tracer)
	var err error
	if t.metrics, err = newMetrics(cfg.MeterProvider.Meter(scope)); err != nil {
		return nil, errdefs.Internal.Errorf("telemetry: make the histograms: %w", err)
	}
	return t, nil
}

// TraceRun opens the span of an attempt. Without a span above it, it lies in that of what it follows, in whichever process that was: an earlier attempt, the part of it before it was resumed, the agent that handed over. With one, it has a link to
// that.
func (t *Tracer) TraceRun(ctx context.Context, run engine.Run) (context.Context, func(error)) {
	began := time.Now()
	ctx, span := t.startRun(ctx, &run, began)
	asked := new(asked)
	within := context.WithValue(ctx, askedKey{}, asked)
	agent := run.AgentID
	return within, func(err error) {
		now := time.Now()
		if provider, model := asked.get(); provider != "" && span.IsRecording() {
			span.SetAttributes(attribute.String("gen_ai.provider.name", provider), attribute.String("gen_ai.request.model", model))
		}
		kind := t.fail(span, err)
		if i := (engine.InterruptedError{}); asInterrupt(err, &i) {
			span.SetAttributes(attribute.String("pawl.run.interrupted", string(i.Cause)))
		}
		t.end(span, now)
		if m := &t.metrics; m.run.Enabled(within) {
			record(within, m.run, now.Sub(began), withError(kind, attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", agent)))
		}
	}
}

func (t *Tracer) startRun(ctx context.Context, run *engine.Run, began time.Time) (context.Context, trace.Span) {
	const name = "invoke_agent"
	ctx, link := t.under(ctx, run)
	if t.idle {
		return t.tracer.Start(ctx, name)
	}
	attrs := append(ofRun(run).attributes(),
		attribute.String("gen_ai.operation.name", name), attribute.String("pawl.run.id", run.ID), attribute.Int("pawl.run.attempt", run.Attempt))
	if run.ResumeFrom != nil {
		attrs = append(attrs, attribute.Bool("pawl.run.resumed", true))
	}
	if run.ParentRunID != "" {
		attrs = append(attrs, attribute.String("pawl.run.parent_id", run.ParentRunID))
	}
	return t.tracer.Start(ctx, name+" "+run.AgentID, internal, trace.WithTimestamp(began), trace.WithAttributes(attrs...), trace.WithLinks(link...))
}

// asked is which model a run asks: known from its first call on.
type asked struct {
	mu              sync.Mutex
	provider, model string
}

type askedKey struct{}

func askedOf(ctx context.Context) *asked {
	if a, ok := ctx.Value(askedKey{}).(*asked); ok {
		return a
	}
	return new(asked)
}

func (a *asked) get() (provider, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.provider, a.model
}

func (a *asked) set(provider, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.provider == "" {
		a.provider, a.model = provider, model
	}
}

// whose says whose span it is.
type whose struct{ agent, session, run string }

func ofRun(run *engine.Run) whose { return whose{run.AgentID, run.Session, run.ID} }

// attributes have room for those of the span itself.
func (w whose) attributes() []attribute.KeyValue {
	return append(make([]attribute.KeyValue, 0, 12),
		attribute.String("gen_ai.agent.id", w.agent), attribute.String("gen_ai.agent.name", w.agent), attribute.String("gen_ai.conversation.id", w.session))
}

// TraceEffect opens the span of a model call, a tool call or a question; what else a run does has none.
func (t *Tracer) TraceEffect(ctx context.Context, run engine.Run, e engine.Effect) (context.Context, func(engine.Traced)) {
	of := ofRun(&run)
	ctx = placed(ctx, run.Trace)
	switch bare := engine.Bare(e).(type) {
	case engine.Generate:
		return t.chat(ctx, of, e, bare)
	case engine.Compact:
		return t.compact(ctx, of, e)
	case engine.UseTool:
		return t.tool(ctx, of, e, &bare.Call)
	case engine.Judge:
		return ctx, t.judged(ctx, of, e, bare.Call)
	case engine.Ask:
		return t.ask(ctx, of, e, &bare)
	}
	return ctx, nil
}

// The kinds of spans, made once.
var (
	client   = trace.WithSpanKind(trace.SpanKindClient)
	internal = trace.WithSpanKind(trace.SpanKindInternal)
)

// start opens a span of an effect, which is named by what is done, and to what. add puts its own attributes behind those of every effect.
func (t *Tracer) start(
	ctx context.Context, of whose, e engine.Effect, does, what string, kind trace.SpanStartOption, began time.Time, add func([]attribute.KeyValue) []attribute.KeyValue,
) (context.Context, trace.Span) {
	if t.idle {
		return t.tracer.Start(ctx, does)
	}
	if what != "" {
		does += " " + what
	}
	attrs := add(append(of.attributes(), attribute.String("pawl.run.id", of.run), attribute.String("pawl.effect", e.Key().String())))
	return t.tracer.Start(ctx, does, kind, trace.WithTimestamp(began), trace.WithAttributes(attrs...))
}

// end closes a span that was over at a time.
func (t *Tracer) end(span trace.Span, at time.Time) {
	if t.idle {
		span.End()
		return
	}
	span.End(trace.WithTimestamp(at))
}
