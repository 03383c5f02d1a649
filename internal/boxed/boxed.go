// Package boxed puts an answer that need not be an object into one, as its member value: where a provider's mode, or a tool's input, has room for objects only.
package boxed

import (
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
)

const member = "value"

// Schema gives the schema of an object with the value that schema describes; or schema itself, and in is false, when that is of an object already.
// References inside of it lead to where they led.
func Schema(schema json.RawMessage) (out json.RawMessage, in bool) {
	if !Needed(schema) {
		return schema, false
	}
	out = append(out, `{"type":"object","properties":{"`+member+`":`...)
	var shared []byte // definitions stay at the top, where providers look for them
	if schema[0] == '{' && wire.Get(schema, "$id") == nil {
		inner := []byte{'{'}
		for o := wire.Object(schema); o.Next(); {
			if defs := string(o.Key) == "$defs" || string(o.Key) == "definitions"; defs {
				shared = moved(append(wire.AppendString(append(shared, ','), string(o.Key)), ':'), o.Value)
				continue
			}
			if len(inner) > 1 {
				inner = append(inner, ',')
			}
			inner = append(append(wire.AppendString(inner, string(o.Key)), ':'), o.Value...)
		}
		schema = append(inner, '}')
	}
	out = append(moved(out, schema), `},"required":["`+member+`"],"additionalProperties":false`...)
	return append(append(out, shared...), '}'), true
}

// Needed reports whether schema is one, and not of an object.
func Needed(schema json.RawMessage) bool {
	return len(schema) > 0 && string(wire.Get(schema, "type")) != `"object"`
}

// moved appends a schema that has come to stand deeper. What names itself by $id is found as before.
func moved(dst, raw []byte) []byte {
	if len(raw) == 0 || raw[0] == '{' && wire.Get(raw, "$id") != nil {
		return append(dst, raw...)
	}
	switch raw[0] {
	case '{':
		dst = append(dst, '{')
		first := true
		for o := wire.Object(raw); o.Next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendString(dst, string(o.Key)), ':')
			to := wire.String(o.Value)
			if refers := string(o.Key) == "$ref" || string(o.Key) == "$dynamicRef"; refers && within(to) {
				dst = wire.AppendString(dst, "#/properties/"+member+to[1:])
				continue
			}
			dst = moved(dst, o.Value)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		first := true
		for a := wire.Array(raw); a.Next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = moved(dst, a.Value)
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}

// within reports whether a reference leads into the part of a schema that has come to stand deeper.
func within(ref string) bool {
	return ref == "#" || strings.HasPrefix(ref, "#/") && !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/")
}

// Value takes the value out of an answer. One that is no such object is left as it is: whoever asked for a schema checks.
func Value(answer string) string {
	raw := []byte(answer)
	if !wire.Valid(raw) {
		return answer
	}
	if v := wire.Get(raw, member); v != nil {
		return string(v)
	}
	return answer
}

// Opener takes the value out of an answer that comes in pieces. The zero value waits for the first one.
type Opener struct {
	seen           int // of opening
	inside, closed bool
	depth          int  // of what is open in the value
	quoted         bool // a text is
	escaped        bool
}

// Found reports whether the answer has a value, so far.
func (o *Opener) Found() bool { return o.inside }

// opening is how the answer begins, but for white space.
const opening = `{"` + member + `":`

// Write gives what of a piece belongs to the value: a part of the piece itself. An answer that begins in another way has no value.
func (o *Opener) Write(piece string) string {
	i := 0
	for ; i < len(piece) && !o.inside && !o.closed; i++ {
		switch piece[i] {
		case opening[o.seen]:
			o.seen++
			o.inside = o.seen == len(opening)
		case ' ', '\n', '\r', '\t':
			o.closed = o.seen > 1 && o.seen < len(opening)-1 // inside the name
		default:
			o.closed = true
		}
	}
	begin := i
	for ; i < len(piece) && !o.closed; i++ {
		switch c := piece[i]; {
		case o.escaped:
			o.escaped = false
		case o.quoted:
			o.escaped, o.quoted = c == '\\', c != '"'
		case c == '"':
			o.quoted = true
		case c == '{' || c == '[':
			o.depth++
		case o.depth > 0 && (c == '}' || c == ']'):
			o.depth--
		case o.depth == 0 && (c == ',' || c == '}'):
			o.closed = true
			return piece[begin:i]
		}
	}
	return piece[begin:i]
}
