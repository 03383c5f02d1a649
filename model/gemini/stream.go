package gemini

import (
	"context"
	"io"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// stream reads server-sent events, each of which is a GenerateContentResponse with the next pieces. The stream has ended well when
// one of them had a finishReason or said that the prompt was blocked; what comes after that, such as the last usage, still counts.
func (m *Model) stream(ctx context.Context, body io.Reader, cb model.StreamHandler) (*model.Response, error) {
	r := reply{api: m.api, asked: m.name, cb: cb}
	events := wire.NewEvents(body)
	for events.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data := events.Data()
		if len(data) == 0 || string(data) == "[DONE]" { // gateways put the latter at the end
			continue
		}
		if err := r.chunk(data); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.ended {
		return nil, m.api.Truncated(ctx, events.Err())
	}
	final := r.response()
	events.Release() // it is made of copies
	return final, nil
}
