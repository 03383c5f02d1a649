package openai

import (
	"context"

	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// responses is the name of this wire format in message.Origin.
const responses = "openai-responses"

const responsesPath = "/responses"

// Responses is a model that is asked over the Responses API. [NewResponses] makes it.
type Responses struct{ *client }

// responsesFormat is the key of encoded messages.
type responsesFormat struct{}

// Capabilities says what the protocol can do; a certain model behind it may do less. It has no seed and no stop sequences.
func (m *Responses) Capabilities() model.Capabilities {
	return model.Capabilities{
		Name: m.vendor.Name + "/" + m.name, Provider: responses,
		Tools: true, Images: true, Documents: true, Schema: true, MaxTokens: true,
	}
}

// Complete asks for a whole reply.
func (m *Responses) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if err := m.admit(&req, m.Capabilities(), responsesFile); err != nil {
		return nil, err
	}
	resp, err := m.complete(ctx, responsesPath, m.body(&req, false, m.begin, encodedResponses), m.decode)
	if err == nil && boxed.Needed(req.Output) {
		resp = unbox(resp)
	}
	return resp, err
}

// CompleteStream asks for a stream. A server that answers with a whole reply is understood too.
func (m *Responses) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if err := m.admit(&req, m.Capabilities(), responsesFile); err != nil {
		return err
	}
	return m.completeStream(ctx, responsesPath, m.body(&req, true, m.begin, encodedResponses), unboxed(&req, cb), m.decode, m.stream)
}

func encodedResponses(m message.Message) []byte { return m.Encoded(responsesFormat{}, encodeResponses) }
