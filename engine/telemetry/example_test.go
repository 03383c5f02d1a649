package telemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/telemetry"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
)

func Example() {
	spans := tracetest.NewInMemoryExporter() // or one that sends them to a collector
	tracer, err := telemetry.New(telemetry.Config{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(spans))})
	if err != nil {
		fmt.Println(err)
		return
	}
	add := tool.Func("add", "adds two numbers", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	eng, _ := loop.New(loop.Config{
		Model: scripted.New(scripted.Calls(scripted.Call{Name: "add", Input: `{"A":2,"B":3}`}), scripted.Text("5")),
		Tools: []tool.Tool{add},
	})
	_, _ = agent.Run(context.Background(), agent.Agent{ID: "helper"}, eng, agent.Request{Message: message.User("2 + 3?")}, agent.WithTracer(tracer))

	for _, s := range spans.GetSpans() { // in the order in which they end
		fmt.Println(s.Name)
	}
	// Output:
	// chat test
	// execute_tool add
	// chat test
	// invoke_agent helper
}
