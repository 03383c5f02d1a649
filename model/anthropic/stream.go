package anthropic

import (
	"bytes"
	"context"
	"net/http"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// listen reads an event stream up to message_stop and passes each delta on as it comes. It copies nothing but texts: a delta
// is a part of the text that it belongs to, and costs no allocation.
func (m *Model) listen(ctx context.Context, resp *http.Response, tools []model.Tool, cb model.StreamHandler) (*model.Response, error) {
	r := replies.Get().(*reply)
	r.asked, r.tools = m.name, tools
	events := wire.NewEvents(resp.Body)
	over := ctx.Done() // costs less to look at than to ask ctx for each delta
	for events.Next() {
		select {
		case <-over:
			return nil, ctx.Err()
		default:
		}
		var said model.StreamResult
		if more := r.like.Text(events.Data()); more != nil && r.last != nil { // nearly all deltas begin as the one before
			r.hear(r.last, more, &said)
		} else if done, err := m.event(ctx, events, r, &said); err != nil {
			return nil, httpapi.WithID(err, resp)
		} else if done {
			whole := r.response()
			events.Release() // all of it was copied
			r.release()
			return whole, nil
		}
		if said.Text != "" || said.Reasoning != "" || said.Input != "" {
			if err := cb(said); err != nil {
				return nil, err
			}
		}
	}
	return nil, httpapi.WithID(m.api.Truncated(ctx, events.Err()), resp)
}

// event reads an event, adds it to the reply, and what the listener hears of it to said.
func (m *Model) event(ctx context.Context, events *wire.Events, r *reply, said *model.StreamResult) (done bool, err error) {
	data := events.Data()
	var e event
	if err := e.read(data); err != nil {
		if len(bytes.TrimSpace(data)) == 0 {
			return false, nil
		}
		broken := m.api.Malformed("an event is not JSON", data)
		if !events.Next() { // it was the last thing to come: the stream was cut off in its middle
			return false, m.api.Truncated(ctx, events.Err())
		}
		return false, broken
	}
	if e.failed(events.Name()) {
		return false, m.api.InStream(data)
	}
	done, ok := r.take(&e, said)
	switch {
	case !ok:
		return false, m.api.Malformed("a delta for no block, or for one of another kind", data)
	case r.odd != nil:
		return false, m.api.Malformed(noBlock, r.odd)
	}
	return done, nil
}

// event is one event's data, in place.
type event struct {
	data    []byte
	kind    []byte // a JSON string, as all kinds that we know come without escapes
	index   []byte
	failure []byte
	message []byte
	block   []byte
	delta   piece
	usage   []byte
}

// piece is what a delta says, in place, and all of it.
type piece struct{ kind, text, thinking, signature, input, all []byte }

// read reads an event in one pass. It is made where it is used: it is too large to be handed around.
func (e *event) read(data []byte) error {
	e.data = data
	r := wire.Read(data)
	for key := range r.Object {
		switch string(key) {
		case "type":
			e.kind = r.Value()
		case "index":
			e.index = r.Value()
		case "error":
			e.failure = r.Value()
		case "message":
			e.message = r.Value()
		case "content_block":
			e.block = r.Value()
		case "delta":
			from := r.Offset()
			e.delta.read(&r)
			e.delta.all = data[from:r.Offset()]
		case "usage":
			e.usage = r.Value()
		}
	}
	return r.Err()
}

func (d *piece) read(r *wire.Reader) {
	*d = piece{}
	for key := range r.Object {
		switch string(key) {
		case "type":
			d.kind = r.Value()
		case "text":
			d.text = r.Value()
		case "thinking":
			d.thinking = r.Value()
		case "signature":
			d.signature = r.Value()
		case "partial_json":
			d.input = r.Value()
		}
	}
}

// failed reports whether the event is an error: by its type, or, without one, by its name or shape, as gateways send it.
func (e *event) failed(name []byte) bool {
	if wire.IsNull(e.kind) {
		return string(name) == "error" || !wire.IsNull(e.failure)
	}
	return string(e.kind) == `"error"`
}

// take adds an event to the reply, and what the listener hears of it to said. Pings and events of the future say nothing. It isn't ok that a
// delta has no block to go to: what it says would be lost.
func (r *reply) take(e *event, said *model.StreamResult) (done, ok bool) {
	r.last = nil
	switch string(e.kind) {
	case `"message_start"`:
		r.read(e.message)
	case `"content_block_start"`:
		index := int64(len(r.blocks))
		if !wire.IsNull(e.index) {
			index = wire.Int(e.index)
		}
		switch b := r.begin(index, e.block); { // it may begin with something
		case b == nil:
		case b.kind == "text":
			said.Text = b.text.String()
		case b.kind == "thinking":
			said.Reasoning = b.text.String()
		}
	case `"content_block_delta"`:
		b := r.block(e.index)
		if b == nil {
			return false, false
		}
		more, ok := b.delta(&e.delta)
		if !ok {
			return false, false
		}
		r.hear(b, more, said)
		r.last = b
		r.like.Keep(e.data, more)
	case `"message_delta"`:
		r.read(e.delta.all)
		r.count(e.usage)
	case `"message_stop"`:
		done = true
	}
	return done, true
}

// hear adds more of a text to a block, and to said what the listener hears of it.
func (r *reply) hear(b *block, more []byte, said *model.StreamResult) {
	switch b.kind {
	case "text":
		said.Text = b.text.Append(more)
	case "thinking":
		said.Reasoning = b.text.Append(more)
	default:
		if said.Input = b.write(more); said.Input != "" {
			said.Tool, said.Call = b.name, r.calls(b)
		}
	}
}

// calls is how many calls stand before b.
func (r *reply) calls(b *block) (n int) {
	for _, before := range r.blocks {
		if before == b {
			break
		}
		if before.kind == "tool_use" {
			n++
		}
	}
	return n
}

// block finds the block of an index: nearly always the last one, which is also meant where there is no index.
func (r *reply) block(raw []byte) *block {
	if wire.IsNull(raw) {
		if n := len(r.blocks); n > 0 {
			return r.blocks[n-1]
		}
		return nil
	}
	index := wire.Int(raw)
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if r.blocks[i].index == index {
			return r.blocks[i]
		}
	}
	return nil
}
