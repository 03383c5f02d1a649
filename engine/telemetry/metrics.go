package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are the histograms, with the buckets that the conventions name.
type metrics struct {
	tokens                 metric.Int64Histogram
	chat, first, run, tool metric.Float64Histogram
}

func newMetrics(m metric.Meter) (out metrics, err error) {
	var errs []error
	seconds := func(name, what string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92))
		errs = append(errs, err)
		return h
	}
	out.tokens, err = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of a model call; input with those from the cache"),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	out.chat = seconds("gen_ai.client.operation.duration", "Time of a model call")
	out.first = seconds("gen_ai.client.operation.time_to_first_chunk", "Time until a streamed reply begins")
	out.run = seconds("gen_ai.invoke_agent.duration", "Time of an attempt of a run")
	out.tool = seconds("gen_ai.execute_tool.duration", "Time of a tool call")
	return out, errors.Join(append(errs, err)...)
}

// calls reports whether anything of model calls is measured.
func (m *metrics) calls(ctx context.Context) bool {
	return m.chat.Enabled(ctx) || m.first.Enabled(ctx) || m.tokens.Enabled(ctx)
}

// record adds a time.
func record(ctx context.Context, h metric.Float64Histogram, d time.Duration, attrs []attribute.KeyValue) {
	if h.Enabled(ctx) {
		h.Record(ctx, d.Seconds(), metric.WithAttributeSet(attribute.NewSet(attrs...)))
	}
}

// count adds the tokens of a call.
func (m *metrics) count(ctx context.Context, kind string, n int, attrs []attribute.KeyValue) {
	if n > 0 && m.tokens.Enabled(ctx) {
		m.tokens.Record(ctx, int64(n), metric.WithAttributeSet(attribute.NewSet(append(attrs[:len(attrs):len(attrs)], attribute.String("gen_ai.token.type", kind))...)))
	}
}
