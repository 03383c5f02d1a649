package telemetry

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// conversation is what a model was told and what it said, in the conventions' form.
func conversation(e engine.Generate, reply journal.ModelFinished) []attribute.KeyValue {
	var asked []attribute.Value
	for _, m := range e.Messages.All() {
		asked = append(asked, spoken(m))
	}
	for _, m := range reply.Heard {
		asked = append(asked, spoken(m))
	}
	out := append(make([]attribute.KeyValue, 0, 3), attribute.KeyValue{Key: "gen_ai.input.messages", Value: attribute.SliceValue(asked...)})
	if e.System != "" {
		out = append(out, attribute.KeyValue{Key: "gen_ai.system_instructions", Value: attribute.SliceValue(part("text", attribute.String("content", e.System)))})
	}
	if !reply.Message.IsZero() {
		out = append(out, attribute.KeyValue{Key: "gen_ai.output.messages", Value: attribute.SliceValue(spoken(reply.Message, attribute.String("finish_reason", finish(reply.Stop))))})
	}
	return out
}

// spoken is a message.
func spoken(m message.Message, more ...attribute.KeyValue) attribute.Value {
	var parts []attribute.Value
	for p := range m.Parts() {
		switch p := p.(type) {
		case message.Text:
			parts = append(parts, part("text", attribute.String("content", valid(p.Text))))
		case message.Reasoning:
			parts = append(parts, part("reasoning", attribute.String("content", valid(p.Text))))
		case message.File:
			parts = append(parts, file(p))
		case message.ToolCall:
			parts = append(parts, part("tool_call", attribute.String("id", p.ID), attribute.String("name", p.Name), attribute.KeyValue{Key: "arguments", Value: structure(p.Input)}))
		case message.ToolResult:
			parts = append(parts, part("tool_call_response", attribute.String("id", p.Call), attribute.String("result", valid(p.Content))))
			for _, f := range p.Files {
				parts = append(parts, file(f))
			}
		case message.ProviderCall:
			parts = append(parts, part("server_tool_call", attribute.String("id", p.Call), attribute.String("name", p.Name), attribute.String("arguments", valid(p.Input)), attribute.String("result", valid(p.Output))))
		case message.Opaque: // the provider's own
		}
	}
	return attribute.MapValue(append([]attribute.KeyValue{attribute.String("role", string(m.Role())), {Key: "parts", Value: attribute.SliceValue(parts...)}}, more...)...)
}

func part(kind string, more ...attribute.KeyValue) attribute.Value {
	return attribute.MapValue(append([]attribute.KeyValue{attribute.String("type", kind)}, more...)...)
}

func file(f message.File) attribute.Value {
	modality, _, _ := strings.Cut(f.MIME, "/")
	about := []attribute.KeyValue{attribute.String("modality", modality), attribute.String("mime_type", f.MIME)}
	if f.URL != "" {
		return part("uri", append(about, attribute.String("uri", valid(f.URL)))...)
	}
	if f.Data == "" && f.ID != "" { // the provider keeps it
		return part("file", append(about, attribute.String("file_id", valid(f.ID)))...)
	}
	return part("blob", append(about, attribute.String("content", base64.StdEncoding.EncodeToString([]byte(f.Data))))...)
}

// structure is JSON as a value; what is none, as text.
func structure(text string) attribute.Value {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return attribute.StringValue(valid(text))
	}
	return value(v)
}

func value(v any) attribute.Value {
	switch v := v.(type) {
	case string:
		return attribute.StringValue(v)
	case bool:
		return attribute.BoolValue(v)
	case float64:
		if n := int64(v); float64(n) == v {
			return attribute.Int64Value(n)
		}
		return attribute.Float64Value(v)
	case []any:
		all := make([]attribute.Value, len(v))
		for i, x := range v {
			all[i] = value(x)
		}
		return attribute.SliceValue(all...)
	case map[string]any:
		all := make([]attribute.KeyValue, 0, len(v))
		for k, x := range v {
			all = append(all, attribute.KeyValue{Key: attribute.Key(k), Value: value(x)})
		}
		return attribute.MapValue(all...)
	}
	return attribute.Value{} // null
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
