package journal

import (
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/message"
)

// openCalls are the calls of a reply on their way to their results.
type openCalls struct {
	calls []openCall
	at    map[string]int // by id; nil: there are few
	left  int            // calls without a result
}

// openCall has its call as it stands in the reply, and the result as it will stand in the message: neither is copied.
type openCall struct {
	part   message.Part // a message.ToolCall
	result message.Part // a message.ToolResult; nil: none yet
	begun  bool
}

func (c *openCall) call() message.ToolCall { return c.part.(message.ToolCall) }

// few calls are found by looking at each.
const few = 8

// open gives the calls of a message, at most n of them.
func open(m message.Message, n int) openCalls {
	o := openCalls{calls: make([]openCall, 0, n)}
	if n > few {
		o.at = make(map[string]int, n)
	}
	for i := range m.Len() {
		c, ok := m.Part(i).(message.ToolCall)
		if !ok {
			continue
		}
		if o.at != nil {
			o.at[c.ID] = len(o.calls)
		}
		o.calls = append(o.calls, openCall{part: m.Part(i)})
	}
	o.left = len(o.calls)
	return o
}

// find gives the open call of an id; nil if there is none.
func (o openCalls) find(id string) *openCall {
	if o.at != nil {
		if i, ok := o.at[id]; ok {
			return &o.calls[i]
		}
		return nil
	}
	for i := range o.calls {
		if c, _ := o.calls[i].part.(message.ToolCall); c.ID == id {
			return &o.calls[i]
		}
	}
	return nil
}

func (o openCalls) clone() openCalls {
	o.at, o.calls = maps.Clone(o.at), slices.Clone(o.calls)
	return o
}

// message has a result for each call, in their order. What has none was not run, or, if it had begun, nobody knows.
func (o openCalls) message() message.Message {
	var room [few]message.Part // the message copies them
	rs := room[:0]
	for i := range o.calls {
		switch c := &o.calls[i]; {
		case c.result != nil:
			rs = append(rs, c.result)
		case c.begun:
			rs = append(rs, Unknown(c.call()))
		default:
			rs = append(rs, NotRun(c.call()))
		}
	}
	return message.New(message.RoleTool, rs...)
}

// are reports whether all calls have the results that m has.
func (o openCalls) are(m message.Message) bool {
	if m.IsZero() || o.left > 0 || m.Role() != message.RoleTool || m.Len() != len(o.calls) {
		return false
	}
	for i := range o.calls {
		a, _ := o.calls[i].result.(message.ToolResult)
		b, ok := m.Part(i).(message.ToolResult)
		if !ok || a.Call != b.Call || a.Name != b.Name || a.Content != b.Content || a.IsError != b.IsError || !slices.Equal(a.Files, b.Files) {
			return false
		}
	}
	return true
}

// answer notes the result of an open call, the first one that it gets, and joins when it was the last.
func (s *State) answer(main bool, call string, result func(message.ToolCall) message.ToolResult) {
	c := s.open.find(call)
	if !main || c == nil || c.result != nil {
		return
	}
	c.result = result(c.call())
	if s.open.left--; s.open.left == 0 {
		s.join()
	}
}

// show is join for whoever reads the state, and may go on from it: the calls stay open for With.
func (s *State) show() {
	if len(s.open.calls) > 0 {
		open, expected := s.open.clone(), s.expected
		s.join()
		s.open, s.expected, s.shown = open, expected, true
	}
}

// hide takes back what show has put there.
func (s *State) hide() {
	if s.shown {
		s.Messages, s.shown = s.Messages.Slice(0, s.Messages.Len()-1), false
	}
}

// join adds the results of the last reply as one message, in the order of its calls, whatever order they came in. It keeps the
// transcript valid: nothing is ever appended after a call without a result.
func (s *State) join() {
	if len(s.open.calls) > 0 {
		m := s.expected
		if !s.open.are(m) {
			m = s.open.message()
		}
		s.open, s.expected = openCalls{}, message.Message{}
		s.Messages = s.Messages.Append(m)
	}
}
