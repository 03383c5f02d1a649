package tool

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// names are the members that a tool's input may have: under which other names they are taken, too. Go reads members in any case, schemas
// and hooks don't: so each member gets its one name before anybody looks at it, and none may be given twice.
type names struct {
	list  []string       // the schema's properties
	index map[string]int // by name, by alias, and by either in lower case
}

func namesOf(schema json.RawMessage, aliases map[string]string) names {
	n := names{index: map[string]int{}}
	props := wire.Object(wire.Get(schema, "properties"))
	for props.Next() {
		n.index[string(props.Key)] = len(n.list)
		n.list = append(n.list, string(props.Key))
	}
	for alias, name := range aliases {
		if i, ok := n.index[name]; ok {
			n.index[alias] = i
		}
	}
	for name, i := range n.index {
		if lower := strings.ToLower(name); !slices.Contains(n.list, lower) {
			if _, taken := n.index[lower]; !taken {
				n.index[lower] = i
			}
		}
	}
	return n
}

// find gives the place of a member in list; -1 when the schema doesn't name it.
func (n names) find(key []byte) int {
	if i, ok := n.index[string(key)]; ok {
		return i
	}
	if i, ok := n.index[strings.ToLower(string(key))]; ok {
		return i
	}
	return -1
}

// canonical gives input with each member under its one name: input itself, mostly. It fails when a member is given twice. What is no object, the
// schema refuses.
func (n names) canonical(input json.RawMessage) (json.RawMessage, error) {
	if len(n.list) == 0 {
		return input, nil
	}
	var few [32]bool
	seen, rename := few[:], false
	if len(n.list) > len(few) {
		seen = make([]bool, len(n.list))
	}
	m := wire.Object(input)
	for m.Next() {
		i := n.find(m.Key)
		if i < 0 {
			continue
		}
		if seen[i] {
			return nil, n.twice(input, i)
		}
		seen[i] = true
		rename = rename || string(m.Key) != n.list[i]
	}
	if !rename || m.Err() != nil {
		return input, nil
	}
	out := make([]byte, 0, len(input)+16)
	m = wire.Object(input)
	for m.Next() {
		name := string(m.Key)
		if i := n.find(m.Key); i >= 0 {
			name = n.list[i]
		}
		out = wire.AppendString(append(out, ','), name)
		out = append(append(out, ':'), m.Value...)
	}
	out[0] = '{'
	return append(out, '}'), nil
}

// twice says under which names a member was given more than once.
func (n names) twice(input json.RawMessage, member int) error {
	var as []string
	m := wire.Object(input)
	for m.Next() {
		if n.find(m.Key) == member && !slices.Contains(as, string(m.Key)) {
			as = append(as, string(m.Key))
		}
	}
	if len(as) == 1 {
		return errdefs.Validation.Errorf("%q is given twice", as[0])
	}
	slices.Sort(as)
	return errdefs.Validation.Errorf("%q and %q are the same: give one of them", as[0], as[1])
}

// exact reports whether each name is found by itself, and not by what an alias makes of it.
func (n names) exact() bool {
	for i, name := range n.list {
		if n.find([]byte(name)) != i {
			return false
		}
	}
	return true
}
