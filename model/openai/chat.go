package openai

import (
	"context"

	"github.com/pawl-dev/pawl/internal/boxed"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// chat is the name of this wire format in message.Origin.
const chat = "openai"

const chatPath = "/chat/completions"

// Model is a model that is asked over Chat Completions. [New] makes it.
type Model struct {
	*client
	can    model.Capabilities
	format any // a chatFormat; boxed once
	encode func(message.Message) []byte
}

// chatFormat is the key of encoded messages: what their bytes depend on besides themselves.
type chatFormat struct {
	own   bool   // OpenAI's own servers, which refuse the members that others add to a message
	files string // whose files are sent by their IDs
}

// Capabilities says what the protocol can do, and how much a model of that name can be told to think; a certain model behind it may do less.
func (m *Model) Capabilities() model.Capabilities { return m.can }

// Complete asks for a whole reply.
func (m *Model) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if err := m.admit(&req); err != nil {
		return nil, err
	}
	resp, err := m.complete(ctx, chatPath, m.body(&req, false, m.begin, m.format, m.encode), m.decode)
	if err == nil && boxed.Needed(req.Output) {
		resp = unbox(resp)
	}
	return resp, err
}

// CompleteStream asks for a stream. A server that answers with a whole reply is understood too.
func (m *Model) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if err := m.admit(&req); err != nil {
		return err
	}
	return m.completeStream(ctx, chatPath, m.body(&req, true, m.begin, m.format, m.encode), req.Tools, unboxed(&req, cb), m.decode, m.stream)
}

func (m *Model) admit(req *model.Request) error {
	if err := m.client.admit(req, &m.can, m.chatFile); err != nil {
		return err
	}
	return m.admitChatTools(req)
}
