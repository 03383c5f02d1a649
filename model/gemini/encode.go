package gemini

import (
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// The keys of the encodings of a message: they differ in a call without a signature, and in files.
type (
	plainFormat  struct{}
	signedFormat struct{}
	inlineFormat struct{ signed bool }
)

// noID is how the ids begin that were made for calls without one.
const noID = "gemini_call_"

// anySignature is Google's documented stand-in for the signature of a call that another model made.
const anySignature = "skip_thought_signature_validator"

var tail = []byte("]}")

// body puts the head and the messages' bytes together. Neighbours of one role stay separate contents: roles don't have to alternate,
// as the source of Google's ADK for Go says, and Gemini 3 may overlook a user's text that stands in one content with responses. Only
// a turn of calls has to be followed by as many responses, which one message of ours holds.
func (m *Model) body(req model.Request) (httpapi.Body, error) {
	n := req.Messages.Len()
	if n == 0 {
		return nil, errdefs.Validation.Errorf("gemini: a request needs a message")
	}
	head, err := m.headOf(req)
	if err != nil {
		return nil, err
	}
	if req.Messages.HasFiles() {
		if err := m.checkFiles(req.Messages); err != nil {
			return nil, err
		}
	}
	body := req.Messages.Encoded(append(httpapi.Room(n), head), 0, n, m.format, m.encode)
	if len(body) == 1 {
		return nil, errdefs.Validation.Errorf("gemini: none of the %d messages says anything", n)
	}
	body[1] = body[1][1:] // the comma
	return append(body, tail), nil
}

// checkFiles wants each file's bytes or address.
func (m *Model) checkFiles(h message.History) error {
	for i, f := range httpapi.Files(h, m.keeps()) {
		if f.Data == "" && f.URL == "" && !kept(f) {
			return errdefs.Validation.Errorf("gemini: message %d: the file %q (%s) has neither data nor a URL: resolve it before the call", i+1, f.Name, f.MIME)
		}
	}
	return nil
}

// encoder gives a model's key, and what encodes under it: without a signature, with one where a call has none, and for a cloud, which knows none of the files that the API keeps, and is sent what they are.
func (m *Model) encoder() (format any, encode func(message.Message) []byte) {
	switch {
	case m.keeps() && m.signed:
		return signedFormat{}, encodeSigned
	case m.keeps():
		return plainFormat{}, encodePlain
	}
	return inlineFormat{m.signed}, encodeInline(m.signed)
}

func encodePlain(m message.Message) []byte  { return encode(m, false) }
func encodeSigned(m message.Message) []byte { return encode(m, true) }

func encodeInline(signed bool) func(message.Message) []byte {
	return func(m message.Message) []byte {
		if m.HasFiles() {
			m = httpapi.Inline(m)
		}
		return encode(m, signed)
	}
}

// encode gives a comma and m as one content; nil when nothing of m is for Gemini.
func encode(m message.Message, signed bool) []byte {
	return httpapi.Encode(m, func(b []byte) []byte { return appendContent(b, m, signed) })
}

func appendContent(b []byte, m message.Message, signed bool) []byte {
	role := "user"
	if m.Role() == message.RoleAssistant {
		role = "model"
	}
	b = append(b, `,{"role":"`...)
	b = append(append(b, role...), `","parts":[`...)
	empty := len(b)
	for i := range m.Len() {
		p, n := m.Part(i), len(b)
		if n > empty {
			b = append(b, ',')
		}
		before := len(b)
		b = appendPart(b, p, signed)
		switch _, call := p.(message.ToolCall); {
		case len(b) == before:
			b = b[:n]
		case call:
			signed = false // only the first call of a turn's step has a signature
		}
	}
	if len(b) == empty {
		return nil
	}
	return append(b, "]}"...)
}

// appendPart appends one part, or several for a result with files, or nothing.
func appendPart(b []byte, p message.Part, signed bool) []byte {
	switch p := p.(type) {
	case message.Text:
		return appendText(b, p)
	case message.Reasoning:
		return appendReasoning(b, p)
	case message.File:
		return appendFile(b, p)
	case message.ToolCall:
		return appendCall(b, p, signed)
	case message.ToolResult:
		return appendResult(b, p)
	case message.ProviderCall:
		return appendPart(b, p.Opaque, signed)
	case message.Opaque:
		if p.Provider == provider {
			return append(b, p.JSON...)
		}
	}
	return b
}

// appendText leaves out an empty text, which the API refuses, unless it carries a signature.
func appendText(b []byte, p message.Text) []byte {
	extra := ours(p.Origin)
	if p.Text == "" && extra == "" {
		return b
	}
	b = wire.AppendString(append(b, `{"text":`...), p.Text)
	return append(appendExtra(b, extra), '}')
}

func appendReasoning(b []byte, p message.Reasoning) []byte {
	if p.Provider != provider || p.Text == "" && p.Signature == "" {
		return b
	}
	b = wire.AppendString(append(b, `{"text":`...), p.Text)
	b = append(b, `,"thought":true`...)
	if p.Signature != "" {
		b = wire.AppendString(append(b, `,"thoughtSignature":`...), p.Signature)
	}
	return append(appendExtra(b, p.Extra), '}')
}

func appendFile(b []byte, f message.File) []byte {
	at := f.URL
	if kept(f) {
		at = addressOf(f.ID)
	}
	if at != "" {
		b = wire.AppendString(append(b, `{"fileData":{"mimeType":`...), f.MIME)
		b = wire.AppendString(append(b, `,"fileUri":`...), at)
		return append(b, "}}"...)
	}
	b = wire.AppendString(append(b, `{"inlineData":{"mimeType":`...), f.MIME)
	b = wire.AppendBase64(append(b, `,"data":`...), f.Data)
	return append(b, "}}"...)
}

func appendCall(b []byte, p message.ToolCall, signed bool) []byte {
	extra := ours(p.Origin)
	b = appendName(append(b, `{"functionCall":{"name":`...), p.Name)
	b = appendInput(append(b, `,"args":`...), p.Input)
	b = appendID(b, p.ID)
	var inner []byte
	signature := false
	for e := wire.Object(wire.View(extra)); e.Next(); {
		switch string(e.Key) {
		case "functionCall":
			inner = e.Value
		case "thoughtSignature":
			signature = true
		}
	}
	if inner != nil {
		b = appendMembers(b, inner)
	}
	b = append(b, '}')
	if signed && !signature {
		b = append(b, `,"thoughtSignature":"`+anySignature+`"`...)
	}
	return append(appendExtra(b, extra), '}')
}

// appendInput appends a call's arguments: an object, whatever the model wrote.
func appendInput(b []byte, input string) []byte {
	input = strings.TrimLeft(input, " \t\r\n")
	if input == "" {
		return append(b, "{}"...)
	}
	if input[0] == '{' {
		if b, ok := wire.AppendCompact(b, []byte(input)); ok {
			return b
		}
	}
	b = wire.AppendString(append(b, `{"INVALID_JSON":`...), input)
	return append(b, '}')
}

func appendResult(b []byte, p message.ToolResult) []byte {
	b = appendName(append(b, `{"functionResponse":{"name":`...), p.Name)
	kind := `,"response":{"result":`
	if p.IsError {
		kind = `,"response":{"error":`
	}
	b = wire.AppendString(append(b, kind...), p.Content)
	b = append(appendID(append(b, '}'), p.Call), "}}"...)
	for _, f := range p.Files {
		b = appendFile(append(b, ','), f)
	}
	return b
}

// appendName appends the name of a function. A model may call what nobody offered, by any name; the API takes up to 64 letters, digits, _
// and -, the first of which is a letter or _, and . and : that no tool of ours has.
func appendName(b []byte, name string) []byte {
	if name != "" && (name[0] >= '0' && name[0] <= '9' || name[0] == '-') {
		name = "_" + name
	}
	return wire.AppendWord(b, name, 64)
}

// appendID leaves out an id that Gemini never gave. A call and its result are encoded apart and must agree, also when somebody
// renamed the call: so the id alone decides, not the call's origin.
func appendID(b []byte, id string) []byte {
	if id == "" || strings.HasPrefix(id, noID) {
		return b
	}
	return wire.AppendString(append(b, `,"id":`...), id)
}

// ours gives what Gemini itself attached to a part.
func ours(o message.Origin) string {
	if o.Provider != provider {
		return ""
	}
	return o.Extra
}

// appendExtra appends the members of extra but those that the caller has written.
func appendExtra(b []byte, extra string) []byte {
	return appendMembers(b, wire.View(extra))
}

func appendMembers(b, object []byte) []byte {
	for e := wire.Object(object); e.Next(); {
		switch string(e.Key) {
		case "text", "functionCall", "name", "args", "id":
			continue
		}
		b = wire.AppendString(append(b, ','), string(e.Key))
		b = append(append(b, ':'), e.Value...)
	}
	return b
}
