package gemini

import (
	"encoding/base64"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// wirePart is a part as it lies on the wire: raw values, nil when absent.
type wirePart struct {
	text, signature    []byte
	call, inline, file []byte
	thought            bool
	rest               bool // has members that are none of these
	unknown            bool // and at least one of them is not known to go with others
}

// part takes the next part in. Text goes on with the open part, when both are of one kind and neither is signed: Google asks for
// signed parts to be kept apart. Everything else closes it.
func (r *reply) part(data []byte) error {
	if wire.IsNull(data) {
		return nil
	}
	if data[0] != '{' {
		return r.api.Malformed("a part of the reply is no object", data)
	}
	var p wirePart
	for m := wire.Object(data); m.Next(); {
		switch string(m.Key) {
		case "text":
			p.text = m.Value
		case "thought":
			p.thought = wire.Bool(m.Value)
		case "thoughtSignature":
			p.signature = m.Value
		case "functionCall":
			p.call = m.Value
		case "inlineData":
			p.inline = m.Value
		case "fileData":
			p.file = m.Value
		case "partMetadata":
			p.rest = true
		default:
			p.rest, p.unknown = true, true
		}
	}
	if !wire.IsNull(p.signature) && p.signature[0] != '"' {
		return r.api.Malformed("a signature of the reply is no text", data)
	}
	switch {
	case p.call != nil:
		return r.callPart(data, p)
	case p.text != nil, p.signature != nil && p.inline == nil && p.file == nil && !p.unknown:
		return r.textPart(data, p)
	case p.signature == nil && !p.thought && !p.rest:
		if f, ok := filePart(p); ok {
			r.add(f)
			return nil
		}
	}
	compact, _ := wire.AppendCompact(make([]byte, 0, len(data)), data)
	o := message.Opaque{Provider: provider, JSON: string(compact)}
	if step, ok := stepOf(o, data); ok {
		r.add(step)
		return nil
	}
	r.add(o)
	return nil
}

func (r *reply) textPart(data []byte, p wirePart) error {
	is := text
	if p.thought {
		is = reasoning
	}
	delta := wire.String(p.text)
	alone := p.rest || !wire.IsNull(p.signature)
	if alone || is != r.open {
		if delta == "" && !alone {
			return nil // an empty end, which says nothing
		}
		r.close()
	}
	if alone {
		r.alone(data, p, delta)
	} else {
		r.open, r.text = is, append(r.text, delta...)
	}
	if delta == "" || r.cb == nil {
		return nil
	}
	if p.thought {
		return r.cb(model.StreamResult{Reasoning: delta})
	}
	return r.cb(model.StreamResult{Text: delta})
}

// alone adds a text or a thought that stays as it came.
func (r *reply) alone(data []byte, p wirePart, s string) {
	var x extra
	for m := wire.Object(data); m.Next(); {
		switch string(m.Key) {
		case "text", "thought":
		case "thoughtSignature":
			if !p.thought {
				x.add("thoughtSignature", m.Value)
			}
		default:
			x.add(string(m.Key), m.Value)
		}
	}
	if p.thought {
		r.add(message.Reasoning{Text: s, Signature: wire.String(p.signature), Origin: x.origin()})
		return
	}
	r.add(message.Text{Text: s, Origin: x.origin()})
}

func (r *reply) callPart(data []byte, p wirePart) error {
	c := message.ToolCall{Input: "{}"}
	var inner, x extra
	for m := wire.Object(p.call); m.Next(); {
		switch string(m.Key) {
		case "id":
			c.ID = wire.String(m.Value)
		case "name":
			c.Name = wire.String(m.Value)
		case "args":
			c.Input = arguments(m.Value)
		default:
			inner.add(string(m.Key), m.Value)
		}
	}
	r.calls++
	if c.ID == "" {
		c.ID = callID(r.calls)
	}
	for m := wire.Object(data); m.Next(); {
		if string(m.Key) != "functionCall" && !wire.IsNull(m.Value) {
			x.add(string(m.Key), m.Value)
		}
	}
	if more := inner.origin().Extra; more != "" {
		x.add("functionCall", []byte(more))
	}
	c.Origin = x.origin()
	r.add(c)
	if r.cb == nil {
		return nil
	}
	return r.cb(model.StreamResult{Input: c.Input, Tool: c.Name, Call: r.calls - 1}) // all at once: the API has no pieces of it
}

// filePart reads inlineData or fileData that has nothing beside type and content.
func filePart(p wirePart) (message.File, bool) {
	var f message.File
	raw := p.inline
	if raw == nil {
		raw = p.file
	}
	for m := wire.Object(raw); m.Next(); {
		switch string(m.Key) {
		case "mimeType":
			f.MIME = wire.String(m.Value)
		case "fileUri":
			f.URL = wire.String(m.Value)
		case "data":
			data, err := base64.StdEncoding.DecodeString(wire.String(m.Value))
			if err != nil {
				return f, false
			}
			f.Data = string(data)
		default:
			return f, false
		}
	}
	return f, message.New(message.RoleUser, f).CheckFiles() == nil
}

// add closes the open part and appends p.
func (r *reply) add(p message.Part) {
	r.close()
	r.parts = append(r.parts, p)
}

// close makes a part of what is open.
func (r *reply) close() {
	if s := string(r.text); s != "" {
		switch r.open {
		case text:
			r.parts = append(r.parts, message.Text{Text: s, Origin: message.Origin{Provider: provider}})
		case reasoning:
			r.parts = append(r.parts, message.Reasoning{Text: s, Origin: message.Origin{Provider: provider}})
		}
	}
	r.open, r.text = nothing, r.text[:0]
}
