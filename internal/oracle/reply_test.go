package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// reply is what a client made of a provider's answer, in words of no vendor. The stop reasons and kinds of tokens are ours; whoever reads a
// vendor's types says which of them is meant.
type reply struct {
	ID, Model string
	Stop      model.StopReason
	Reason    string // for a refusal or a block
	Usage     model.Usage
	Said      []said
	Failed    *failure // then the rest is empty
	Back      []any    // what the vendor's SDK makes of it for the next request, as it would send it; nil where it has no way
}

// said is one thing in a reply.
type said struct {
	Kind      string // text, reasoning, call, other
	Text      string // of a text, of reasoning
	Signature string // of reasoning
	ID, Name  string // of a call
	Input     string // of a call: canonical JSON where it is JSON
	Other     string // canonical JSON of what only its provider understands
}

// failure is what a client says of an error.
type failure struct {
	Status        int // of HTTP; 0 within a stream
	Code, Message string
	Request       string // the provider's id of it
}

// field is one thing by which two replies are compared, under the name that a difference is listed by.
type field struct {
	name  string
	value any
}

// fields takes a reply apart, so that a difference that is meant in one place hides none in another.
func (r *reply) fields() []field {
	if r.Failed == nil {
		r.Failed = &failure{}
	}
	pick := func(kind string, of func(said) string) (all []string) {
		for _, s := range r.Said {
			if kind == "" || s.Kind == kind {
				all = append(all, of(s))
			}
		}
		return all
	}
	text := func(s said) string { return s.Text }
	return []field{
		{"id", r.ID},
		{"model", r.Model},
		{"stop", r.Stop},
		{"reason", r.Reason},
		{"input tokens", r.Usage.Input},
		{"output tokens", r.Usage.Output},
		{"cache read tokens", r.Usage.CacheRead},
		{"cache write tokens", r.Usage.CacheWrite},
		{"reasoning tokens", r.Usage.Reasoning},
		{"order", pick("", func(s said) string { return s.Kind })},
		{"texts", pick("text", text)},
		{"reasoning", pick("reasoning", text)},
		{"signatures", pick("reasoning", func(s said) string { return s.Signature })},
		{"call ids", pick("call", func(s said) string { return s.ID })},
		{"call names", pick("call", func(s said) string { return s.Name })},
		{"call inputs", pick("call", func(s said) string { return s.Input })},
		{"others", pick("other", func(s said) string { return s.Other })},
		{"error status", r.Failed.Status},
		{"error code", r.Failed.Code},
		{"error message", r.Failed.Message},
		{"error request", r.Failed.Request},
		{"failed", *r.Failed != failure{}},
	}
}

// plainNumbers replaces numbers by what they are, however they are spelled.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case object:
		for name, m := range v {
			v[name] = plainNumbers(m)
		}
	case []any:
		for i, e := range v {
			v[i] = plainNumbers(e)
		}
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return "the number " + r.RatString()
		}
	}
	return v
}

// canonical gives JSON with the members of objects in order and numbers in one spelling, and what is no JSON as it is.
func canonical(raw string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return raw
	}
	v = plainNumbers(v)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return raw
	}
	return strings.TrimSpace(b.String())
}

// ours reads what our client gives.
func ours(t *testing.T, r *model.Response) *reply {
	t.Helper()
	out := &reply{ID: r.ID, Model: r.Model, Stop: r.Stop, Reason: r.Reason, Usage: r.Usage}
	for p := range r.Message.Parts() {
		switch p := p.(type) {
		case message.Text:
			out.Said = append(out.Said, said{Kind: "text", Text: p.Text})
		case message.Reasoning:
			out.Said = append(out.Said, said{Kind: "reasoning", Text: p.Text, Signature: p.Signature})
		case message.ToolCall:
			out.Said = append(out.Said, said{Kind: "call", ID: p.ID, Name: p.Name, Input: canonical(p.Input)})
		case message.File:
			raw, _ := json.Marshal(object{"inlineData": object{"mimeType": p.MIME, "data": base64.StdEncoding.EncodeToString([]byte(p.Data))}})
			out.Said = append(out.Said, said{Kind: "other", Other: canonical(string(raw))})
		case message.ProviderCall:
			if p.JSON == "" { // told of beside the parts
				continue
			}
			out.Said = append(out.Said, said{Kind: "other", Other: canonical(p.JSON)})
		case message.Opaque:
			out.Said = append(out.Said, said{Kind: "other", Other: canonical(p.JSON)})
		default:
			t.Errorf("a part of type %T, which this test can't read", p)
		}
	}
	return out
}

// calling says that a reply with calls ends for them, whatever word the vendor has for its end.
func (r *reply) calling() *reply {
	if r.Stop == model.StopEnd && slices.ContainsFunc(r.Said, func(s said) bool { return s.Kind == "call" }) {
		r.Stop = model.StopTools
	}
	return r
}
