package openai

import (
	"slices"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// Origin.Extra has the members of a wire object that have no field of ours, and notes: members of our own that are never sent. The
// name of a note begins with a character that no name on the wire begins with.
const (
	noteField     = "#field"     // Chat: the member that reasoning came in
	noteArguments = "#arguments" // a call's arguments as the model spelled them, where Input is spelled otherwise
	noteItem      = "#item"      // Responses: the other members of the message that this text begins
)

// extra builds an Origin.Extra.
type extra struct{ b []byte }

func (x *extra) add(key string, raw []byte) {
	if x.b == nil {
		x.b = append(x.b, '{')
	} else {
		x.b = append(x.b, ',')
	}
	x.b = append(wire.AppendString(x.b, key), ':')
	x.b, _ = wire.AppendCompact(x.b, raw)
}

func (x *extra) addString(key, s string) { x.add(key, wire.AppendString(nil, s)) }

// String gives the object; "" when nothing was added.
func (x *extra) String() string {
	if x.b == nil {
		return ""
	}
	return string(x.b) + "}"
}

// object gives the object, empty if need be: that there was one says something.
func (x *extra) object() string {
	if x.b == nil {
		return "{}"
	}
	return x.String()
}

// appendExtra appends the members of a JSON object, each after a comma, but for notes and for those that the caller writes itself.
func appendExtra(dst []byte, object string, written ...string) []byte {
	for m := wire.Object([]byte(object)); m.Next(); {
		key := string(m.Key)
		if key == "" || key[0] == '#' || slices.Contains(written, key) {
			continue
		}
		dst = append(wire.AppendString(append(dst, ','), key), ':')
		dst = append(dst, m.Value...)
	}
	return dst
}

// extraOf is o.Extra when this wire made it.
func extraOf(o message.Origin, provider string) string {
	if o.Provider != provider {
		return ""
	}
	return o.Extra
}

// note looks a member of an extra up; nil when it isn't there.
func note(extra, key string) []byte {
	if extra == "" {
		return nil
	}
	return wire.Get([]byte(extra), key)
}

// input gives a call's arguments as a ToolCall has them. spelled says that the model spelled them otherwise, with other white space:
// that is worth keeping, because a provider's cache ends where a request says something else than the model did.
func input(arguments []byte) (in string, spelled bool) {
	if len(arguments) == 0 {
		return "{}", false
	}
	compact, ok := wire.AppendCompact(nil, arguments)
	if !ok {
		return string(arguments), false
	}
	return string(compact), len(compact) != len(arguments)
}

// arguments gives the text of a call's arguments to send: as the model spelled them, if they are still the same.
func arguments(c message.ToolCall, extra string) string {
	if c.Input == "" {
		return "{}"
	}
	if spelled := wire.String(note(extra, noteArguments)); spelled != "" {
		if in, _ := input([]byte(spelled)); in == c.Input {
			return spelled
		}
	}
	return c.Input
}

// validObject reports whether s is a JSON object.
func validObject(s string) bool {
	m := wire.Object([]byte(s))
	for m.Next() {
	}
	return m.Err() == nil
}
