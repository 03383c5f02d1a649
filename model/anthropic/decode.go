package anthropic

import (
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// reply is what is known of a reply so far.
type reply struct {
	id, model, stop, reason string
	usage                   model.Usage
	blocks                  []*block
	words                   wire.Text    // the ids, in one piece
	asked                   string       // the model that was asked: mostly it is the one that answers
	tools                   []model.Tool // that it was offered: mostly it calls one of these
	odd                     []byte       // what stands where a block should

	last *block     // that the last event said more of; nil when it was another one
	like wire.Alike // that event

	first struct { // room for what most replies have
		blocks [2]block
		list   [4]*block
	}
}

// replies are those that were read to their end, to be used again: one is large, and all that is kept of it is copied.
var replies = sync.Pool{New: func() any { return new(reply) }}

// release gives r to the next who needs one.
func (r *reply) release() {
	*r = reply{}
	replies.Put(r)
}

// noBlock is the error for what stands where a block should. It can't be kept, as it can't be sent back.
const noBlock = "a block of the reply is no object with a type"

// decode reads a whole reply.
func (m *Model) decode(data []byte) (*model.Response, error) {
	switch kind := wire.String(wire.Get(data, "type")); {
	case kind == "error", kind == "" && !wire.IsNull(wire.Get(data, "error")):
		return nil, m.api.InStream(data)
	case kind != "message" && wire.Get(data, "content") == nil:
		return nil, m.api.Malformed("the reply is no message", data)
	}
	var r reply
	if r.read(data); r.odd != nil {
		return nil, m.api.Malformed(noBlock, r.odd)
	}
	return r.response(), nil
}

// read takes what the members of a message say: a whole one, the empty one that a stream begins with, or its last changes.
func (r *reply) read(raw []byte) {
	for m := wire.Object(raw); m.Next(); {
		switch string(m.Key) {
		case "id":
			r.id = r.words.Append(m.Value)
		case "model":
			if r.model = r.asked; !wire.Quotes(m.Value, r.model) {
				r.model = wire.String(m.Value)
			}
		case "stop_reason":
			r.stop = word(m.Value)
		case "stop_details":
			if r.reason = wire.String(wire.Get(m.Value, "explanation")); r.reason == "" {
				r.reason = wire.String(wire.Get(m.Value, "category"))
			}
		case "usage":
			r.count(m.Value)
		case "content":
			for e := wire.Array(m.Value); e.Next(); {
				r.begin(int64(len(r.blocks)), e.Value)
			}
		}
	}
}

// count takes the totals that are there. They come at the beginning of a stream and again, better, at its end, where a gateway that
// counts something at the beginning only says 0. Cached tokens are not part of input_tokens.
func (r *reply) count(usage []byte) {
	u := &r.usage
	for m := wire.Object(usage); m.Next(); {
		switch string(m.Key) {
		case "input_tokens":
			take(&u.Input, m.Value)
		case "output_tokens":
			take(&u.Output, m.Value)
		case "cache_read_input_tokens":
			take(&u.CacheRead, m.Value)
		case "cache_creation_input_tokens":
			take(&u.CacheWrite, m.Value)
		case "output_tokens_details":
			take(&u.Reasoning, wire.Get(m.Value, "thinking_tokens"))
		}
	}
}

func take(n *int, raw []byte) {
	if v := httpapi.Tokens(raw); v > 0 {
		*n = v
	}
}

// begin adds a block; nil for what is none.
func (r *reply) begin(index int64, raw []byte) *block {
	if wire.IsNull(raw) {
		return nil
	}
	if r.blocks == nil {
		r.blocks = r.first.list[:0]
	}
	var b *block
	if n := len(r.blocks); n < len(r.first.blocks) {
		b = &r.first.blocks[n]
	} else {
		b = new(block)
	}
	if b.fill(r, index, raw); b.kind == "" {
		r.odd = raw
		return nil
	}
	r.blocks = append(r.blocks, b)
	return b
}

func (r *reply) response() *model.Response {
	var room [8]message.Part // the message copies them
	parts := room[:0]
	stop := model.StopEnd // for gateways that give none
	var names map[string]string
	for _, b := range r.blocks {
		p := b.part(names)
		if p == nil {
			continue
		}
		switch p := p.(type) {
		case message.ToolCall:
			stop = model.StopTools
		case message.ProviderCall:
			if names == nil {
				names = map[string]string{}
			}
			names[p.Call] = p.Name
		}
		parts = append(parts, p)
	}
	switch r.stop {
	case "":
	case "model_context_window_exceeded":
		stop = model.StopWindow
	default: // our constants are the API's words
		stop = model.StopReason(r.stop)
	}
	return &model.Response{
		Message: message.New(message.RoleAssistant, parts...),
		Usage:   r.usage, Stop: stop, Reason: r.reason, Model: r.model, ID: r.id,
	}
}

// explain gives an error the class that its type stands for.
func explain(_ []byte, e *model.Error) {
	switch e.Code {
	case "authentication_error", "permission_error", "billing_error":
		e.Kind = errdefs.Unauthorized
	case "not_found_error":
		e.Kind = errdefs.NotFound
	case "rate_limit_error":
		e.Kind = errdefs.RateLimit
	case "overloaded_error":
		e.Kind = errdefs.NotAvailable
	case "timeout_error":
		e.Kind = errdefs.Timeout
	case "request_too_large":
		e.Kind = errdefs.Overflow
	case "invalid_request_error":
		if e.Status == 0 {
			e.Kind = errdefs.Validation
		}
	}
	if e.Kind != errdefs.Validation {
		return
	}
	switch text := strings.ToLower(e.Message); {
	case strings.Contains(text, "credit balance"), strings.Contains(text, "usage limits"):
		e.Kind = errdefs.Unauthorized // no money: waiting doesn't help
	case strings.Contains(text, "content filtering"):
		e.Kind = errdefs.Refused
	}
}
