package permit

import (
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/wire"
)

// member is one of an input's, with its value as JSON. Both are parts of the input, so that nothing is made of what nobody asks for: every call of every tool is read.
type member struct{ name, value string }

// members gives those of an input behind room, in their order; what is no object has none. A name that is there twice is twice among them.
func members(input string, room []member) []member {
	walk := wire.Object(wire.View(input))
	all := room
	for walk.Next() {
		start, end := walk.Span()
		name, quoted := input[start+1:], len(walk.Key)
		if strings.HasPrefix(name, string(walk.Key)) && name[quoted] == '"' {
			name = name[:quoted]
		} else { // it has escapes
			name = string(walk.Key)
		}
		all = append(all, member{name, input[end-len(walk.Value) : end]})
	}
	if walk.Err() != nil {
		return room
	}
	return all
}

// text is the first of the names whose value is a text; of a name that is there twice the last one counts, as for encoding/json.
func text(in []member, names ...string) string {
	for _, name := range names {
		for i := len(in) - 1; i >= 0; i-- {
			if in[i].name != name {
				continue
			}
			if s, ok := said(in[i].value); ok {
				return s
			}
			break
		}
	}
	return ""
}

// said is a value that is a text.
func said(value string) (string, bool) {
	switch {
	case value[0] != '"':
		return "", false
	case strings.IndexByte(value, '\\') < 0 && utf8.ValidString(value):
		return value[1 : len(value)-1], true
	}
	return wire.String(wire.View(value)), true
}

// texts calls f with a value that is a text, or with each of a list that is one.
func texts(value string, f func(string)) {
	if s, ok := said(value); ok {
		f(s)
		return
	}
	if value[0] != '[' {
		return
	}
	list := wire.Array(wire.View(value))
	for list.Next() {
		if s, ok := said(string(list.Value)); ok {
			f(s)
		}
	}
}
