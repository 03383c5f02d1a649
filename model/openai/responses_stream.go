package openai

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// stream reads a stream. Deltas are passed on as they come; the reply is read from the finished items and the last event, so that it
// is the same as a whole one.
func (m *Responses) stream(ctx context.Context, events *wire.Events, cb model.StreamHandler) (*model.Response, error) {
	s := responsesStream{cb: cb}
	for events.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data := bytes.TrimSpace(events.Data())
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		e, ok := readEvent(data)
		if !ok {
			return nil, m.cut(ctx, events, data)
		}
		if e.kind == "" {
			e.kind = string(events.Name())
		}
		switch e.kind {
		case "response.completed", "response.incomplete", "response.failed":
			r, err := m.response(e.response, strings.TrimPrefix(e.kind, "response."), s.done)
			if err == nil && s.text > len(r.Message.Text()) { // neither its items nor the last event has what was heard
				return nil, m.api.Malformed("the reply ends without what it said", data)
			}
			return r, err
		case "error":
			return nil, m.api.InStream(data)
		}
		if err := s.event(e); err != nil {
			return nil, err
		}
	}
	return nil, m.api.Truncated(ctx, events.Err())
}

// streamEvent has the members of an event that matter, as they are on the wire.
type streamEvent struct {
	kind                                  string
	delta, item, response, output, within []byte
}

// kinds of events that come often, so that naming them allocates nothing.
var frequent = [...]string{"response.output_text.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta"}

func readEvent(data []byte) (e streamEvent, ok bool) {
	o := wire.Object(data)
	for o.Next() {
		switch string(o.Key) {
		case "type":
			e.kind = kindOfEvent(o.Value)
		case "delta":
			e.delta = o.Value
		case "item":
			e.item = o.Value
		case "response":
			e.response = o.Value
		case "output_index":
			e.output = o.Value
		case "summary_index", "content_index":
			e.within = o.Value
		}
	}
	return e, o.Err() == nil
}

func kindOfEvent(raw []byte) string {
	if len(raw) > 2 {
		for _, k := range frequent {
			if string(raw[1:len(raw)-1]) == k {
				return k
			}
		}
	}
	return wire.String(raw)
}

type responsesStream struct {
	cb   model.StreamHandler
	done [][]byte // finished items, in the order of their indexes
	at   []int64  // their indexes
	text int      // bytes of text that were passed on
	// What the last reasoning belonged to, to part its pieces as joinReasoning does.
	kind           string
	output, within []byte
	calls          []streamCall // that have begun, in the order of their items
}

// streamCall is a call whose input is being written.
type streamCall struct {
	output string // the index of its item
	name   string
}

// event takes an event that isn't the last one.
func (s *responsesStream) event(e streamEvent) error {
	switch e.kind {
	case "response.output_text.delta":
		if text := wire.String(e.delta); text != "" {
			s.text += len(text)
			return s.cb(model.StreamResult{Text: text})
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return s.reasoning(e)
	case "response.output_item.added":
		if string(wire.Get(e.item, "type")) == `"function_call"` {
			s.calls = append(s.calls, streamCall{output: string(e.output), name: wire.String(wire.Get(e.item, "name"))})
		}
	case "response.function_call_arguments.delta":
		return s.input(e)
	case "response.output_item.done":
		s.finished(e)
	}
	return nil
}

// input tells of a piece of a call's input.
func (s *responsesStream) input(e streamEvent) error {
	for i := len(s.calls) - 1; i >= 0; i-- {
		if c := &s.calls[i]; c.output == string(e.output) {
			if text := wire.String(e.delta); text != "" {
				return s.cb(model.StreamResult{Input: text, Tool: c.name, Call: i})
			}
			break
		}
	}
	return nil
}

// finished takes a finished item to its place. One that comes again takes the place of the first, so that no call is there twice.
func (s *responsesStream) finished(e streamEvent) {
	index := int64(len(s.done))
	if !wire.IsNull(e.output) {
		index = wire.Int(e.output)
	}
	i, again := slices.BinarySearch(s.at, index)
	if again {
		s.done[i] = bytes.Clone(e.item)
		return
	}
	s.done, s.at = slices.Insert(s.done, i, bytes.Clone(e.item)), slices.Insert(s.at, i, index)
}

func (s *responsesStream) reasoning(e streamEvent) error {
	text := wire.String(e.delta)
	if text == "" {
		return nil
	}
	if s.kind != "" && bytes.Equal(s.output, e.output) && (s.kind != e.kind || !bytes.Equal(s.within, e.within)) {
		if err := s.cb(model.StreamResult{Reasoning: "\n\n"}); err != nil {
			return err
		}
	}
	s.kind, s.output, s.within = e.kind, append(s.output[:0], e.output...), append(s.within[:0], e.within...)
	return s.cb(model.StreamResult{Reasoning: text})
}
