package telemetry_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is OpenTelemetry's own SDK, in memory.
type world struct {
	*telemetry.Tracer
	t      testing.TB
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
	reader *metric.ManualReader
	logs   *records
}

func newWorld(t testing.TB, content telemetry.Content) *world {
	t.Helper()
	w := &world{t: t, spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader(), logs: &records{}}
	w.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	meters := metric.NewMeterProvider(metric.WithReader(w.reader))
	logs := log.NewLoggerProvider(log.WithProcessor(w.logs))
	var err error
	if w.Tracer, err = telemetry.New(telemetry.Config{TracerProvider: w.traces, MeterProvider: meters, LoggerProvider: logs, Content: content}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, end := range []func(context.Context) error{w.traces.Shutdown, meters.Shutdown, logs.Shutdown} {
			if err := end(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

// records keeps what is logged.
type records struct {
	mu  sync.Mutex
	all []log.Record
}

func (r *records) OnEmit(_ context.Context, rec *log.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rec.Clone())
	return nil
}
func (*records) Enabled(context.Context, log.EnabledParameters) bool { return true }
func (*records) Shutdown(context.Context) error                      { return nil }
func (*records) ForceFlush(context.Context) error                    { return nil }

// named gives the spans of a name, in the order in which they ended.
func (w *world) named(name string) (all []tracetest.SpanStub) {
	w.t.Helper()
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		w.t.Fatalf("no span %q in\n%s", name, w.tree())
	}
	return all
}

// tree draws the spans, children below their parents in the order in which they began.
func (w *world) tree() string {
	spans := w.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var out strings.Builder
	var below func(parent string, depth int)
	below = func(parent string, depth int) {
		for _, s := range spans {
			at := ""
			if s.Parent.IsValid() {
				at = s.Parent.SpanID().String()
			}
			if at == parent {
				out.WriteString(strings.Repeat("  ", depth) + s.Name)
				if kind := attr(s.Attributes, "error.type"); kind != "" {
					out.WriteString(" ! " + kind)
				}
				out.WriteString("\n")
				below(s.SpanContext.SpanID().String(), depth+1)
			}
		}
	}
	below("", 0)
	return out.String()
}

func attr(attrs []attribute.KeyValue, name string) string {
	for _, a := range attrs {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

// has checks attributes.
func has(t *testing.T, of string, attrs []attribute.KeyValue, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got := attr(attrs, k); got != v {
			t.Errorf("%s: %s = %q, want %q", of, k, got, v)
		}
	}
}

// metrics gives what was measured, by name.
func (w *world) metrics() map[string]metricdata.Metrics {
	w.t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &all); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			out[m.Name] = m
		}
	}
	return out
}

// everything is all that was told, as text.
func (w *world) everything() string {
	w.t.Helper()
	var out strings.Builder
	for _, s := range w.spans.GetSpans() {
		out.WriteString(s.Name + " " + s.Status.Description + "\n")
		for _, a := range s.Attributes {
			out.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
		}
		for _, e := range s.Events {
			out.WriteString(e.Name + "\n")
			for _, a := range e.Attributes {
				out.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
			}
		}
	}
	b, err := json.Marshal(w.metrics())
	if err != nil {
		w.t.Fatal(err)
	}
	out.Write(b)
	for _, r := range w.logs.all {
		r.WalkAttributes(func(a attribute.KeyValue) bool {
			out.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
			return true
		})
	}
	return out.String()
}

// engineOf makes a loop.
func engineOf(t testing.TB, m model.Model, tools ...tool.Tool) *loop.Engine {
	t.Helper()
	e, err := loop.New(loop.Config{Model: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
