package openai

import "github.com/pawl-dev/pawl/internal/wire"

// chatChunk is what a chunk has for us, in place.
type chatChunk struct {
	id, model, usage, failure []byte
	choices                   []chatChoice
	members                   []chatMember // of the deltas of all choices
}

type chatChoice struct {
	index, finish, failure []byte
	end                    int // where its members end
}

// chatMember is a member of a delta.
type chatMember struct {
	name  string // one of chatMembers
	value []byte
}

// chatMembers are the members of a delta that say something.
var chatMembers = [...]string{"content", "reasoning_content", "reasoning", "reasoning_details", "refusal", "tool_calls", "annotations", "function_call"}

// read reads a chunk in one pass; false when it is no JSON object. It takes the room that the chunk before took.
func (c *chatChunk) read(data []byte) bool {
	*c = chatChunk{choices: c.choices[:0], members: c.members[:0]}
	r := wire.Read(data)
	for key := range r.Object {
		switch string(key) {
		case "id":
			if c.id == nil {
				c.id = r.Value()
			}
		case "model":
			if c.model == nil {
				c.model = r.Value()
			}
		case "choices":
			c.choices, c.members = c.choices[:0], c.members[:0]
			for range r.Array {
				c.choice(&r)
			}
		case "usage":
			c.usage = r.Value()
		case "error":
			c.failure = r.Value()
		}
	}
	return r.Err() == nil
}

func (c *chatChunk) choice(r *wire.Reader) {
	var o chatChoice
	from := len(c.members)
	for key := range r.Object {
		switch string(key) {
		case "index":
			o.index = r.Value()
		case "delta", "message":
			c.members = c.members[:from]
			for key := range r.Object {
				for _, name := range chatMembers {
					if string(key) == name {
						c.members = append(c.members, chatMember{name, r.Value()})
						break
					}
				}
			}
		case "finish_reason":
			o.finish = r.Value()
		case "error":
			o.failure = r.Value()
		}
	}
	o.end = len(c.members)
	c.choices = append(c.choices, o)
}
