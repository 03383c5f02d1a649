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

// extra builds an Origin.Extra: an object without its end; nothing while nothing was added.
type extra []byte

func (x extra) add(key string, raw []byte) extra {
	if len(x) == 0 {
		x = append(x, '{')
	} else {
		x = append(x, ',')
	}
	with, _ := wire.AppendCompact(append(wire.AppendString(x, key), ':'), raw)
	return with
}

func (x extra) addString(key, s string) extra { return x.add(key, wire.AppendString(nil, s)) }

// String gives the object; "" when nothing was added.
func (x extra) String() string {
	if len(x) == 0 {
		return ""
	}
	return string(append(x, '}'))
}

// object gives the object, empty if need be: that there was one says something.
func (x extra) object() []byte {
	if len(x) == 0 {
		return []byte("{}")
	}
	return append(x, '}')
}

// appendExtra appends the members of a JSON object, each after a comma, but for notes and for those that the caller writes itself.
func appendExtra(dst []byte, object string, written ...string) []byte {
	return appendMembers(dst, wire.View(object), written...)
}

func appendMembers(dst, object []byte, written ...string) []byte {
	for m := wire.Object(object); m.Next(); {
		if len(m.Key) == 0 || m.Key[0] == '#' || slices.Contains(written, string(m.Key)) {
			continue
		}
		dst = append(wire.AppendString(append(dst, ','), string(m.Key)), ':')
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
	return wire.Get(wire.View(extra), key)
}

// input gives a call's arguments as a ToolCall has them. spelled says that the model spelled them otherwise, with other white space:
// that is worth keeping, because a provider's cache ends where a request says something else than the model did.
func input(arguments string) (in string, spelled bool) {
	if arguments == "" {
		return "{}", false
	}
	if wire.Compact(wire.View(arguments)) {
		return arguments, false
	}
	compact, ok := wire.AppendCompact(nil, wire.View(arguments))
	if !ok {
		return arguments, false
	}
	return string(compact), true
}

// arguments gives the text of a call's arguments to send: as the model spelled them, if they are still the same.
func arguments(c message.ToolCall, extra string) string {
	if c.Input == "" {
		return "{}"
	}
	if spelled := wire.String(note(extra, noteArguments)); spelled != "" {
		if in, _ := input(spelled); in == c.Input {
			return spelled
		}
	}
	return c.Input
}

// validObject reports whether s is a JSON object.
func validObject(s string) bool {
	m := wire.Object(wire.View(s))
	for m.Next() {
	}
	return m.Err() == nil
}

// known is wire.String, which costs nothing where raw says what is known already.
func known(raw []byte, s string) string {
	if wire.Quotes(raw, s) {
		return s
	}
	return wire.String(raw)
}

// word is wire.String, which costs nothing for the words that most replies have.
func word(raw []byte) string {
	if len(raw) > 2 && raw[0] == '"' {
		for _, w := range words {
			if string(raw[1:len(raw)-1]) == w {
				return w
			}
		}
	}
	return wire.String(raw)
}

// words are those that come often first.
var words = [...]string{
	"response.output_text.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta",
	"message", "function_call", "output_text", "assistant", "completed", "reasoning", "summary_text", "refusal", "incomplete",
	"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.done",
	"response.content_part.done", "response.function_call_arguments.done", "response.output_item.done", "response.completed",
	"stop", "tool_calls", "length",
}
