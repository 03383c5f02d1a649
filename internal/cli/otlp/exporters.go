package otlp

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
)

// The exporters read for themselves what the environment says: where to, with which headers, keys and times. The SDK leaves them to their own times when a program ends; here they end with it.

type spans struct {
	trace.SpanExporter
	over context.Context
}

func newSpans(ctx context.Context, to signal) (s spans, err error) {
	if s.over = ctx; to.grpc {
		s.SpanExporter, err = otlptracegrpc.New(ctx, insecure(to, otlptracegrpc.WithInsecure)...)
	} else {
		s.SpanExporter, err = otlptracehttp.New(ctx, insecure(to, otlptracehttp.WithInsecure)...)
	}
	return s, err
}

func (s spans) ExportSpans(ctx context.Context, all []trace.ReadOnlySpan) error {
	ctx, cancel := until(ctx, s.over)
	defer cancel()
	return s.SpanExporter.ExportSpans(ctx, all)
}

type measurements struct {
	metric.Exporter
	over context.Context
}

func newMeasurements(ctx context.Context, to signal) (m measurements, err error) {
	if m.over = ctx; to.grpc {
		m.Exporter, err = otlpmetricgrpc.New(ctx, insecure(to, otlpmetricgrpc.WithInsecure)...)
	} else {
		m.Exporter, err = otlpmetrichttp.New(ctx, insecure(to, otlpmetrichttp.WithInsecure)...)
	}
	return m, err
}

func (m measurements) Export(ctx context.Context, all *metricdata.ResourceMetrics) error {
	ctx, cancel := until(ctx, m.over)
	defer cancel()
	return m.Exporter.Export(ctx, all)
}

type events struct {
	log.Exporter
	over context.Context
}

func newEvents(ctx context.Context, to signal) (e events, err error) {
	if e.over = ctx; to.grpc {
		e.Exporter, err = otlploggrpc.New(ctx, insecure(to, otlploggrpc.WithInsecure)...)
	} else {
		e.Exporter, err = otlploghttp.New(ctx, insecure(to, otlploghttp.WithInsecure)...)
	}
	return e, err
}

func (e events) Export(ctx context.Context, all []log.Record) error {
	ctx, cancel := until(ctx, e.over)
	defer cancel()
	return e.Exporter.Export(ctx, all)
}

// until is ctx until over ends, too.
func until(ctx, over context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(over, cancel)
	return ctx, func() { stop(); cancel() }
}

// insecure is how to reach what the exporters reach by default, which is this machine, as OpenTelemetry says; theirs is TLS.
func insecure[O any](to signal, option func() O) []O {
	if to.near {
		return []O{option()}
	}
	return nil
}
