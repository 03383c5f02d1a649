package anthropic

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
)

// encode gives a message's bytes: a comma and one message of the API, or nothing when nothing of it has a place there. It looks at
// m alone. Results come first in a user message because the API wants them right after their calls.
func encode(m message.Message) []byte {
	return httpapi.Encode(m, func(b []byte) []byte { return appendMessage(b, m) })
}

func appendMessage(b []byte, m message.Message) []byte {
	var said int // where the last block ends that is no thought: the API takes no message that ends with one, as after a reply that was cut off
	if m.Role() == message.RoleAssistant {
		b = append(b, `,{"role":"assistant","content":[`...)
		for i := range m.Len() { // without Parts, here and below: an iterator would be on the heap
			n, p := len(b), m.Part(i)
			b = appendAssistantBlock(b, p)
			if len(b) > n && !isThought(p) {
				said = len(b)
			}
		}
	} else {
		b = append(b, `,{"role":"user","content":[`...)
		n := len(b)
		for i := range m.Len() {
			if r, ok := m.Part(i).(message.ToolResult); ok {
				b = appendResult(b, r)
			}
		}
		for i := range m.Len() {
			b = appendUserBlock(b, m.Part(i))
		}
		if len(b) > n {
			said = len(b)
		}
	}
	if said == 0 {
		return nil
	}
	return append(b[:said], `]}`...)
}

func isThought(p message.Part) bool {
	switch p := p.(type) {
	case message.Reasoning:
		return true
	case message.Opaque:
		return wire.String(wire.Get([]byte(p.JSON), "type")) == "redacted_thinking"
	}
	return false
}

func appendAssistantBlock(b []byte, p message.Part) []byte {
	switch p := p.(type) {
	case message.Text:
		return appendText(b, p)
	case message.Reasoning:
		// Without its signature, as after a reply that was cut off within a thought, the API refuses it.
		if p.Provider != provider || p.Signature == "" {
			return b
		}
		b = wire.AppendString(append(next(b), `{"type":"thinking","thinking":`...), p.Text)
		b = wire.AppendString(append(b, `,"signature":`...), p.Signature)
		return append(appendExtra(b, p.Origin), '}')
	case message.ToolCall:
		b = wire.AppendWord(append(next(b), `{"type":"tool_use","id":`...), p.ID, 0)
		b = wire.AppendWord(append(b, `,"name":`...), p.Name, 64)
		b = appendInput(append(b, `,"input":`...), p.Input)
		return append(appendExtra(b, p.Origin), '}')
	case message.ProviderCall:
		return appendOpaque(b, p.Opaque)
	case message.Opaque:
		return appendOpaque(b, p)
	}
	return b // files were refused before; results are no assistant's
}

func appendUserBlock(b []byte, p message.Part) []byte {
	switch p := p.(type) {
	case message.Text:
		return appendText(b, p)
	case message.File:
		return appendFile(b, p)
	case message.ProviderCall:
		return appendOpaque(b, p.Opaque)
	case message.Opaque:
		return appendOpaque(b, p)
	}
	return b
}

// appendText leaves out what is only white space: the API refuses it.
func appendText(b []byte, t message.Text) []byte {
	if strings.TrimSpace(t.Text) == "" {
		return b
	}
	b = wire.AppendString(append(next(b), `{"type":"text","text":`...), t.Text)
	return append(appendExtra(b, t.Origin), '}')
}

func appendResult(b []byte, r message.ToolResult) []byte {
	b = wire.AppendWord(append(next(b), `{"type":"tool_result","tool_use_id":`...), r.Call, 0)
	blank := strings.TrimSpace(r.Content) == ""
	switch {
	case len(r.Files) > 0:
		b = append(b, `,"content":[`...)
		if !blank {
			b = appendText(b, message.Text{Text: r.Content})
		}
		for _, f := range r.Files {
			b = appendFile(b, f)
		}
		b = append(b, ']')
	case !blank:
		b = wire.AppendString(append(b, `,"content":`...), r.Content)
	case r.IsError: // the API wants a reason
		b = append(b, `,"content":"failed without a message"`...)
	}
	if r.IsError {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, '}')
}

func appendOpaque(b []byte, o message.Opaque) []byte {
	if o.Provider != provider {
		return b
	}
	n := len(b)
	b, ok := wire.AppendCompact(next(b), []byte(o.JSON))
	if !ok {
		return b[:n]
	}
	return b
}

// appendInput appends a call's arguments as the object that the API wants, whatever the model wrote.
func appendInput(b []byte, input string) []byte {
	if strings.TrimSpace(input) == "" {
		return append(b, `{}`...)
	}
	n := len(b)
	b, ok := wire.AppendCompact(b, []byte(input))
	if ok && b[n] == '{' {
		return b
	}
	return append(wire.AppendString(append(b[:n], `{"INVALID_JSON":`...), input), '}')
}

// appendExtra appends the members that our decoder had no field for.
func appendExtra(b []byte, o message.Origin) []byte {
	if o.Provider != provider || o.Extra == "" {
		return b
	}
	for m := wire.Object([]byte(o.Extra)); m.Next(); {
		switch string(m.Key) {
		case "type", "text", "thinking", "signature", "id", "name", "input":
			continue // they have fields
		case "citations":
			if m.Value[0] == '[' {
				b = appendCitations(append(b, `,"citations":`...), m.Value)
				continue
			}
		}
		b = append(wire.AppendString(append(b, ','), string(m.Key)), ':')
		b, _ = wire.AppendCompact(b, m.Value)
	}
	return b
}

// appendCitations leaves out file_id, which replies have in a citation and requests have no place for.
func appendCitations(b, list []byte) []byte {
	b = append(b, '[')
	for e := wire.Array(list); e.Next(); {
		b = next(b)
		if e.Value[0] != '{' {
			b, _ = wire.AppendCompact(b, e.Value)
			continue
		}
		sep := byte('{')
		for m := wire.Object(e.Value); m.Next(); {
			if string(m.Key) == "file_id" {
				continue
			}
			b = append(wire.AppendString(append(b, sep), string(m.Key)), ':')
			b, _ = wire.AppendCompact(b, m.Value)
			sep = ','
		}
		if sep == '{' {
			b = append(b, sep)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// next begins another block of a list, or member of an object.
func next(b []byte) []byte {
	if c := b[len(b)-1]; c == '[' || c == '{' {
		return b
	}
	return append(b, ',')
}
