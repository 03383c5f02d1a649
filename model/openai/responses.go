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
type Responses struct {
	*client
	can    model.Capabilities
	format any // a responsesFormat; boxed once
	encode func(message.Message) []byte
}

// responsesFormat is the key of encoded messages: what their bytes depend on besides themselves.
type responsesFormat struct {
	files string // whose files are sent by their IDs
}

// Capabilities says what the protocol can do, and how much a model of that name can be told to think; a certain model behind it may do less. It has no seed and no stop sequences.
func (m *Responses) Capabilities() model.Capabilities { return m.can }

// Complete asks for a whole reply.
func (m *Responses) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if err := m.admit(&req); err != nil {
		return nil, err
	}
	resp, err := m.complete(ctx, responsesPath, m.body(&req, false, m.begin, m.format, m.encode), m.decode)
	if err == nil && boxed.Needed(req.Output) {
		resp = unbox(resp)
	}
	return resp, err
}

// CompleteStream asks for a stream. A server that answers with a whole reply is understood too.
func (m *Responses) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if err := m.admit(&req); err != nil {
		return err
	}
	return m.completeStream(ctx, responsesPath, m.body(&req, true, m.begin, m.format, m.encode), req.Tools, unboxed(&req, cb), m.decode, m.stream)
}

func (m *Responses) admit(req *model.Request) error {
	return m.client.admit(req, &m.can, m.responsesFile)
}
