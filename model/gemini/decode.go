package gemini

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// decode reads a whole reply: one GenerateContentResponse, or an array of them, as the streaming method gives without SSE.
func (m *Model) decode(raw []byte) (*model.Response, error) {
	r := reply{api: m.api}
	if err := r.chunk(raw); err != nil {
		return nil, err
	}
	if !r.ended {
		return nil, m.api.Malformed("the reply has no finishReason", raw)
	}
	return r.response(m.name), nil
}

// reply gathers the chunks of a reply. A whole reply is one chunk.
type reply struct {
	api *httpapi.API
	cb  model.StreamHandler // nil: nobody listens

	parts []message.Part
	open  kind   // of the part that is being written, which is not in parts yet
	text  []byte // its text so far
	calls int

	grounding grounding

	usage             model.Usage
	finish            string // finishReason in Gemini's word
	note              string // what Gemini says about it
	blocked           bool   // the prompt was
	ended             bool
	modelName, respID string
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
	var candidates, feedback, failure []byte
	m := wire.Object(data)
	for m.Next() {
		switch string(m.Key) {
		case "candidates":
			candidates = m.Value
		case "promptFeedback":
			feedback = m.Value
		case "usageMetadata":
			r.usage = usage(m.Value)
		case "modelVersion":
			if r.modelName == "" {
				r.modelName = wire.String(m.Value)
			}
		case "responseId":
			if r.respID == "" {
				r.respID = wire.String(m.Value)
			}
		case "error":
			failure = m.Value
		}
	}
	if err := m.Err(); err != nil {
		return r.checked(err, data)
	}
	if !wire.IsNull(failure) {
		return r.api.InStream(data)
	}
	if feedback != nil {
		if reason := wire.String(wire.Get(feedback, "blockReason")); reason != "" {
			r.ended, r.blocked = true, true
			r.finish, r.note = reason, wire.String(wire.Get(feedback, "blockReasonMessage"))
		}
	}
	if candidates == nil {
		return nil
	}
	for c := wire.Array(candidates); c.Next(); {
		if wire.Int(wire.Get(c.Value, "index")) == 0 { // we ask for one; a gateway's default may be more
			return r.candidate(c.Value)
		}
	}
	return nil
}

func (r *reply) checked(err error, data []byte) error {
	if err != nil {
		return r.api.Malformed(err.Error(), data)
	}
	return nil
}

func (r *reply) candidate(data []byte) error {
	var parts []byte
	for c := wire.Object(data); c.Next(); {
		switch string(c.Key) {
		case "content":
			parts = wire.Get(c.Value, "parts")
		case "finishReason":
			if reason := wire.String(c.Value); reason != "" && reason != "FINISH_REASON_UNSPECIFIED" {
				r.ended, r.finish = true, reason
			}
		case "finishMessage":
			r.note = wire.String(c.Value)
		case "groundingMetadata":
			r.grounding.ground(c.Value)
		case "urlContextMetadata":
			r.grounding.fetched(c.Value)
		case "citationMetadata":
			r.grounding.recited(c.Value)
		}
	}
	if parts == nil { // cut off before the first one
		return nil
	}
	for p := wire.Array(parts); p.Next(); {
		if err := r.part(p.Value); err != nil {
			return err
		}
	}
	return nil
}

// response gives what was gathered; asked is the model that was asked, for servers that don't say which one answered.
func (r *reply) response(asked string) *model.Response {
	r.close()
	resp := &model.Response{
		Message: message.New(message.RoleAssistant, r.grounding.cite(r.parts)...),
		Usage:   r.usage,
		Stop:    r.stop(),
		Model:   cmp.Or(r.modelName, asked),
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
func callID(n int) string { return noID + strconv.Itoa(n) }

// arguments gives a call's input as the model wrote it, compact.
func arguments(raw []byte) string {
	if wire.IsNull(raw) {
		return "{}"
	}
	compact, _ := wire.AppendCompact(make([]byte, 0, len(raw)), raw)
	return string(compact)
}

// extra gathers the members that have no field of ours.
type extra struct{ b []byte }

func (x *extra) add(key string, raw []byte) {
	sep := byte(',')
	if len(x.b) == 0 {
		sep = '{'
	}
	x.b = wire.AppendString(append(x.b, sep), key)
	x.b, _ = wire.AppendCompact(append(x.b, ':'), raw)
}

func (x *extra) origin() message.Origin {
	if len(x.b) == 0 {
		return message.Origin{Provider: provider}
	}
	var b strings.Builder
	b.Grow(len(x.b) + 1)
	b.Write(x.b)
	b.WriteByte('}')
	return message.Origin{Provider: provider, Extra: b.String()}
}
