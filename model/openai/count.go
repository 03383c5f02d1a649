package openai

import (
	"context"
	"net/http"

	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

const countPath = responsesPath + "/input_tokens"

// CountTokens implements [model.Counter]: the provider counts what the model would read. Chat Completions has nothing like it.
func (m *Responses) CountTokens(ctx context.Context, req model.Request) (int, error) {
	if err := m.admit(&req); err != nil {
		return 0, err
	}
	head := m.beginInput(wire.AppendString([]byte(`{"model":`), m.name), &req)
	reply, err := m.api.Call(ctx, http.MethodPost, countPath, m.join(head, &req, m.format, m.encode).Content(), nil)
	if err != nil {
		return 0, err
	}
	n := wire.Get(reply, "input_tokens")
	if n == nil {
		return 0, m.api.Malformed("the reply has no input_tokens", reply)
	}
	return int(wire.Int(n)), nil
}
