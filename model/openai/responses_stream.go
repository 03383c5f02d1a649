package openai

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// stream reads a stream. Deltas are passed on as they come; the reply is read from the finished items and the last event, so that it
// is the same as a whole one.
func (m *Responses) stream(ctx context.Context, tools []model.Tool, events *wire.Events, cb model.StreamHandler) (*model.Response, error) {
	s := responsesStreams.Get().(*responsesStream)
	s.tools, s.cb = tools, cb
	over := ctx.Done() // costs less to look at than to ask ctx for each delta
	for events.Next() {
		select {
		case <-over:
			return nil, ctx.Err()
		default:
		}
		data := bytes.TrimSpace(events.Data())
		if more := s.alike(data); more != nil {
			if err := s.hear(s.last, more); err != nil {
				return nil, err
			}
			continue
		}
		if len(data) == 0 || string(data) == "[DONE]" {
			continue
		}
		e, ok := readEvent(data)
		if !ok {
			return nil, m.cut(ctx, events, data)
		}
		named := e.kind == ""
		if named {
			e.kind = string(events.Name())
		}
		switch e.kind {
		case "response.completed", "response.incomplete", "response.failed":
			r, err := m.response(e.response, strings.TrimPrefix(e.kind, "response."), s)
			if err == nil && s.text.Len() > len(r.Message.Text()) { // neither its items nor the last event has what was heard
				return nil, m.api.Malformed("the reply ends without what it said", data)
			}
			s.release()
			return r, err
		case "error":
			return nil, m.api.InStream(data)
		}
		s.last = streamPiece{}
		if err := s.event(&e); err != nil {
			return nil, err
		}
		if s.last.kind != "" && !named {
			s.like.Keep(data, e.delta)
		} else {
			s.last = streamPiece{}
		}
	}
	return nil, m.api.Truncated(ctx, events.Err())
}

// streamEvent has the members of an event that matter, as they are on the wire.
type streamEvent struct {
	kind                                  string
	delta, item, response, output, within []byte
}

// readEvent reads an event in one pass.
func readEvent(data []byte) (e streamEvent, ok bool) {
	r := wire.Read(data)
	for key := range r.Object {
		switch string(key) {
		case "type":
			e.kind = word(r.Value())
		case "delta":
			e.delta = r.Value()
		case "item":
			e.item = r.Value()
		case "response":
			e.response = r.Value()
		case "output_index":
			e.output = r.Value()
		case "summary_index", "content_index":
			e.within = r.Value()
		}
	}
	return e, r.Err() == nil
}

// responsesStream is what was heard of a reply. What is passed on of its texts is a part of the whole, and costs no allocation.
type responsesStream struct {
	tools []model.Tool // that the model was offered: mostly it calls one of these
	cb    model.StreamHandler
	kept  []byte   // room for finished items
	done  [][]byte // finished items, in the order of their indexes
	at    []int64  // their indexes
	text  wire.Text
	// What the last reasoning belonged to, to part its pieces as joinReasoning does.
	kind           string
	output, within []byte
	thought        wire.Text
	calls          []*streamCall // that have begun, in the order of their items

	last streamPiece // what the last event was a piece of; nothing when it was another one
	like wire.Alike  // that event

	first struct { // room for what most replies have
		done  [4][]byte
		at    [4]int64
		call  streamCall
		calls [4]*streamCall
	}
}

// responsesStreams are those that were read to their end, to be used again: one is large, and all that is kept of it is copied.
var responsesStreams = sync.Pool{New: func() any { return new(responsesStream) }}

// largeKept is the most room for items that is used again, in bytes.
const largeKept = 32 << 10

// release gives s to the next who needs one.
func (s *responsesStream) release() {
	kept := s.kept[:0]
	if cap(kept) > largeKept {
		kept = nil
	}
	*s = responsesStream{kept: kept}
	responsesStreams.Put(s)
}

// streamCall is a call whose input is being written.
type streamCall struct {
	at     int    // how many calls are before it
	output string // the index of its item
	name   string
	input  wire.Text
}

// streamPiece says where a delta belongs: to the text, the reasoning, or a call.
type streamPiece struct {
	kind string // of its event; "" for nothing
	call *streamCall
}

// alike gives the delta of an event that is like the one before but for it; nil for any other.
func (s *responsesStream) alike(data []byte) []byte {
	if s.last.kind == "" {
		return nil
	}
	return s.like.Text(data)
}

// event takes an event that isn't the last one.
func (s *responsesStream) event(e *streamEvent) error {
	switch e.kind {
	case "response.output_text.delta":
		return s.say(streamPiece{kind: e.kind}, e.delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return s.reasoning(e)
	case "response.output_item.added":
		if string(wire.First(e.item, "type")) == `"function_call"` {
			s.begin(string(e.output), httpapi.ToolName(wire.First(e.item, "name"), s.tools))
		}
	case "response.function_call_arguments.delta":
		for i := len(s.calls) - 1; i >= 0; i-- {
			if c := s.calls[i]; c.output == string(e.output) {
				return s.say(streamPiece{e.kind, c}, e.delta)
			}
		}
	case "response.output_item.done":
		s.finished(e)
	}
	return nil
}

// begin adds a call.
func (s *responsesStream) begin(output, name string) {
	c := &s.first.call
	if len(s.calls) == 0 {
		s.calls = s.first.calls[:0]
	} else {
		c = new(streamCall)
	}
	c.at, c.output, c.name = len(s.calls), output, name
	s.calls = append(s.calls, c)
}

// say hears a piece that may go on in the next event.
func (s *responsesStream) say(p streamPiece, delta []byte) error {
	s.last = p
	return s.hear(p, delta)
}

// hear adds a piece to where it belongs, and passes it on.
func (s *responsesStream) hear(p streamPiece, delta []byte) error {
	var said model.StreamResult
	switch {
	case p.call != nil:
		if said.Input = p.call.input.Append(delta); said.Input != "" {
			said.Tool, said.Call = p.call.name, p.call.at
		}
	case p.kind == "response.output_text.delta":
		said.Text = s.text.Append(delta)
	default:
		said.Reasoning = s.thought.Append(delta)
	}
	if said.Text == "" && said.Reasoning == "" && said.Input == "" {
		return nil
	}
	return s.cb(said)
}

// finished takes a finished item to its place. One that comes again takes the place of the first, so that no call is there twice.
func (s *responsesStream) finished(e *streamEvent) {
	index := int64(len(s.done))
	if !wire.IsNull(e.output) {
		index = wire.Int(e.output)
	}
	from := len(s.kept)
	s.kept = append(s.kept, e.item...) // what was kept before stays where it is
	item := s.kept[from:len(s.kept):len(s.kept)]
	if s.done == nil {
		s.done, s.at = s.first.done[:0], s.first.at[:0]
	}
	i, again := slices.BinarySearch(s.at, index)
	if again {
		s.done[i] = item
		return
	}
	s.done, s.at = slices.Insert(s.done, i, item), slices.Insert(s.at, i, index)
}

func (s *responsesStream) reasoning(e *streamEvent) error {
	if len(e.delta) <= len(`""`) || e.delta[0] != '"' {
		return nil
	}
	if s.kind != "" && bytes.Equal(s.output, e.output) && (s.kind != e.kind || !bytes.Equal(s.within, e.within)) {
		if err := s.cb(model.StreamResult{Reasoning: "\n\n"}); err != nil {
			return err
		}
	}
	s.kind, s.output, s.within = e.kind, append(s.output[:0], e.output...), append(s.within[:0], e.within...)
	return s.say(streamPiece{kind: e.kind}, e.delta)
}
