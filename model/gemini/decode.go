package gemini

import (
	"cmp"
	"strconv"
	"sync"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// decode reads a whole reply: one GenerateContentResponse, or an array of them, as the streaming method gives without SSE.
func (m *Model) decode(raw []byte) (*model.Response, error) {
	r := reply{api: m.api, asked: m.name}
	if err := r.chunk(raw); err != nil {
		return nil, err
	}
	if !r.ended {
		return nil, m.api.Malformed("the reply has no finishReason", raw)
	}
	return r.response(), nil
}

// reply gathers the chunks of a reply. A whole reply is one chunk.
type reply struct {
	api   *httpapi.API
	asked string              // the model that was asked, for servers that don't say which one answered
	tools []model.Tool        // that it was offered: mostly it calls one of these
	cb    model.StreamHandler // nil: nobody listens

	now   chunk
	parts []message.Part
	open  kind      // of the part that is being written, which is not in parts yet
	text  wire.Text // its text so far
	calls int

	grounding grounding

	usage             model.Usage
	finish            string // finishReason in Gemini's word
	note              string // what Gemini says about it
	blocked           bool   // the prompt was
	ended             bool
	modelName, respID string

	goesOn bool       // the last chunk had more of the open part alone
	like   wire.Alike // that chunk

	first struct { // room for what most replies have
		parts [4]message.Part
		wire  [2]wirePart
	}
}

// replies are those that were read to their end, to be used again: one is large, and all that is kept of it is copied.
var replies = sync.Pool{New: func() any { return new(reply) }}

// release gives r to the next who needs one.
func (r *reply) release() {
	*r = reply{}
	replies.Put(r)
}

// kind is what an open part is.
type kind int

const (
	nothing kind = iota
	text
	reasoning
)

// chunk reads a GenerateContentResponse or an array of them.
func (r *reply) chunk(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return r.object(data)
	}
	all := wire.Array(data)
	for all.Next() {
		if err := r.object(all.Value); err != nil {
			return err
		}
	}
	return r.checked(all.Err(), data)
}

// object reads a GenerateContentResponse. What it has nothing to do with is passed over.
func (r *reply) object(data []byte) error {
	c := &r.now
	if c.parts == nil {
		c.parts = r.first.wire[:0]
	}
	if err := c.read(data); err != nil {
		return r.checked(err, data)
	}
	if r.modelName == "" {
		if r.modelName = r.asked; !wire.Quotes(c.model, r.asked) {
			r.modelName = wire.String(c.model)
		}
	}
	if r.respID == "" {
		r.respID = wire.String(c.id)
	}
	if c.usage != nil {
		r.usage = usage(c.usage)
	}
	if !wire.IsNull(c.failure) {
		return r.api.InStream(data)
	}
	if c.feedback != nil {
		if reason := wire.String(wire.Get(c.feedback, "blockReason")); reason != "" {
			r.ended, r.blocked = true, true
			r.finish, r.note = reason, wire.String(wire.Get(c.feedback, "blockReasonMessage"))
		}
	}
	return r.candidate(&c.candidate)
}

func (r *reply) checked(err error, data []byte) error {
	if err != nil {
		return r.api.Malformed(err.Error(), data)
	}
	return nil
}

func (r *reply) candidate(c *candidate) error {
	if c.finish != nil {
		if reason := finishReason(c.finish); reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
			r.ended, r.finish = true, reason
		}
	}
	if c.note != nil {
		r.note = wire.String(c.note)
	}
	if c.grounding != nil {
		r.grounding.ground(c.grounding)
	}
	if c.fetched != nil {
		r.grounding.fetched(c.fetched)
	}
	if c.recited != nil {
		r.grounding.recited(c.recited)
	}
	for i := range c.parts {
		if err := r.part(&c.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// finishReason is wire.String, which costs nothing for the word of nearly all replies.
func finishReason(raw []byte) string {
	if string(raw) == `"STOP"` {
		return "STOP"
	}
	return wire.String(raw)
}

// response gives what was gathered.
func (r *reply) response() *model.Response {
	r.close()
	resp := &model.Response{
		Message: message.New(message.RoleAssistant, r.grounding.cite(r.parts)...),
		Usage:   r.usage,
		Stop:    r.stop(),
		Model:   cmp.Or(r.modelName, r.asked),
		ID:      r.respID,
	}
	switch resp.Stop {
	case model.StopEnd, model.StopTools, model.StopLength: // the note says no more than that
	default:
		resp.Reason = cmp.Or(r.note, r.finish)
	}
	return resp
}

func (r *reply) stop() model.StopReason {
	if r.blocked {
		return model.StopFilter
	}
	switch r.finish {
	case "STOP":
		if r.calls > 0 {
			return model.StopTools
		}
		return model.StopEnd // a stop sequence is not told apart
	case "MAX_TOKENS", "CONTINUATION": // of the model, of one request: both are told to go on
		return model.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return model.StopFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return model.StopBadCall
	}
	return model.StopReason(r.finish)
}

// usage reads usageMetadata. The prompt's count has the cached tokens in it; thoughts are counted beside the candidates.
func usage(data []byte) model.Usage {
	var prompt, cached, tools, candidates, thoughts int
	for u := wire.Object(data); u.Next(); {
		switch n := httpapi.Tokens(u.Value); string(u.Key) {
		case "promptTokenCount":
			prompt = n
		case "cachedContentTokenCount":
			cached = n
		case "toolUsePromptTokenCount":
			tools = n
		case "candidatesTokenCount":
			candidates = n
		case "thoughtsTokenCount":
			thoughts = n
		}
	}
	return model.Usage{Input: max(0, prompt-cached) + tools, CacheRead: cached, Output: candidates + thoughts, Reasoning: thoughts}
}

// callID names the n-th call of a reply that Gemini gave no id.
func callID(n int) string {
	if n == 1 { // as nearly always
		return noID + "1"
	}
	return noID + strconv.Itoa(n)
}

// arguments gives a call's input as the model wrote it, compact.
func arguments(raw []byte) string {
	if wire.IsNull(raw) {
		return "{}"
	}
	if wire.Compact(raw) {
		return string(raw)
	}
	compact, _ := wire.AppendCompact(make([]byte, 0, len(raw)), raw)
	return string(compact)
}

// extra gathers the members that have no field of ours: an object without its end; nothing while there are none.
type extra []byte

func (x extra) add(key string, raw []byte) extra {
	sep := byte(',')
	if len(x) == 0 {
		sep = '{'
	}
	with, _ := wire.AppendCompact(append(wire.AppendString(append(x, sep), key), ':'), raw)
	return with
}

func (x extra) origin() message.Origin {
	if len(x) == 0 {
		return message.Origin{Provider: provider}
	}
	return message.Origin{Provider: provider, Extra: string(append(x, '}'))}
}
