package tool

import (
	"encoding"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-dev/pawl/errdefs"
)

// written says how types of the standard library look that are written in a way of their own.
var written = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[time.Time]():       {Type: "string", Description: "RFC 3339, such as 2006-01-02T15:04:05Z"},
	reflect.TypeFor[big.Int]():         {Type: "integer"},
}

var (
	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// infer makes the schema of a type, with what of it reads itself from a text as a string.
func infer[T any]() (*jsonschema.Schema, error) {
	types := maps.Clone(written)
	texts(reflect.TypeFor[T](), map[reflect.Type]bool{}, types)
	return jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: types})
}

// texts gathers the types within t that read themselves from a text.
func texts(t reflect.Type, seen map[reflect.Type]bool, into map[reflect.Type]*jsonschema.Schema) {
	if seen[t] || into[t] != nil {
		return
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		texts(t.Elem(), seen, into)
	case p.Implements(readsJSON) || k == reflect.Interface:
	case p.Implements(readsText):
		into[t] = &jsonschema.Schema{Type: "string"}
	case k == reflect.Slice || k == reflect.Array || k == reflect.Map:
		texts(t.Elem(), seen, into)
	case k == reflect.Struct:
		for f := range t.Fields() {
			texts(f.Type, seen, into)
		}
	}
}

// SchemaOf is the JSON Schema of a type, as [Func] makes it of its input: by the rules of encoding/json, with descriptions from the tag jsonschema. A type that reads itself from a text (encoding.TextUnmarshaler) is a string; one with an UnmarshalJSON of its own has the schema of its fields. A type that JSON can't have (a function, a channel), or that is in itself, is errdefs.Validation.
func SchemaOf[T any]() (json.RawMessage, error) {
	s, err := infer[T]()
	if err != nil {
		if strings.Contains(err.Error(), "cycle detected") {
			return nil, errdefs.Validation.Errorf("tool: schema: %w: a type that contains itself has none here: write the schema by hand, as the output schema of an agent, or let the type hold json.RawMessage there", err)
		}
		return nil, errdefs.Validation.Errorf("tool: schema: %w", err)
	}
	tighten(s)
	return marshal(s)
}

// tighten takes away the null that inference allows for slices and pointers, as a model that may write null will, and makes pointers
// optional.
func tighten(s *jsonschema.Schema) {
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool {
		p := s.Properties[name]
		return nullable(p) && p.Types[1] != "array" || p != nil && len(p.Types) == 1
	})
	if nullable(s) {
		s.Type, s.Types = s.Types[1], nil
	}
	if len(s.Types) == 1 { // a pointer to what may be anything
		s.Types = nil
	}
	for _, p := range s.Properties {
		tighten(p)
	}
	if s.Items != nil {
		tighten(s.Items)
	}
	if s.AdditionalProperties != nil {
		tighten(s.AdditionalProperties)
	}
}

func nullable(s *jsonschema.Schema) bool {
	return s != nil && len(s.Types) == 2 && s.Types[0] == "null"
}
