package openai

import (
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// decode reads a whole reply.
func (m *Responses) decode(body []byte) (*model.Response, error) {
	return m.response(body, "completed", &responsesStream{})
}

// response reads a response object. status is what to take for its status if it has none. The items that a stream finished count when the object
// has fewer, as with servers that leave its output empty.
func (m *Responses) response(data []byte, status string, s *responsesStream) (*model.Response, error) {
	if wire.IsNull(data) {
		data = []byte("{}")
	}
	r := responsesReply{heard: s.text.String(), tools: s.tools}
	r.parts = r.first[:0]
	var output, failure []byte
	var why string
	o := wire.Object(data)
	for o.Next() {
		switch string(o.Key) {
		case "id":
			r.ID = r.words.Append(o.Value)
		case "model":
			r.Model = known(o.Value, m.name)
		case "status":
			if s := word(o.Value); s != "" {
				status = s
			}
		case "output":
			output = o.Value
		case "usage":
			if !wire.IsNull(o.Value) {
				r.Usage = decodeUsage(o.Value)
			}
		case "error":
			failure = o.Value
		case "incomplete_details":
			why = wire.String(wire.Get(o.Value, "reason"))
		}
	}
	if o.Err() != nil {
		return nil, m.api.Malformed("not a JSON object", data)
	}
	if err := m.unfinished(status, failure, data, r.ID); err != nil {
		return nil, err
	}
	if output == nil && s.done == nil {
		return nil, m.api.Malformed("the reply has no output", data)
	}
	var room [4][]byte
	items := room[:0]
	for e := wire.Array(output); e.Next(); {
		items = append(items, e.Value)
	}
	if len(items) < len(s.done) {
		items = s.done
	}
	for _, item := range items {
		if !r.item(item) {
			return nil, m.oddItem(item)
		}
	}
	r.Message = message.New(message.RoleAssistant, r.parts...)
	r.Stop = r.stop(status, why)
	return &r.Response, nil
}

func (m *Responses) oddItem(item []byte) error {
	return m.api.Malformed("an item of the reply is not as it should be", item)
}

// unfinished gives the error of a response that has no answer to read.
func (m *Responses) unfinished(status string, failure, data []byte, id string) error {
	var e *model.Error
	switch {
	case !wire.IsNull(failure), status == "failed":
		e = m.api.InStream(data)
	case status == "queued", status == "in_progress":
		e = &model.Error{Kind: errdefs.NotAvailable, Code: status, Message: "the reply is made in the background, and isn't waited for"}
	case status == "cancelled":
		e = &model.Error{Kind: errdefs.NotAvailable, Code: status, Message: "the reply was cancelled at the provider"}
	default:
		return nil
	}
	e.Provider = m.api.Provider
	if e.RequestID == "" {
		e.RequestID = id
	}
	return e
}

type responsesReply struct {
	model.Response
	parts []message.Part
	first [4]message.Part
	calls bool
	words wire.Text // the ids, in one piece
	heard string    // the text as a stream said it
	tools []model.Tool
}

func (r *responsesReply) stop(status, why string) model.StopReason {
	switch {
	case status == "incomplete" && (why == "max_output_tokens" || why == "max_tokens"):
		return model.StopLength
	case status == "incomplete" && why == "":
		return model.StopReason(status)
	case status == "incomplete":
		return model.StopReason(why) // "content_filter" is the same word
	case r.Reason != "":
		return model.StopRefusal
	case r.calls:
		return model.StopTools
	}
	return model.StopEnd
}

// item takes an item of the output. One that isn't known is kept as it is. It reports false for what can't be: it could not be sent back.
func (r *responsesReply) item(data []byte) bool {
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	known := false
	switch kind := word(wire.First(data, "type")); kind {
	case "message":
		if !shaped(data) || wire.IsNull(wire.First(data, "content")) {
			return false
		}
		known = r.message(data)
	case "reasoning":
		if !shaped(data) {
			return false
		}
		known = r.reasoning(data)
	case "function_call":
		known = r.call(data)
	default:
		var c message.ProviderCall
		if c, known = providerCall(kind, data); known {
			r.parts = append(r.parts, c)
		}
	}
	if !known {
		raw, _ := wire.AppendCompact(nil, data)
		r.parts = append(r.parts, message.Opaque{Provider: responses, JSON: string(raw)})
	}
	return true
}

// shaped reports whether an item is made of what it has to be made of.
func shaped(item []byte) bool {
	for o := wire.Object(item); o.Next(); {
		null, ok := wire.IsNull(o.Value), true
		switch string(o.Key) {
		case "role", "encrypted_content":
			ok = o.Value[0] == '"' || null && string(o.Key) != "role"
		case "content", "summary":
			ok = null || typed(o.Value)
		}
		if !ok {
			return false
		}
	}
	return true
}

// typed reports whether a list has objects with a type, and texts that are texts.
func typed(list []byte) bool {
	l := wire.Array(list)
	for l.Next() {
		text, refusal := wire.First(l.Value, "text"), wire.First(l.Value, "refusal")
		if word(wire.First(l.Value, "type")) == "" || text != nil && text[0] != '"' || refusal != nil && refusal[0] != '"' {
			return false
		}
	}
	return l.Err() == nil
}

// message takes a message item: a part for each text, the first of which keeps what else the item has. false when there is no text
// to keep it.
func (r *responsesReply) message(data []byte) bool {
	var room [2][256]byte
	item, x := extra(room[0][:0]), extra(room[1][:0])
	var content []byte
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "content":
			content = o.Value
		case "type":
		case "role":
			if word(o.Value) != "assistant" {
				return false
			}
		default:
			item = item.add(string(o.Key), o.Value)
		}
	}
	if wire.IsNull(content) || content[0] != '[' {
		return false
	}
	said, mixed := false, false
	for e := wire.Array(content); e.Next(); {
		switch word(wire.First(e.Value, "type")) {
		case "output_text":
			text := wire.First(e.Value, "text")
			said = said || len(text) > len(`""`) && text[0] == '"'
			continue
		case "refusal":
			r.Reason += wire.String(wire.Get(e.Value, "refusal"))
		}
		mixed = true
	}
	if !said {
		return !mixed // an item that says nothing is nothing; one that refuses is kept as it is
	}
	if mixed {
		item = item.add("content", others(content))
	}
	x = x.add(noteItem, item.object())
	for e := wire.Array(content); e.Next(); {
		if word(wire.First(e.Value, "type")) == "output_text" {
			r.parts = append(r.parts, r.textPart(e.Value, x))
			x = x[:0]
		}
	}
	return true
}

// others gives a message's content with null for each text.
func others(content []byte) []byte {
	b := []byte{'['}
	for e := wire.Array(content); e.Next(); {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if word(wire.First(e.Value, "type")) == "output_text" {
			b = append(b, "null"...)
		} else {
			b = append(b, e.Value...)
		}
	}
	return append(b, ']')
}

func (r *responsesReply) textPart(data []byte, x extra) message.Text {
	var text string
	var annotations []byte
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "text":
			text = known(o.Value, r.heard)
		case "type":
		case "annotations":
			annotations = o.Value
			fallthrough
		default:
			x = x.add(string(o.Key), o.Value)
		}
	}
	return message.Text{Text: text, Citations: citations(text, annotations), Origin: message.Origin{Provider: responses, Extra: string(x.object())}}
}

// reasoning takes a reasoning item. Its summary and content are kept as they are unless the text alone says the same.
func (r *responsesReply) reasoning(data []byte) bool {
	var x extra
	var summary, content []byte
	var signature string
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "summary":
			summary = o.Value
		case "content":
			content = o.Value
		case "encrypted_content":
			if signature = wire.String(o.Value); signature == "" {
				x = x.add("encrypted_content", o.Value)
			}
		case "type":
		default:
			x = x.add(string(o.Key), o.Value)
		}
	}
	text := joinReasoning(summary, content)
	if content != nil || !plainSummary(summary, text) {
		if summary != nil {
			x = x.add("summary", summary)
		}
		if content != nil {
			x = x.add("content", content)
		}
	}
	r.parts = append(r.parts, message.Reasoning{Text: text, Signature: signature, Origin: message.Origin{Provider: responses, Extra: x.String()}})
	return true
}

// joinReasoning gives the texts of a summary and of content, with an empty line between them, as they are streamed.
func joinReasoning(lists ...[]byte) string {
	var b []byte
	for _, list := range lists {
		if wire.IsNull(list) {
			continue
		}
		for e := wire.Array(list); e.Next(); {
			text := wire.String(wire.Get(e.Value, "text"))
			if text != "" && len(b) > 0 {
				b = append(b, "\n\n"...)
			}
			b = append(b, text...)
		}
	}
	return string(b)
}

// plainSummary reports whether the encoder makes this summary of the text alone.
func plainSummary(summary []byte, text string) bool {
	n, plain := 0, true
	for e := wire.Array(summary); e.Next(); n++ {
		for o := wire.Object(e.Value); o.Next(); {
			key := string(o.Key)
			plain = plain && (key == "text" || key == "type" && wire.String(o.Value) == "summary_text")
		}
	}
	return summary != nil && plain && (n == 0 || n == 1 && text != "")
}

func (r *responsesReply) call(data []byte) bool {
	var room [256]byte
	x := extra(room[:0])
	c := message.ToolCall{}
	var text string
	for o := wire.Object(data); o.Next(); {
		switch string(o.Key) {
		case "call_id":
			c.ID = r.words.Append(o.Value)
		case "name":
			c.Name = httpapi.ToolName(o.Value, r.tools)
		case "arguments":
			text = wire.String(argumentText(o.Value))
		case "type":
		default:
			x = x.add(string(o.Key), o.Value)
		}
	}
	in, spelled := input(text)
	if spelled {
		x = x.addString(noteArguments, text)
	}
	if c.ID == "" {
		c.ID = callID(len(r.parts))
	}
	c.Input, c.Origin = in, message.Origin{Provider: responses, Extra: x.String()}
	r.parts = append(r.parts, c)
	r.calls = true
	return true
}
