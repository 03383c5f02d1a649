package anthropic

import (
	"context"
	"net/http"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

const countPath = path + "/count_tokens"

// CountTokens asks how many tokens a request takes. The API calls the number an estimate. See [model.Counter].
func (m *Model) CountTokens(ctx context.Context, req model.Request) (int, error) {
	body, err := m.counted(req)
	if err != nil {
		return 0, err
	}
	answer, err := m.api.Call(ctx, http.MethodPost, countPath, body.Content(), m.header(req, "application/json"))
	if err != nil {
		return 0, err
	}
	n := wire.Get(answer, "input_tokens")
	if wire.IsNull(n) {
		return 0, m.api.Malformed("the reply has no count", answer)
	}
	return int(wire.Int(n)), nil
}

// counted is the body of a call without what only an answer needs.
func (m *Model) counted(req model.Request) (httpapi.Body, error) {
	if m.byTool(&req) { // as a tool it takes about as much, and the API would refuse it as a schema
		req.Output = nil
	}
	h, err := m.headOf(req)
	if err != nil {
		return nil, err
	}
	pieces, err := m.appendMessages(append(httpapi.Room(req.Messages.Len()), h.bytes[:h.from], h.bytes[h.to:]), req)
	if err != nil {
		return nil, err
	}
	return append(pieces, wholeTail), nil
}
