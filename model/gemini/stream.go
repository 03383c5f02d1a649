package gemini

import (
	"context"
	"io"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// stream reads server-sent events, each of which is a GenerateContentResponse with the next pieces. The stream has ended well when
// one of them had a finishReason or said that the prompt was blocked; what comes after that, such as the last usage, still counts.
func (m *Model) stream(ctx context.Context, tools []model.Tool, body io.Reader, cb model.StreamHandler) (*model.Response, error) {
	r := replies.Get().(*reply)
	r.api, r.asked, r.tools, r.cb = m.api, m.name, tools, cb
	events := wire.NewEvents(body)
	over := ctx.Done() // costs less to look at than to ask ctx for each delta
	for events.Next() {
		select {
		case <-over:
			return nil, ctx.Err()
		default:
		}
		data := events.Data()
		if len(data) == 0 || string(data) == "[DONE]" { // gateways put the latter at the end
			continue
		}
		if more := r.more(data); more != nil { // but for its text it is the chunk before, counts included
			if err := r.say(more); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.chunk(data); err != nil {
			return nil, err
		}
		r.remember(data)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.ended {
		return nil, m.api.Truncated(ctx, events.Err())
	}
	final := r.response()
	events.Release() // it is made of copies
	r.release()
	return final, nil
}

// more gives the text of a chunk that is like the one before but for it; nil for any other.
func (r *reply) more(data []byte) []byte {
	if !r.goesOn {
		return nil
	}
	return r.like.Text(data)
}

// remember notes the chunk that was read if all it had was more of the open part.
func (r *reply) remember(data []byte) {
	r.goesOn = false
	if data[0] != '{' || len(r.now.parts) != 1 {
		return
	}
	p, is := &r.now.parts[0], text
	if p.thought {
		is = reasoning
	}
	if is == r.open && p.call == nil && p.text != nil && !p.alone() {
		r.goesOn = true
		r.like.Keep(data, p.text)
	}
}
