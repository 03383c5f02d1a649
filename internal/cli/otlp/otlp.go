// Package otlp is how a program sends what [telemetry] tells to a collector: traces, metrics and events by OTLP, as OpenTelemetry's own environment variables say. Where they say nothing, nothing is made.
package otlp

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/secret"

	"github.com/go-logr/logr"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	lognoop "go.opentelemetry.io/otel/log/noop"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/traced"
)

// flushTime is how long the end of a program may wait for a collector.
const flushTime = 2 * time.Second

// Export is what a program sends. Make it with New, and close it before the program ends.
type Export struct {
	name, version string
	warn          func(text string)
	flushTime     time.Duration // that Close may take

	once   sync.Once
	tracer engine.Tracer
	err    error
	over   context.Context // ends when nothing is sent any more
	cancel context.CancelFunc
	ends   []func(context.Context) error
	failed sync.Once
}

// New makes an Export of a program, which is service.name unless OTEL_SERVICE_NAME is set. warn is told, once, that something could not be sent.
func New(name, version string, warn func(text string)) *Export {
	return &Export{name: name, version: version, warn: warn, flushTime: flushTime}
}

// Tracer is what stands around runs; nil: the environment asks for nothing. The first call makes what it needs. Its error is wrong configuration, errdefs.Validation.
func (x *Export) Tracer() (engine.Tracer, error) {
	if x == nil {
		return nil, nil
	}
	x.once.Do(x.open)
	return x.tracer, x.err
}

func (x *Export) open() {
	traces, metrics, logs := asked("TRACES"), asked("METRICS"), asked("LOGS")
	for _, s := range []signal{traces, metrics, logs} {
		if s.err != nil {
			x.err = s.err
			return
		}
	}
	if !traces.on && !metrics.on && !logs.on {
		return
	}
	content, err := contentAsked()
	if err != nil {
		x.err = err
		return
	}
	if logs.on = logs.on && content&telemetry.OnEvents != 0; !traces.on && !metrics.on && !logs.on {
		return
	}
	x.over, x.cancel = context.WithCancel(context.Background())
	ctx := x.over
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", x.name), attribute.String("service.version", x.version)), resource.WithFromEnv())
	if err != nil {
		x.err = errdefs.Validation.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
		return
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(x.lost))
	otel.SetLogger(logr.Discard()) // it quotes headers that it can't read, keys among them
	cfg := telemetry.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), LoggerProvider: lognoop.NewLoggerProvider(), Content: content}
	if traces.on {
		e, err := newSpans(ctx, traces)
		if x.wrong(err) {
			return
		}
		p := trace.NewTracerProvider(trace.WithBatcher(e), trace.WithResource(about))
		cfg.TracerProvider, x.ends = p, append(x.ends, p.Shutdown)
	}
	if metrics.on {
		e, err := newMeasurements(ctx, metrics)
		if x.wrong(err) {
			return
		}
		p := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(e)), metric.WithResource(about))
		cfg.MeterProvider, x.ends = p, append(x.ends, p.Shutdown)
	}
	if logs.on {
		e, err := newEvents(ctx, logs)
		if x.wrong(err) {
			return
		}
		p := log.NewLoggerProvider(log.WithProcessor(log.NewBatchProcessor(e)), log.WithResource(about))
		cfg.LoggerProvider, x.ends = p, append(x.ends, p.Shutdown)
	}
	t, err := telemetry.New(cfg)
	if x.wrong(err) {
		return
	}
	x.tracer = t
}

// wrong notes why an exporter could not be made.
func (x *Export) wrong(err error) bool {
	if err != nil {
		x.err = errdefs.Validation.Errorf("OpenTelemetry: %w: see the variables OTEL_EXPORTER_OTLP_*", err)
	}
	return err != nil
}

// lost tells of what was not sent: once, since a collector that is away stays away.
func (x *Export) lost(err error) {
	x.failed.Do(func() {
		x.warn("OpenTelemetry: not all could be sent: " + err.Error())
	})
}

// Close sends what is left, for 2 s at most.
func (x *Export) Close() {
	if x == nil {
		return
	}
	if x.once.Do(func() {}); x.cancel == nil { // nothing begins any more
		return
	}
	defer x.cancel()
	ctx, cancel := context.WithTimeout(x.over, x.flushTime)
	defer cancel()
	var all sync.WaitGroup
	for _, end := range x.ends { // each ends with ctx, whatever goes on behind it
		all.Go(func() {
			if err := end(ctx); err != nil {
				x.lost(err)
			}
		})
	}
	all.Wait()
}

// signal is one of the three kinds of things that are sent.
type signal struct {
	on, grpc bool
	near     bool // nothing says where: it is sent to this machine, and not by TLS, as OpenTelemetry's default is
	err      error
}

// asked is what the environment says of a signal.
func asked(name string) (s signal) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return s
	}
	switch to := os.Getenv("OTEL_" + name + "_EXPORTER"); to {
	case "":
		s.on = cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+name+"_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
	case "otlp":
		s.on = true
	case "none":
	default:
		s.err = errdefs.Validation.Errorf("OTEL_%s_EXPORTER is %q: want otlp or none", name, to)
		return s
	}
	if !s.on {
		return s
	}
	switch by := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+name+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); by {
	case "", "http/protobuf":
	case "grpc":
		s.grpc = true
	default:
		s.err = errdefs.Validation.Errorf("the protocol of OpenTelemetry's %s is %q: set OTEL_EXPORTER_OTLP_PROTOCOL to http/protobuf or grpc", strings.ToLower(name), by)
		return s
	}
	s.near = true
	for _, place := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT"} {
		if at := os.Getenv(place); at != "" {
			if s.near = false; !isEndpoint(at, s.grpc) {
				s.err = errdefs.Validation.Errorf("%s is %q: want a URL, such as http://127.0.0.1:4318", place, secret.Address(at))
				return s
			}
		}
	}
	return s
}

// isEndpoint reports whether the exporters understand an address. They take their default for one that they don't.
func isEndpoint(at string, grpc bool) bool {
	u, err := url.Parse(at)
	return err == nil && (u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") || grpc && u.Scheme == "unix" && u.Path != "")
}

// contentAsked is what the environment asks for. What nobody understands is no wish to keep all that is said here.
func contentAsked() (telemetry.Content, error) {
	const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	content, is := telemetry.ContentFromEnv(), strings.TrimSpace(os.Getenv(name))
	if content == 0 && is != "" && !strings.EqualFold(is, "false") && !strings.EqualFold(is, "NO_CONTENT") {
		return 0, errdefs.Validation.Errorf("%s is %q: want SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT or NO_CONTENT", name, is)
	}
	return content, nil
}

// Caller gives a context in the trace of whoever started this process, by TRACEPARENT and TRACESTATE of the environment.
func Caller(ctx context.Context) context.Context {
	return traced.Extract(ctx, func(name string) string { return os.Getenv(strings.ToUpper(name)) })
}
