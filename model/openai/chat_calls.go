package openai

import (
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// chatCall gathers a call.
type chatCall struct {
	index string // as it is on the wire; "" for none
	id    string
	function
	others []otherMember
}

type function struct {
	name      string
	arguments []byte
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
	i := r.find(index, wire.String(id), fn)
	for _, o := range others {
		r.calls[i].set(o)
	}
	return r.add(i, fn)
}

// add takes more of call i, and says what came of its input.
func (r *chatReply) add(i int, fn []byte) error {
	c := &r.calls[i]
	n := len(c.arguments)
	c.add(fn)
	if r.cb == nil || len(c.arguments) == n {
		return nil
	}
	return r.cb(model.StreamResult{Input: string(c.arguments[n:]), Tool: c.name, Call: i})
}

// find gives the call that a piece belongs to, a new one if need be. OpenAI gives every piece its index, and the id with the first.
// Others leave the index out, or repeat the id, or have no ids, or send whole calls that are all of index 0.
func (r *chatReply) find(index []byte, id string, fn []byte) int {
	if r.cb != nil { // in a whole reply, each element is a call of its own
		for i := len(r.calls) - 1; i >= 0; i-- {
			c := &r.calls[i]
			switch {
			case index != nil && c.index != string(index):
			case id != "" && c.id != "" && c.id != id:
			case id == "" && index == nil && i < len(r.calls)-1: // a nameless piece belongs to the last call
			case c.begins(id, fn):
			default:
				if c.id == "" {
					c.id = id
				}
				return i
			}
		}
	}
	r.calls = append(r.calls, chatCall{index: string(index), id: id})
	return len(r.calls) - 1
}

// begins reports whether a piece begins another call than c, although neither its index nor its id says so: it names another function,
// or the same one again with new arguments after complete ones.
func (c *chatCall) begins(id string, fn []byte) bool {
	if id != "" && id == c.id {
		return false
	}
	name := wire.String(wire.Get(fn, "name"))
	if name == "" || c.name == "" {
		return false
	}
	text := argumentText(nil, wire.Get(fn, "arguments"))
	return name != c.name || len(text) > 0 && text[0] == '{' && wire.Valid(c.arguments)
}

// add takes a function's name and arguments. The name comes once, or again and again.
func (f *function) add(data []byte) {
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "name":
			if f.name == "" {
				f.name = wire.String(o.Value)
			}
		case "arguments":
			f.arguments = argumentText(f.arguments, o.Value)
		}
	}
}

// argumentText appends arguments: a string that has JSON in it, or, with some servers, the object itself.
func argumentText(dst, value []byte) []byte {
	if len(value) > 0 && value[0] == '{' {
		return append(dst, value...)
	}
	return wire.AppendText(dst, value)
}

// last gives the last call, a new one if there is none.
func (r *chatReply) last() int {
	if len(r.calls) == 0 {
		r.calls = append(r.calls, chatCall{})
	}
	return len(r.calls) - 1
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
		x.add(o.name, o.value)
	}
	in, spelled := input(c.arguments)
	if spelled {
		x.addString(noteArguments, string(c.arguments))
	}
	return message.ToolCall{ID: c.id, Name: c.name, Input: in, Origin: message.Origin{Provider: chat, Extra: x.String()}}
}
