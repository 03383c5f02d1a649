package temporal_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/temporal/internal/devserver"
	"github.com/pawl-dev/pawl/tool"
)

// traces is OpenTelemetry in a process of its own: what it tells is all together.
func traces(t *testing.T, to *tracetest.InMemoryExporter) agent.RunOption {
	t.Helper()
	p := trace.NewTracerProvider(trace.WithSyncer(to))
	t.Cleanup(func() { _ = p.Shutdown(t.Context()) })
	tracer, err := telemetry.New(telemetry.Config{TracerProvider: p})
	if err != nil {
		t.Fatal(err)
	}
	return agent.WithTracer(tracer)
}

// What workers do lies in the span of whoever began the run, in another process.
func TestARunIsOneTraceWithWhatWorkersDo(t *testing.T) {
	t.Parallel()
	c, store, all := devserver.Shared(t).Client(t), journal.Memory(), tracetest.NewInMemoryExporter()
	work := tool.Func("work", "Works.", func(context.Context, struct{}) (string, error) { return "did it", nil })
	eng := looping(t, says{calls(call("c1", "work", "{}")), message.Assistant("done")}, work)
	works(t, c, store, temporal.Queue, temporal.Member{Agent: agent.Agent{ID: "a"}, Engine: eng, Options: []agent.RunOption{traces(t, all)}})
	res, err := agent.Run(t.Context(), agent.Agent{ID: "a"}, temporal.NewEngine(c, eng), agent.Request{ContextID: "s", Message: message.User("go")}, agent.WithJournal(store), traces(t, all))
	if err != nil || res.Text() != "done" {
		t.Fatal(res, err)
	}
	spans := all.GetSpans()
	top := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "invoke_agent a" })].SpanContext.SpanID()
	var names []string
	for _, s := range spans {
		if names = append(names, s.Name); s.Name != "invoke_agent a" && s.Parent.SpanID() != top {
			t.Errorf("%s lies in %s, want %s", s.Name, s.Parent.SpanID(), top)
		}
	}
	slices.Sort(names)
	if want := []string{"chat temporal_test.says", "chat temporal_test.says", "execute_tool work", "invoke_agent a"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	// A run that nobody waits for is driven by workers, too.
	all.Reset()
	if d := wait(t, begin(t, c, temporal.Order{Agent: "a", Session: "ordered", Message: message.User("go")})); d.Text != "done" {
		t.Fatalf("%+v", d)
	}
	spans = all.GetSpans()
	for _, s := range spans {
		if s.SpanContext.TraceID() != spans[0].SpanContext.TraceID() {
			t.Errorf("%s is in a trace of its own", s.Name)
		}
	}
	if len(spans) < 4 {
		t.Errorf("%d spans", len(spans))
	}
}
