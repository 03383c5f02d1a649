package schema

import (
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/internal/wire"
)

// plain is a schema of the ordinary kind, which values can be held against where they lie: an object with members of simple types, lists of them, and words to choose from.
type plain struct {
	types    kinds
	words    []string // of a string; nil: any
	members  []named  // of an object
	required uint64   // a bit for each of members
	items    *plain   // of a list
}

type named struct {
	name string
	*plain
}

// kinds is a set of JSON's types.
type kinds uint8

const (
	object kinds = 1 << iota
	array
	text
	number
	integer
	boolean
	null
)

var kindOf = map[string]kinds{"object": object, "array": array, "string": text, "number": number, "integer": integer, "boolean": boolean, "null": null}

// mostPlain is how deep a plain schema is at most.
const mostPlain = 20

// plainOf makes a plain schema of one that Parse gave; nil when there is anything in it that is not plain.
func plainOf(doc any, deep int) *plain {
	s, ok := doc.(map[string]any)
	if !ok || deep > mostPlain {
		return nil
	}
	p := &plain{}
	for key, value := range s {
		if !p.keyword(key, value, deep) {
			return nil
		}
	}
	if p.types == 0 || p.words != nil && p.types&^null != text || (p.items == nil) != (p.types&array == 0) || p.members != nil && p.types&object == 0 {
		return nil
	}
	required, _ := s["required"].([]any)
	for _, r := range required {
		i := slices.IndexFunc(p.members, func(m named) bool { return m.name == r })
		if i < 0 {
			return nil
		}
		p.required |= 1 << i
	}
	return p
}

// keyword takes one member of a schema; false when it is not plain.
func (p *plain) keyword(key string, value any, deep int) (ok bool) {
	switch key {
	case "title", "description":
		_, ok = value.(string)
		return ok
	case "default", "examples":
		return true
	case "type":
		names, list := value.([]any)
		if !list {
			names = []any{value}
		}
		for _, n := range names {
			name, _ := n.(string)
			k, known := kindOf[name]
			if !known {
				return false
			}
			p.types |= k
		}
		return true
	case "enum":
		words, ok := value.([]any)
		p.words = []string{}
		for _, w := range words {
			s, is := w.(string)
			ok = ok && is
			p.words = append(p.words, s)
		}
		return ok
	case "properties":
		all, ok := value.(map[string]any)
		if !ok || len(all) > 64 {
			return false
		}
		p.members = []named{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			m := plainOf(all[name], deep+1)
			if m == nil {
				return false
			}
			p.members = append(p.members, named{name, m})
		}
		return true
	case "required":
		_, ok = value.([]any)
		return ok
	case "additionalProperties":
		_, ok = value.(bool)
		return ok
	case "items":
		p.items = plainOf(value, deep+1)
		return p.items != nil
	}
	return false
}

// accepts reports whether raw, which is valid JSON or an object that may be, surely fits. When not, it may fit all the same, and the validator has to say so.
func (p *plain) accepts(raw []byte) bool {
	switch c := raw[0]; {
	case c == '{':
		return p.types&object != 0 && p.object(raw)
	case c == '[':
		return p.types&array != 0 && p.list(raw)
	case c == '"':
		return p.types&text != 0 && (p.words == nil || slices.Contains(p.words, wire.String(raw)))
	case c == 't', c == 'f':
		return p.types&boolean != 0
	case c == 'n':
		return p.types&null != 0 && p.words == nil
	case p.types&(number|integer) == 0 || len(raw) > 15:
		return false
	case p.types&number != 0 && p.types&integer == 0:
		return !slices.ContainsFunc(raw, func(c byte) bool { return c == 'e' || c == 'E' })
	}
	return !slices.ContainsFunc(raw, func(c byte) bool { return c != '-' && (c < '0' || c > '9') })
}

func (p *plain) object(raw []byte) bool {
	var seen uint64
	m := wire.Object(raw)
members:
	for m.Next() {
		for i := range p.members {
			if p.members[i].name == string(m.Key) {
				if seen&(1<<i) != 0 || !p.members[i].accepts(m.Value) { // given twice, or wrong
					return false
				}
				seen |= 1 << i
				continue members
			}
		}
		return false // it may be allowed: what is in it is for the validator
	}
	return m.Err() == nil && seen&p.required == p.required
}

func (p *plain) list(raw []byte) bool {
	e := wire.Array(raw)
	for e.Next() {
		if !p.items.accepts(e.Value) {
			return false
		}
	}
	return e.Err() == nil
}

// Accepts reports whether raw surely is a JSON object that fits the schema, has only members that the schema names, and none of them twice. It looks at objects only, builds nothing of them, and says no where it would have to do more than to look: then [Parse] and [Schema.Check] say what is the case.
func (s *Schema) Accepts(raw []byte) bool {
	return s.plain != nil && len(raw) > 0 && raw[0] == '{' && s.plain.accepts(raw)
}
