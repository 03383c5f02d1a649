package anthropic

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// block is a content block while it is read, whole or in pieces. Both ways lead through it, so that they give the same part.
type block struct {
	index   int64
	kind    string // its type
	id      string // of a call
	name    string
	text    wire.Text // text or thought
	sign    []byte
	input   string    // a call's arguments as JSON, as the model wrote them
	pieces  wire.Text // the same, when they came in deltas, which replace what the block began with
	deltas  bool      // there was one
	members []member  // what has no field above
	raw     []byte    // an unknown block, compact, as long as no delta changed it; then it is in members
}

// member is one member of a JSON object. A text that grew is kept decoded.
type member struct {
	key   string
	value []byte // compact JSON, or the text itself
	text  bool
}

// word is wire.String, which costs nothing for the words that every reply has.
func word(raw []byte) string {
	switch string(raw) {
	case `"text"`:
		return "text"
	case `"tool_use"`: // a block's, and why a reply ends
		return "tool_use"
	case `"thinking"`:
		return "thinking"
	case `"end_turn"`:
		return "end_turn"
	}
	return wire.String(raw)
}

// fill reads a block of a whole reply, or the beginning of one in a stream.
func (b *block) fill(r *reply, index int64, raw []byte) {
	b.index, b.kind = index, word(wire.First(raw, "type"))
	if !b.known() {
		if b.called() {
			b.id, b.name = r.words.Append(wire.Get(raw, "id")), wire.String(wire.Get(raw, "name"))
		}
		b.raw, _ = wire.AppendCompact(nil, raw)
		return
	}
	for m := wire.Object(raw); m.Next(); {
		switch {
		case string(m.Key) == "type", wire.IsNull(m.Value), string(m.Key) == "citations" && string(m.Value) == "[]":
		case b.kind == "text" && string(m.Key) == "text", b.kind == "thinking" && string(m.Key) == "thinking":
			b.text.Append(m.Value)
		case b.kind == "thinking" && string(m.Key) == "signature":
			b.sign = wire.AppendText(b.sign, m.Value)
		case b.kind == "tool_use" && string(m.Key) == "id":
			b.id = r.words.Append(m.Value)
		case b.kind == "tool_use" && string(m.Key) == "name":
			b.name = httpapi.ToolName(m.Value, r.tools)
		case b.kind == "tool_use" && string(m.Key) == "input" && m.Value[0] == '"': // some gateways send the text of it
			b.input = wire.String(m.Value)
		case b.kind == "tool_use" && string(m.Key) == "input":
			if b.input = "{}"; string(m.Value) != b.input {
				b.input = string(m.Value)
			}
		default:
			b.set(string(m.Key), m.Value)
		}
	}
}

func (b *block) known() bool {
	return b.kind == "text" || b.kind == "thinking" || b.kind == "tool_use"
}

// delta takes a delta, but for the text in it that is to be heard, which it gives. What is of an unknown type is merged by its members: texts and
// lists grow, anything else is replaced. It isn't ok when the delta is of another kind than the block.
func (b *block) delta(d *piece) (more []byte, ok bool) {
	switch kind := d.kind; {
	case b.kind == "text" && string(kind) == `"text_delta"`:
		return d.text, true
	case b.kind == "thinking" && string(kind) == `"thinking_delta"`:
		return d.thinking, true
	case b.kind == "thinking" && string(kind) == `"signature_delta"`:
		b.sign = wire.AppendText(b.sign[:0], d.signature) // it comes whole
	case b.known() && (string(kind) == `"text_delta"` || string(kind) == `"thinking_delta"`), (b.kind == "text" || b.kind == "thinking") && string(kind) == `"input_json_delta"`:
		return nil, false
	case string(kind) == `"input_json_delta"`:
		return d.input, true
	default:
		b.merge(d.all)
	}
	return nil, true
}

// write adds a piece of a call's input, and gives what of it the listener hears.
func (b *block) write(more []byte) string {
	if !b.deltas && len(more) > len(`""`) { // the first one is empty
		b.deltas = true
	}
	piece := b.pieces.Append(more)
	if b.kind != "tool_use" {
		return ""
	}
	return piece
}

// merge adds a delta of an unknown type.
func (b *block) merge(delta []byte) {
	b.open()
	for m := wire.Object(delta); m.Next(); {
		switch key := string(m.Key); key {
		case "type":
		case "citation":
			b.grow("citations", append(append([]byte{'['}, m.Value...), ']'))
		default:
			b.grow(key, m.Value)
		}
	}
}

// open makes the members of an unknown block ready for change.
func (b *block) open() {
	raw := b.raw
	b.raw = nil
	for m := wire.Object(raw); m.Next(); {
		b.set(string(m.Key), m.Value)
	}
}

// member finds a member, or makes it.
func (b *block) member(key string) *member {
	for i := range b.members {
		if b.members[i].key == key {
			return &b.members[i]
		}
	}
	b.members = append(b.members, member{key: key})
	return &b.members[len(b.members)-1]
}

func (b *block) set(key string, raw []byte) {
	m := b.member(key)
	m.value, _ = wire.AppendCompact(nil, raw)
	m.text = false
}

// grow adds a text to a text and a list to a list; otherwise the new value replaces the old.
func (b *block) grow(key string, raw []byte) {
	m := b.member(key)
	isText := m.text || len(m.value) > 0 && m.value[0] == '"'
	isList := !m.text && len(m.value) > 0 && m.value[0] == '['
	switch {
	case isText && raw[0] == '"':
		if !m.text {
			m.value, m.text = wire.AppendText(nil, m.value), true
		}
		m.value = wire.AppendText(m.value, raw)
	case isList && raw[0] == '[':
		m.value = m.value[:len(m.value)-1]
		for e := wire.Array(raw); e.Next(); {
			if len(m.value) > 1 {
				m.value = append(m.value, ',')
			}
			m.value, _ = wire.AppendCompact(m.value, e.Value)
		}
		m.value = append(m.value, ']')
	default:
		b.set(key, raw)
	}
}

// part gives the part that the block is; nil when it is empty. names are those of the calls that the API made before, by their ids.
func (b *block) part(names map[string]string) message.Part {
	if !b.known() {
		if b.deltas {
			b.open()
			b.set("input", appendInput(nil, b.pieces.String()))
		}
		whole := b.object()
		if c, ok := b.ran(whole, names); ok {
			return c
		}
		return message.Opaque{Provider: provider, JSON: whole}
	}
	from := message.Origin{Provider: provider}
	if len(b.members) > 0 {
		from.Extra = b.object()
	}
	switch {
	case b.kind == "tool_use":
		return message.ToolCall{ID: b.id, Name: b.name, Input: b.arguments(), Origin: from}
	case b.text.Len() == 0 && len(b.sign) == 0 && from.Extra == "":
		return nil
	case b.kind == "thinking":
		return message.Reasoning{Text: b.text.Kept(), Signature: string(b.sign), Origin: from}
	}
	t := message.Text{Text: b.text.Kept(), Origin: from}
	for _, m := range b.members {
		if m.key == "citations" && !m.text {
			t.Citations = cited(m.value)
		}
	}
	return t
}

func (b *block) arguments() string {
	input := b.input
	if b.deltas {
		input = b.pieces.Kept()
	}
	if strings.TrimSpace(input) == "" {
		return "{}"
	}
	if wire.Compact([]byte(input)) {
		return input
	}
	if raw, ok := wire.AppendCompact(nil, []byte(input)); ok {
		return string(raw)
	}
	return input
}

// object gives the members, or the whole block that nothing changed, as a JSON object.
func (b *block) object() string {
	if b.raw != nil {
		return string(b.raw)
	}
	out := []byte{'{'}
	for i, m := range b.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(wire.AppendString(out, m.key), ':')
		if m.text {
			out = wire.AppendString(out, string(m.value))
		} else {
			out = append(out, m.value...)
		}
	}
	return string(append(out, '}'))
}
