package openai

import (
	"bytes"
	"context"
	"sync"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// stream reads a stream. [DONE] ends it; but many servers never say that and close the connection after the finish reason, and a reply
// that has one is whole.
func (m *Model) stream(ctx context.Context, tools []model.Tool, events *wire.Events, cb model.StreamHandler) (*model.Response, error) {
	r := chatReplies.Get().(*chatReply)
	r.m, r.tools, r.cb = m, tools, cb
	over := ctx.Done() // costs less to look at than to ask ctx for each delta
	for events.Next() {
		select {
		case <-over:
			return nil, ctx.Err()
		default:
		}
		data := bytes.TrimSpace(events.Data())
		if string(data) == "[DONE]" {
			if !r.begun {
				return nil, m.api.Malformed("the stream has no choice", data)
			}
			return r.end()
		}
		if string(events.Name()) == "error" {
			return nil, m.api.InStream(data)
		}
		if len(data) == 0 {
			continue
		}
		switch err := r.chunk(data); {
		case err == errNotObject: //nolint:errorlint // ours, never wrapped
			return nil, m.cut(ctx, events, data)
		case err != nil:
			return nil, err
		}
	}
	if r.finish == "" || ctx.Err() != nil {
		return nil, m.api.Truncated(ctx, events.Err())
	}
	return r.end()
}

// chatReplies are those that were read to their end, to be used again: one is large, and all that is kept of it is copied.
var chatReplies = sync.Pool{New: func() any { return new(chatReply) }}

// end gives what was gathered, and r to the next who needs one.
func (r *chatReply) end() (*model.Response, error) {
	whole, err := r.response()
	*r = chatReply{}
	chatReplies.Put(r)
	return whole, err
}

// cut makes the error for an event that is no JSON object; the last one of a stream was cut off.
func (c *client) cut(ctx context.Context, events *wire.Events, data []byte) error {
	err := c.api.Malformed(errNotObject.Error(), data)
	if !events.Next() {
		return c.api.Truncated(ctx, events.Err())
	}
	return err
}
