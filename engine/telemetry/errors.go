package telemetry

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

func asInterrupt(err error, to *engine.InterruptedError) bool { return errors.As(err, to) }

// errorType is an error in a word: "canceled", a class of errdefs, or "_OTHER". "" for none, and for an interrupt: what was interrupted goes on.
func errorType(err error) string {
	switch {
	case err == nil || errdefs.Interrupted.Is(err):
		return ""
	case errdefs.Of(err) != nil:
		return errdefs.Of(err).Error()
	case errdefs.Canceled(err):
		return "canceled"
	}
	return "_OTHER"
}

// fail notes an error on a span and gives its type. Its text is content.
func (t *Tracer) fail(span trace.Span, err error) string {
	kind := errorType(err)
	if kind == "" {
		return ""
	}
	text := ""
	if t.content&OnSpans != 0 {
		text = err.Error()
	}
	failed(span, kind, text)
	return kind
}

func failed(span trace.Span, kind, text string) {
	span.SetAttributes(attribute.String("error.type", kind))
	if text == "" {
		text = kind
	}
	span.SetStatus(codes.Error, text)
}

// withError adds the error's type to the attributes of a measurement.
func withError(kind string, attrs ...attribute.KeyValue) []attribute.KeyValue {
	if kind != "" {
		attrs = append(attrs, attribute.String("error.type", kind))
	}
	return attrs
}
