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
	m     *Model
	tools []model.Tool        // that it was offered: mostly it calls one of these
	cb    model.StreamHandler // nil: a whole reply

	words           wire.Text // the ids, in one piece
	id, model       string
	text, reasoning wire.Text
	refuse          []byte
	field           string // the member that reasoning comes in
	details         details
	calls           []*chatCall
	annotations     [][]byte // lists of them
	begun           bool     // a choice was seen
	finish          string
	usage           model.Usage

	now  chatChunk
	last chatPiece  // the one thing that the last chunk said; nothing when it said more, or none
	like wire.Alike // that chunk

	first struct { // room for what most replies have
		call    chatCall
		list    [4]*chatCall
		choices [1]chatChoice
		members [4]chatMember
	}
}

// chatPiece is a piece of what a chunk says. It goes to the reasoning, to a call, or to the text.
type chatPiece struct {
	raw    []byte // a JSON string
	reason bool
	call   *chatCall
}

// errNotObject is what chunk says of bytes that are no JSON object.
var errNotObject = errors.New("not a JSON object")

// chunk takes a chunk, or a whole reply. An error of the handler is returned as it is. It copies nothing but texts: what of them is passed on is a
// part of the whole, and costs no allocation.
func (r *chatReply) chunk(data []byte) error {
	if r.last.raw != nil { // nearly all chunks begin as the one before
		if r.last.raw = r.like.Text(data); r.last.raw != nil {
			return r.hear(r.last)
		}
	}
	c := &r.now
	if c.choices == nil {
		c.choices, c.members = r.first.choices[:0], r.first.members[:0]
	}
	if !c.read(data) {
		return errNotObject
	}
	if !wire.IsNull(c.failure) {
		return r.m.api.InStream(data)
	}
	if r.id == "" {
		r.id = r.words.Append(c.id)
	}
	if r.model == "" {
		r.model = known(c.model, r.m.name)
	}
	if !wire.IsNull(c.usage) {
		r.usage = decodeUsage(c.usage)
	}
	r.last = chatPiece{}
	from, only := 0, true
	for i := range c.choices {
		o := &c.choices[i]
		members := c.members[from:o.end]
		from = o.end
		if wire.Int(o.index) != 0 {
			continue // we ask for one
		}
		if !wire.IsNull(o.failure) {
			return r.m.api.InStream(data)
		}
		r.begun = true
		for _, m := range members {
			if wire.IsNull(m.value) {
				continue
			}
			only = only && r.last.raw == nil
			if err := r.member(m); err != nil {
				return err
			}
			only = only && r.last.raw != nil
		}
		if !wire.IsNull(o.finish) {
			if f := word(o.finish); f != "" {
				r.finish = f
			}
		}
	}
	if !only {
		r.last.raw = nil
	}
	if r.last.raw != nil {
		r.like.Keep(data, r.last.raw)
	}
	return nil
}

// member takes a member of a delta. It notes a piece that may go on in the next chunk alike.
func (r *chatReply) member(m chatMember) error {
	value := m.value
	switch m.name {
	case "content":
		if value[0] != '[' {
			return r.say(chatPiece{raw: value})
		}
		for e := wire.Array(value); e.Next(); { // a list of parts, as Mistral's reasoning models send
			if err := r.hear(chatPiece{raw: wire.Get(e.Value, "text")}); err != nil {
				return err
			}
		}
	case "reasoning_content", "reasoning": // from the first of them that has any: some servers send it in both
		if r.field != "" && r.field != m.name || string(value) == `""` || value[0] != '"' {
			return nil
		}
		r.field = m.name
		return r.say(chatPiece{raw: value, reason: true})
	case "reasoning_details":
		r.details.add(value, r.cb == nil)
	case "refusal":
		r.refuse = wire.AppendText(r.refuse, value)
	case "tool_calls":
		n := 0
		for e := wire.Array(value); e.Next(); n++ {
			if err := r.call(e.Value); err != nil {
				return err
			}
		}
		if n > 1 {
			r.last.raw = nil
		}
	case "annotations":
		r.annotations = append(r.annotations, bytes.Clone(value))
	case "function_call": // what tool_calls replaced
		_, err := r.add(r.latest(), value)
		return err
	}
	return nil
}

// say hears a piece that may go on in the next chunk.
func (r *chatReply) say(p chatPiece) error {
	r.last = p
	return r.hear(p)
}

// hear adds a piece to where it belongs, and passes it on.
func (r *chatReply) hear(p chatPiece) error {
	var said model.StreamResult
	switch {
	case p.call != nil:
		if said.Input = p.call.arguments.Append(p.raw); said.Input == "" {
			return nil
		}
		said.Tool, said.Call = p.call.name, p.call.at
	case p.reason:
		if said.Reasoning = r.reasoning.Append(p.raw); said.Reasoning == "" {
			return nil
		}
	default:
		if said.Text = r.text.Append(p.raw); said.Text == "" {
			return nil
		}
	}
	if r.cb == nil {
		return nil
	}
	return r.cb(said)
}

// response puts the reply together, its parts in the order of the wire.
func (r *chatReply) response() (*model.Response, error) {
	stop, err := r.stop()
	if err != nil {
		return nil, err
	}
	var room [4]message.Part // the message copies them
	parts := room[:0]
	if r.reasoning.Len() > 0 || len(r.details) > 0 {
		var x extra
		if r.field != "" {
			x = x.addString(noteField, r.field)
		}
		if len(r.details) > 0 {
			x = x.add("reasoning_details", r.details.json())
		}
		parts = append(parts, message.Reasoning{Text: r.reasoning.Kept(), Origin: message.Origin{Provider: chat, Extra: x.String()}})
	}
	if text := r.text.Kept(); text != "" {
		parts = append(parts, message.Text{Text: text, Citations: citations(text, r.annotations...), Origin: message.Origin{Provider: chat}})
	}
	if len(r.refuse) > 0 {
		member := append(wire.AppendString([]byte(`{"refusal":`), string(r.refuse)), '}')
		parts = append(parts, message.Opaque{Provider: chat, JSON: string(member)})
	}
	for i, c := range r.calls {
		parts = append(parts, c.part(i))
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
		switch string(o.Key) {
		case "prompt_tokens", "input_tokens":
			u.Input = httpapi.Tokens(o.Value)
		case "completion_tokens", "output_tokens":
			u.Output = httpapi.Tokens(o.Value)
		case "total_tokens":
			total = httpapi.Tokens(o.Value)
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
