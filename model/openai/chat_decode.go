package openai

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// decode reads a whole reply.
func (m *Model) decode(body []byte) (*model.Response, error) {
	r := chatReply{m: m}
	switch err := r.chunk(body); {
	case err == errNotObject: //nolint:errorlint // ours, never wrapped; an error of a handler must not be taken for it
		return nil, m.api.Malformed(err.Error(), body)
	case err != nil:
		return nil, err
	}
	if !r.begun {
		return nil, m.api.Malformed("the reply has no choice", body)
	}
	return r.response()
}

// chatReply gathers a reply. A whole one is a stream of one chunk, whose "message" is a delta that has everything: so both ways
// come to the same.
type chatReply struct {
	m  *Model
	cb model.StreamHandler // nil: a whole reply

	id, model               string
	text, reasoning, refuse []byte
	field                   string // the member that reasoning comes in
	details                 details
	calls                   []chatCall
	annotations             [][]byte // lists of them
	begun                   bool     // a choice was seen
	finish                  string
	usage                   model.Usage
}

// errNotObject is what chunk says of bytes that are no JSON object.
var errNotObject = errors.New("not a JSON object")

// chunk takes a chunk, or a whole reply. An error of the handler is returned as it is.
func (r *chatReply) chunk(data []byte) error {
	var choices, usage, failure []byte
	o := wire.Object(data)
	for o.Next() {
		switch string(o.Key) {
		case "id":
			if r.id == "" {
				r.id = wire.String(o.Value)
			}
		case "model":
			if r.model == "" {
				r.model = wire.String(o.Value)
			}
		case "choices":
			choices = o.Value
		case "usage":
			usage = o.Value
		case "error":
			failure = o.Value
		}
	}
	if o.Err() != nil {
		return errNotObject
	}
	if !wire.IsNull(failure) {
		return r.m.api.InStream(data)
	}
	if !wire.IsNull(usage) {
		r.usage = decodeUsage(usage)
	}
	if wire.IsNull(choices) {
		return nil
	}
	for e := wire.Array(choices); e.Next(); {
		if err := r.choice(e.Value); err != nil {
			return err
		}
	}
	return nil
}

func (r *chatReply) choice(data []byte) error {
	var delta, finish, index, failure []byte
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "index":
			index = o.Value
		case "delta", "message":
			delta = o.Value
		case "finish_reason":
			finish = o.Value
		case "error":
			failure = o.Value
		}
	}
	if wire.Int(index) != 0 {
		return nil // we ask for one
	}
	if !wire.IsNull(failure) {
		return r.m.api.InStream(data)
	}
	r.begun = true
	for o := wire.Object(delta); o.Next(); {
		if err := r.member(o.Key, o.Value); err != nil {
			return err
		}
	}
	if f := wire.String(finish); f != "" {
		r.finish = f
	}
	return nil
}

// member takes a member of a delta.
func (r *chatReply) member(key, value []byte) error {
	switch string(key) {
	case "content":
		return r.content(value)
	case "reasoning_content":
		return r.reason("reasoning_content", value)
	case "reasoning":
		return r.reason("reasoning", value)
	case "reasoning_details":
		r.details.add(value, r.cb == nil)
	case "refusal":
		r.refuse = wire.AppendText(r.refuse, value)
	case "tool_calls":
		if !wire.IsNull(value) {
			for e := wire.Array(value); e.Next(); {
				if err := r.call(e.Value); err != nil {
					return err
				}
			}
		}
	case "annotations":
		if !wire.IsNull(value) {
			r.annotations = append(r.annotations, bytes.Clone(value))
		}
	case "function_call": // what tool_calls replaced
		if !wire.IsNull(value) {
			return r.add(r.last(), value)
		}
	}
	return nil
}

func (r *chatReply) content(value []byte) error {
	if len(value) == 0 || value[0] != '[' {
		return r.say(wire.String(value))
	}
	for e := wire.Array(value); e.Next(); { // a list of parts, as Mistral's reasoning models send
		if err := r.say(wire.String(wire.Get(e.Value, "text"))); err != nil {
			return err
		}
	}
	return nil
}

func (r *chatReply) say(text string) error {
	r.text = append(r.text, text...)
	if text == "" || r.cb == nil {
		return nil
	}
	return r.cb(model.StreamResult{Text: text})
}

// reason takes reasoning from the first field that has any: some servers send it in both.
func (r *chatReply) reason(field string, value []byte) error {
	s := wire.String(value)
	if s == "" || r.field != "" && r.field != field {
		return nil
	}
	r.field = field
	r.reasoning = append(r.reasoning, s...)
	if r.cb == nil {
		return nil
	}
	return r.cb(model.StreamResult{Reasoning: s})
}

// response puts the reply together, its parts in the order of the wire.
func (r *chatReply) response() (*model.Response, error) {
	stop, err := r.stop()
	if err != nil {
		return nil, err
	}
	parts := make([]message.Part, 0, 3+len(r.calls))
	if len(r.reasoning) > 0 || len(r.details) > 0 {
		var x extra
		if r.field != "" {
			x.addString(noteField, r.field)
		}
		if len(r.details) > 0 {
			x.add("reasoning_details", r.details.json())
		}
		parts = append(parts, message.Reasoning{Text: string(r.reasoning), Origin: message.Origin{Provider: chat, Extra: x.String()}})
	}
	if len(r.text) > 0 {
		parts = append(parts, message.Text{Text: string(r.text), Citations: citations(string(r.text), r.annotations...), Origin: message.Origin{Provider: chat}})
	}
	if len(r.refuse) > 0 {
		member := append(wire.AppendString([]byte(`{"refusal":`), string(r.refuse)), '}')
		parts = append(parts, message.Opaque{Provider: chat, JSON: string(member)})
	}
	for i := range r.calls {
		parts = append(parts, r.calls[i].part(i))
	}
	return &model.Response{
		Message: message.New(message.RoleAssistant, parts...), Usage: r.usage, Stop: stop, Reason: string(r.refuse), Model: r.model, ID: r.id,
	}, nil
}

// stop gives the reason why the reply ended. Some servers say "stop" beside calls.
func (r *chatReply) stop() (model.StopReason, error) {
	switch r.finish {
	case "", "stop", "eos", "eos_token", "tool_calls", "function_call":
		switch {
		case len(r.refuse) > 0:
			return model.StopRefusal, nil
		case len(r.calls) > 0:
			return model.StopTools, nil
		case r.finish == "tool_calls", r.finish == "function_call":
			return model.StopBadCall, nil // a call was meant, and none is there
		}
		return model.StopEnd, nil
	case "length":
		return model.StopLength, nil
	case "content_filter":
		return model.StopFilter, nil
	case "stop_sequence":
		return model.StopSequence, nil
	case "model_length":
		return model.StopWindow, nil
	case "error", "insufficient_system_resource": // OpenRouter; DeepSeek, overloaded while it answered
		return "", &model.Error{Provider: r.m.api.Provider, Kind: errdefs.NotAvailable, Code: r.finish, Message: "the provider broke the reply off"}
	}
	return model.StopReason(r.finish), nil
}

// decodeUsage reads the token counts of both protocols, which differ in their names only.
func decodeUsage(data []byte) (u model.Usage) {
	var in, out []byte
	var total int
	for o := wire.Object(data); o.Next(); {
		n := httpapi.Tokens(o.Value)
		switch string(o.Key) {
		case "prompt_tokens", "input_tokens":
			u.Input = n
		case "completion_tokens", "output_tokens":
			u.Output = n
		case "total_tokens":
			total = n
		case "prompt_tokens_details", "input_tokens_details":
			in = o.Value
		case "completion_tokens_details", "output_tokens_details":
			out = o.Value
		}
	}
	u.CacheRead = httpapi.Tokens(wire.Get(in, "cached_tokens"))
	u.CacheWrite = httpapi.Tokens(wire.Get(in, "cache_write_tokens"))
	u.Reasoning = httpapi.Tokens(wire.Get(out, "reasoning_tokens"))
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning // xAI doesn't count it as output
	}
	u.Reasoning = min(u.Reasoning, u.Output)
	u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	return u
}

// callID makes up the id of call i for servers that give none.
func callID(i int) string { return "call_" + strconv.Itoa(i+1) }
