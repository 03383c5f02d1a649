package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// output is a schema of a reply, in the form that the API takes.
type output struct {
	schema json.RawMessage // as it was asked for
	bytes  []byte
	native bool // if not, the API would refuse it, and the model answers by a tool
}

// outputOf gives the form of a schema, the last one's again if it is the same.
func (m *Model) outputOf(schema json.RawMessage) *output {
	if o := m.output.Load(); o != nil && bytes.Equal(o.schema, schema) {
		return o
	}
	o := &output{schema: bytes.Clone(schema)}
	n := narrowing{defs: wire.Get(schema, "$defs"), refs: map[string]bool{}}
	o.bytes, o.native = n.schema(nil, schema, 0)
	o.native = o.native && n.optional <= 24 && n.unions <= 16
	m.output.Store(o)
	return o
}

// byTool reports whether the answer is to come by a tool: the schema is none that the API takes.
func (m *Model) byTool(req *model.Request) bool {
	return len(req.Output) > 0 && m.can.Schema && wire.Valid(req.Output) && !m.outputOf(req.Output).native
}

// tooled is the model as it answers req by a tool.
func (m *Model) tooled(req *model.Request) model.Model {
	if req.ToolChoice == model.ToolsAuto {
		return m.free
	}
	return m.chosen
}

// plain is the model without its mode for schemas.
type plain struct {
	*Model
	free bool // the caller left it to the model whether it calls a tool
}

// Complete implements model.Model.
func (p plain) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	return p.Model.Complete(ctx, p.unforced(req))
}

// CompleteStream implements model.Model.
func (p plain) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	return p.Model.CompleteStream(ctx, p.unforced(req), cb)
}

// unforced lets a model answer by a tool that always thinks, and refuses to be forced then, whatever the request says of thinking. Where it may call no other tool, it has no other one. A
// choice of the caller's own stays.
func (p plain) unforced(req model.Request) model.Request {
	switch thinks := !p.family.forced && p.family.off != "disabled"; {
	case thinks && req.ToolChoice == model.OutputTool:
		req.Tools, req.ProviderTools, req.ToolChoice = req.Tools[len(req.Tools)-1:], nil, model.ToolsAuto
	case thinks && p.free && req.ToolChoice == model.ToolsRequired:
		req.ToolChoice = model.ToolsAuto
	}
	return req
}

// Capabilities are the model's without a Schema.
func (p plain) Capabilities() model.Capabilities {
	can := p.can
	can.Schema = false
	return can
}

// narrowing brings a schema into the subset that the API's page on structured outputs lists. Bounds, which it refuses, become words of the description: whoever asked checks
// them. Objects that say nothing of further members have none. What can't be said in the subset (any value, members of any name, recursion) is not ok.
type narrowing struct {
	defs             []byte
	refs             map[string]bool // definitions that were followed, and whether they can be said: not while they are
	optional, unions int             // properties that may be left out, and those of several types: the API takes 24 and 16
}

// The keywords by what becomes of them. Any other one makes a schema that is not ok.
var (
	same    = []string{"type", "title", "const", "default", "required"}
	noted   = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
	dropped = []string{"$schema", "$comment", "examples", "deprecated", "readOnly", "writeOnly"}
	formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

// schema appends a schema. deep is how far inside of others it is.
func (n *narrowing) schema(b, raw []byte, deep int) (_ []byte, ok bool) {
	if deep > 50 || len(raw) == 0 || raw[0] != '{' {
		return b, false
	}
	if ref := wire.Get(raw, "$ref"); ref != nil {
		if !n.follow(wire.String(ref), raw, deep) {
			return b, false
		}
		return append(append(append(b, `{"$ref":`...), ref...), '}'), true
	}
	var description string
	var notes []string
	shaped, closed := false, false
	b = append(b, '{')
	name := func(key string) { b = append(wire.AppendString(next(b), key), ':') }
	for m := wire.Object(raw); m.Next(); {
		key := string(m.Key)
		shaped = shaped || slices.Contains([]string{"type", "anyOf", "oneOf", "allOf", "enum", "const"}, key)
		ok = true
		switch {
		case key == "type" && m.Value[0] == '[', key == "anyOf", key == "oneOf":
			n.unions++
		}
		switch {
		case key == "description":
			description = wire.String(m.Value)
		case key == "properties":
			name(key)
			b, ok = n.members(b, m.Value, deep)
			n.optional += optional(m.Value, wire.Get(raw, "required"))
		case key == "$defs" && deep == 0:
			name(key)
			b, ok = n.members(b, m.Value, deep)
		case key == "items":
			name(key)
			b, ok = n.schema(b, m.Value, deep+1)
		case key == "anyOf", key == "oneOf", key == "allOf":
			name(strings.Replace(key, "oneOf", "anyOf", 1)) // that it is only one is checked by whoever asked
			b, ok = n.list(b, m.Value, deep)
		case key == "additionalProperties":
			closed, ok = true, string(m.Value) == "false"
			name(key)
			b = append(b, "false"...)
		case key == "enum":
			name(key)
			b, ok = scalars(b, m.Value)
		case key == "format" && slices.Contains(formats, wire.String(m.Value)), key == "minItems" && (string(m.Value) == "0" || string(m.Value) == "1"), slices.Contains(same, key):
			name(key)
			b, ok = wire.AppendCompact(b, m.Value)
		case key == "format", key == "minItems", slices.Contains(noted, key):
			notes = append(notes, key+": "+string(m.Value))
		default:
			ok = slices.Contains(dropped, key)
		}
		if !ok {
			return b, false
		}
	}
	switch kind := string(wire.Get(raw, "type")); {
	case !shaped, kind == `"array"` && wire.Get(raw, "items") == nil, strings.Contains(kind, `"object"`) && wire.Get(raw, "properties") == nil && !closed:
		return b, false // any value, any elements, any members
	case strings.Contains(kind, `"object"`) && !closed:
		name("additionalProperties")
		b = append(b, "false"...)
	}
	if notes != nil {
		description = strings.TrimSpace(description + " (" + strings.Join(notes, ", ") + ")")
	}
	if description != "" {
		name("description")
		b = wire.AppendString(b, description)
	}
	return append(b, '}'), true
}

// follow reports whether a reference leads to a definition that can be said, and not into itself. Beside it nothing but words may stand.
func (n *narrowing) follow(ref string, raw []byte, deep int) bool {
	for m := wire.Object(raw); m.Next(); {
		if key := string(m.Key); key != "$ref" && key != "description" && key != "title" && key != "default" && (deep > 0 || key != "$defs") && !slices.Contains(dropped, key) {
			return false
		}
	}
	to, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok || deep == 0 {
		return false
	}
	if can, known := n.refs[to]; known {
		return can
	}
	n.refs[to] = false
	within := narrowing{defs: n.defs, refs: n.refs} // what it counts is counted where the definition stands
	_, n.refs[to] = within.schema(nil, wire.Get(n.defs, to), deep+1)
	return n.refs[to]
}

// members appends schemas by name.
func (n *narrowing) members(b, raw []byte, deep int) (_ []byte, ok bool) {
	if raw[0] != '{' {
		return b, false
	}
	b = append(b, '{')
	for m := wire.Object(raw); m.Next(); {
		b = append(wire.AppendString(next(b), string(m.Key)), ':')
		if b, ok = n.schema(b, m.Value, deep+1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func (n *narrowing) list(b, raw []byte, deep int) (_ []byte, ok bool) {
	if raw[0] != '[' {
		return b, false
	}
	b = append(b, '[')
	for e := wire.Array(raw); e.Next(); {
		if b, ok = n.schema(next(b), e.Value, deep+1); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

// scalars appends the values of an enum: the API takes no lists and objects there.
func scalars(b, raw []byte) ([]byte, bool) {
	for e := wire.Array(raw); e.Next(); {
		if e.Value[0] == '{' || e.Value[0] == '[' {
			return b, false
		}
	}
	return wire.AppendCompact(b, raw)
}

// optional counts the properties that are not required.
func optional(properties, required []byte) (n int) {
	var must []string
	for e := wire.Array(required); e.Next(); {
		must = append(must, wire.String(e.Value))
	}
	for m := wire.Object(properties); m.Next(); {
		if !slices.Contains(must, string(m.Key)) {
			n++
		}
	}
	return n
}
