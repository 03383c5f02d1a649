package openai

import (
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// chatCall gathers a call.
type chatCall struct {
	at        int    // how many calls are before it
	index     string // as it is on the wire; "" for none
	id        string
	name      string
	arguments wire.Text
	others    []otherMember
}

// otherMember is a member of a call that has no field of ours.
type otherMember struct {
	name  string
	value []byte
}

// call takes an element of tool_calls: a whole call or a piece of one.
func (r *chatReply) call(data []byte) error {
	var index, id, fn []byte
	var others []otherMember
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "index":
			index = o.Value
		case "id":
			id = o.Value
		case "function":
			fn = o.Value
		case "type":
		default:
			if !wire.IsNull(o.Value) {
				others = append(others, otherMember{string(o.Key), append([]byte(nil), o.Value...)})
			}
		}
	}
	if wire.IsNull(index) {
		index = nil
	}
	c := r.find(index, id, fn)
	for _, o := range others {
		c.set(o)
	}
	alone, err := r.add(c, fn)
	if others == nil {
		r.last = chatPiece{raw: alone, call: c} // what follows alike is of the same call
	}
	return err
}

// add takes more of a call: its function's name, which comes once, or again and again, and arguments. It gives these where they came alone.
func (r *chatReply) add(c *chatCall, fn []byte) (alone []byte, err error) {
	name := wire.First(fn, "name")
	if c.name == "" {
		c.name = httpapi.ToolName(name, r.tools)
	}
	more := argumentText(wire.First(fn, "arguments"))
	if name == nil {
		alone = more
	}
	return alone, r.hear(chatPiece{raw: more, call: c})
}

// find gives the call that a piece belongs to, a new one if need be. OpenAI gives every piece its index, and the id with the first.
// Others leave the index out, or repeat the id, or have no ids, or send whole calls that are all of index 0.
func (r *chatReply) find(index, rawID, fn []byte) *chatCall {
	id := ""
	if !wire.IsNull(rawID) {
		if n := len(r.calls); n > 0 {
			id = r.calls[n-1].id
		}
		if !wire.Quotes(rawID, id) {
			id = r.words.Append(rawID)
		}
	}
	if r.cb != nil { // in a whole reply, each element is a call of its own
		for i := len(r.calls) - 1; i >= 0; i-- {
			c := r.calls[i]
			switch {
			case index != nil && c.index != string(index):
			case id != "" && c.id != "" && c.id != id:
			case id == "" && index == nil && i < len(r.calls)-1: // a nameless piece belongs to the last call
			case c.begins(id, fn):
			default:
				if c.id == "" {
					c.id = id
				}
				return c
			}
		}
	}
	c := r.begin()
	c.index, c.id = string(index), id
	return c
}

// begin adds a call.
func (r *chatReply) begin() *chatCall {
	c := &r.first.call
	if len(r.calls) == 0 {
		r.calls = r.first.list[:0]
	} else {
		c = new(chatCall)
	}
	c.at = len(r.calls)
	r.calls = append(r.calls, c)
	return c
}

// begins reports whether a piece begins another call than c, although neither its index nor its id says so: it names another function,
// or the same one again with new arguments after complete ones.
func (c *chatCall) begins(id string, fn []byte) bool {
	if id != "" && id == c.id {
		return false
	}
	name := known(wire.First(fn, "name"), c.name)
	if name == "" || c.name == "" {
		return false
	}
	if name != c.name {
		return true
	}
	text := wire.String(argumentText(wire.First(fn, "arguments")))
	return len(text) > 0 && text[0] == '{' && wire.Valid(wire.View(c.arguments.String()))
}

// argumentText gives arguments as a JSON string: one that has JSON in it, or, with some servers, the object itself.
func argumentText(value []byte) []byte {
	if len(value) > 0 && value[0] == '{' {
		return wire.AppendString(nil, string(value))
	}
	return value
}

// latest gives the last call, a new one if there is none.
func (r *chatReply) latest() *chatCall {
	if n := len(r.calls); n > 0 {
		return r.calls[n-1]
	}
	return r.begin()
}

func (c *chatCall) set(o otherMember) {
	for i := range c.others {
		if c.others[i].name == o.name {
			c.others[i] = o
			return
		}
	}
	c.others = append(c.others, o)
}

// part gives the call, the i-th of its reply.
func (c *chatCall) part(i int) message.ToolCall {
	if c.id == "" {
		c.id = callID(i)
	}
	var x extra
	for _, o := range c.others {
		x = x.add(o.name, o.value)
	}
	in, spelled := input(c.arguments.Kept())
	if spelled {
		x = x.addString(noteArguments, c.arguments.String())
	}
	return message.ToolCall{ID: c.id, Name: c.name, Input: in, Origin: message.Origin{Provider: chat, Extra: x.String()}}
}
