package gemini

import (
	"encoding/base64"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// part takes the next part in. Text goes on with the open part, when both are of one kind and neither is signed: Google asks for
// signed parts to be kept apart. Everything else closes it.
func (r *reply) part(p *wirePart) error {
	data := p.all
	if wire.IsNull(data) {
		return nil
	}
	if data[0] != '{' {
		return r.api.Malformed("a part of the reply is no object", data)
	}
	if !wire.IsNull(p.signature) && p.signature[0] != '"' {
		return r.api.Malformed("a signature of the reply is no text", data)
	}
	switch {
	case p.call != nil:
		return r.callPart(p)
	case p.text != nil, p.signature != nil && p.inline == nil && p.file == nil && !p.unknown:
		return r.textPart(p)
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

func (r *reply) textPart(p *wirePart) error {
	is := text
	if p.thought {
		is = reasoning
	}
	empty := len(p.text) <= len(`""`) || p.text[0] != '"'
	alone := p.alone()
	if alone || is != r.open {
		if empty && !alone {
			return nil // an empty end, which says nothing
		}
		r.close()
	}
	if !alone {
		r.open = is
		return r.say(p.text)
	}
	delta := wire.String(p.text)
	r.apart(p, delta)
	return r.tell(is, delta)
}

// say adds to the open part, and passes on what it added: a part of the text, which costs nothing.
func (r *reply) say(raw []byte) error { return r.tell(r.open, r.text.Append(raw)) }

// tell passes a piece on.
func (r *reply) tell(is kind, delta string) error {
	switch {
	case delta == "" || r.cb == nil:
		return nil
	case is == reasoning:
		return r.cb(model.StreamResult{Reasoning: delta})
	}
	return r.cb(model.StreamResult{Text: delta})
}

// alone reports whether a text or a thought stays as it came.
func (p *wirePart) alone() bool { return p.rest || !wire.IsNull(p.signature) }

// apart adds a text or a thought that stays as it came.
func (r *reply) apart(p *wirePart, s string) {
	var room [256]byte
	x := extra(room[:0])
	for m := wire.Object(p.all); m.Next(); {
		switch string(m.Key) {
		case "text", "thought":
		case "thoughtSignature":
			if !p.thought {
				x = x.add("thoughtSignature", m.Value)
			}
		default:
			x = x.add(string(m.Key), m.Value)
		}
	}
	if p.thought {
		r.add(message.Reasoning{Text: s, Signature: wire.String(p.signature), Origin: x.origin()})
		return
	}
	r.add(message.Text{Text: s, Origin: x.origin()})
}

func (r *reply) callPart(p *wirePart) error {
	c := message.ToolCall{Input: "{}"}
	var room [2][256]byte
	inner, x := extra(room[0][:0]), extra(room[1][:0])
	for m := wire.Object(p.call); m.Next(); {
		switch string(m.Key) {
		case "id":
			c.ID = wire.String(m.Value)
		case "name":
			c.Name = httpapi.ToolName(m.Value, r.tools)
		case "args":
			c.Input = arguments(m.Value)
		default:
			inner = inner.add(string(m.Key), m.Value)
		}
	}
	r.calls++
	if c.ID == "" {
		c.ID = callID(r.calls)
	}
	for m := wire.Object(p.all); m.Next(); {
		if string(m.Key) != "functionCall" && !wire.IsNull(m.Value) {
			x = x.add(string(m.Key), m.Value)
		}
	}
	if len(inner) > 0 {
		x = x.add("functionCall", append(inner, '}'))
	}
	c.Origin = x.origin()
	r.add(c)
	if r.cb == nil {
		return nil
	}
	return r.cb(model.StreamResult{Input: c.Input, Tool: c.Name, Call: r.calls - 1}) // all at once: the API has no pieces of it
}

// filePart reads inlineData or fileData that has nothing beside type and content.
func filePart(p *wirePart) (message.File, bool) {
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
	if r.parts == nil {
		r.parts = r.first.parts[:0]
	}
	r.parts = append(r.parts, p)
}

// close makes a part of what is open.
func (r *reply) close() {
	is, s := r.open, r.text.Kept()
	r.open, r.text = nothing, wire.Text{}
	if s == "" {
		return
	}
	switch is {
	case text:
		r.add(message.Text{Text: s, Origin: message.Origin{Provider: provider}})
	case reasoning:
		r.add(message.Reasoning{Text: s, Origin: message.Origin{Provider: provider}})
	}
}
