package journal

import (
	"maps"
	"slices"

	"github.com/pawl-dev/pawl/message"
)

// openCalls are the calls of a reply on their way to their results.
type openCalls struct {
	calls   []message.ToolCall
	at      map[string]int // by id
	results []message.ToolResult
	begun   []bool
	done    []bool
	left    int // calls without a result
}

func open(calls []message.ToolCall) openCalls {
	o := openCalls{
		calls: calls, at: make(map[string]int, len(calls)), left: len(calls),
		results: make([]message.ToolResult, len(calls)), begun: make([]bool, len(calls)), done: make([]bool, len(calls)),
	}
	for i, c := range calls {
		o.at[c.ID] = i
	}
	return o
}

func (o openCalls) clone() openCalls {
	o.at, o.results, o.begun, o.done = maps.Clone(o.at), slices.Clone(o.results), slices.Clone(o.begun), slices.Clone(o.done)
	return o
}

// message has a result for each call, in their order. What has none was not run, or, if it had begun, nobody knows.
func (o openCalls) message() message.Message {
	rs := slices.Clone(o.results)
	for i, c := range o.calls {
		switch {
		case o.done[i]:
		case o.begun[i]:
			rs[i] = Unknown(c)
		default:
			rs[i] = NotRun(c)
		}
	}
	return message.Results(rs...)
}

// answer notes the result of an open call, the first one that it gets, and joins when it was the last.
func (s *State) answer(main bool, call string, result func(message.ToolCall) message.ToolResult) {
	o := &s.open
	i, ok := o.at[call]
	if !main || !ok || o.done[i] {
		return
	}
	o.results[i], o.done[i] = result(o.calls[i]), true
	if o.left--; o.left == 0 {
		s.join()
	}
}

// join adds the results of the last reply as one message, in the order of its calls, whatever order they came in. It keeps the
// transcript valid: nothing is ever appended after a call without a result.
func (s *State) join() {
	if len(s.open.calls) > 0 {
		m := s.open.message()
		s.open = openCalls{}
		s.Messages = s.Messages.Append(m)
	}
}
