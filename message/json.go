package message

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
)

// AppendJSON appends m in Pawl's own readable form, the one of journals and of the command line. A part is an object with a "type":
// text, reasoning, file, tool_call, tool_result, provider_call or opaque. The same message always gives the same bytes, and reading them back gives
// a message that every provider encodes to the same bytes again. The zero Message is null.
func (m Message) AppendJSON(dst []byte) []byte {
	if m.b == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"role":`...)
	dst = wire.AppendString(dst, string(m.b.speaks()))
	dst = append(dst, `,"parts":`...)
	return append(appendParts(dst, m.b.all()), '}')
}

// MarshalJSON is AppendJSON. A role that is none is an error: it could not be read back.
func (m Message) MarshalJSON() ([]byte, error) {
	if !m.IsZero() && !m.b.speaks().Valid() {
		return nil, errdefs.Validation.Errorf("message: role %q: want user, assistant or tool", m.b.speaks())
	}
	return m.AppendJSON(make([]byte, 0, 256)), nil
}

func appendPart(dst []byte, p Part) []byte {
	switch p := p.(type) {
	case Text:
		dst = member(append(dst, `{"type":"text"`...), "text", p.Text)
		dst = appendCitations(dst, "citations", p.Citations)
		dst = appendOrigin(dst, p.Origin)
	case Reasoning:
		dst = member(append(dst, `{"type":"reasoning"`...), "text", p.Text)
		dst = optional(dst, "signature", p.Signature)
		dst = appendOrigin(dst, p.Origin)
	case File:
		return appendFile(append(dst, `{"type":"file"`...), p)
	case ToolCall:
		dst = member(append(dst, `{"type":"tool_call"`...), "id", p.ID)
		dst = member(dst, "name", p.Name)
		dst = object(append(dst, `,"input":`...), p.Input)
		dst = appendOrigin(dst, p.Origin)
	case ToolResult:
		dst = member(append(dst, `{"type":"tool_result"`...), "call", p.Call)
		dst = optional(dst, "name", p.Name)
		dst = member(dst, "content", p.Content)
		if len(p.Files) > 0 {
			dst = append(dst, `,"files":[`...)
			for i, f := range p.Files {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendFile(append(dst, `{"type":"file"`...), f)
			}
			dst = append(dst, ']')
		}
		if p.IsError {
			dst = append(dst, `,"is_error":true`...)
		}
	case ProviderCall:
		dst = appendOpaque(append(dst, `{"type":"provider_call"`...), p.Opaque)
		dst = optional(dst, "call", p.Call)
		dst = optional(dst, "name", p.Name)
		if p.Input != "" {
			dst = object(append(dst, `,"input":`...), p.Input)
		}
		dst = optional(dst, "content", p.Output)
		dst = appendCitations(dst, "sources", p.Sources)
		if p.IsError {
			dst = append(dst, `,"is_error":true`...)
		}
	case Opaque:
		dst = appendOpaque(append(dst, `{"type":"opaque"`...), p)
	default:
		panic(fmt.Sprintf("message: a part of type %T", p)) // the set is closed
	}
	return append(dst, '}')
}

func appendOpaque(dst []byte, o Opaque) []byte {
	dst = member(dst, "provider", o.Provider)
	return object(append(dst, `,"json":`...), o.JSON)
}

func appendCitations(dst []byte, name string, cs []Citation) []byte {
	for i, c := range cs {
		if i == 0 {
			dst = append(append(append(dst, `,"`...), name...), `":[{`...)
		} else {
			dst = append(dst, ",{"...)
		}
		n := len(dst)
		dst = optional(dst, "url", c.URL)
		dst = optional(dst, "title", c.Title)
		dst = optional(dst, "quote", c.Quote)
		if c.Start != 0 || c.End != 0 {
			dst = strconv.AppendInt(append(dst, `,"start":`...), int64(c.Start), 10)
			dst = strconv.AppendInt(append(dst, `,"end":`...), int64(c.End), 10)
		}
		if len(dst) > n { // the first comma
			dst = append(dst[:n], dst[n+1:]...)
		}
		dst = append(dst, '}')
	}
	if len(cs) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

func appendFile(dst []byte, f File) []byte {
	dst = member(dst, "mime", f.MIME)
	dst = optional(dst, "name", f.Name)
	dst = optional(dst, "url", f.URL)
	dst = optional(dst, "hash", f.Hash)
	dst = optional(dst, "provider", f.Provider)
	dst = optional(dst, "id", f.ID)
	if f.Data != "" {
		dst = wire.AppendBase64(append(dst, `,"data":`...), f.Data)
	}
	return append(dst, '}')
}

func appendOrigin(dst []byte, o Origin) []byte {
	dst = optional(dst, "provider", o.Provider)
	if o.Extra != "" {
		dst = object(append(dst, `,"extra":`...), o.Extra)
	}
	return dst
}

func member(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return wire.AppendString(dst, value)
}

func optional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return member(dst, name, value)
}

// maxDepth is how deep JSON may be nested to be written as such. Readers give up at some depth (encoding/json at 10,000), and what was
// written has to be read again.
const maxDepth = 1000

// object appends text that ought to be a JSON object: as it is when it is one, so that people can read it, else as a string.
func object(dst []byte, text string) []byte {
	if len(text) > 0 && text[0] == '{' && strings.Count(text, "{")+strings.Count(text, "[") <= maxDepth {
		if out, ok := wire.AppendCompact(dst, []byte(text)); ok {
			return out
		}
	}
	return wire.AppendString(dst, text)
}

// fromObject reverses object.
func fromObject(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return wire.String(raw)
	}
	return string(raw)
}

// UnmarshalJSON reads what AppendJSON wrote. A part of a type that this version doesn't know is refused: leaving it out would change
// what was said. m must be zero.
func (m *Message) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*m = Message{}
		return nil
	}
	var role string
	var parts []Part
	o := wire.Object(data)
	for o.Next() {
		switch string(o.Key) {
		case "role":
			role = wire.String(o.Value)
		case "parts":
			more, err := parseParts(o.Value)
			if err != nil {
				return err
			}
			parts = append(parts, more...)
		}
	}
	if err := o.Err(); err != nil {
		return errdefs.Validation.Errorf("message: %w", err)
	}
	if !Role(role).Valid() {
		return errdefs.Validation.Errorf("message: role %q: want user, assistant or tool", role)
	}
	*m = New(Role(role), parts...)
	return nil
}

// fields are the members that some part has.
type fields struct {
	kind, text, signature, provider, extra, id, name, input, call, content, json string
	mime, url, hash, data                                                        string
	files                                                                        []File
	cited                                                                        []Citation
	isError                                                                      bool
}

func parsePart(raw []byte) (Part, error) {
	f, err := parseFields(raw)
	if err != nil {
		return nil, err
	}
	from := Origin{f.provider, f.extra}
	switch f.kind {
	case "text":
		return Text{f.text, f.cited, from}, nil
	case "reasoning":
		return Reasoning{f.text, f.signature, from}, nil
	case "file":
		return f.file(), nil
	case "tool_call":
		return ToolCall{f.id, f.name, f.input, from}, nil
	case "tool_result":
		return ToolResult{f.call, f.name, f.content, f.files, f.isError}, nil
	case "provider_call":
		return ProviderCall{Opaque{f.provider, f.json}, f.call, f.name, f.input, f.content, f.cited, f.isError}, nil
	case "opaque":
		return Opaque{f.provider, f.json}, nil
	}
	return nil, errdefs.Validation.Errorf("message: a part of type %q: this version knows text, reasoning, file, tool_call, tool_result, provider_call and opaque", f.kind)
}

func (f fields) file() File {
	return File{MIME: f.mime, Name: f.name, URL: f.url, Hash: f.hash, Data: f.data, Provider: f.provider, ID: f.id}
}

func parseFields(raw []byte) (f fields, err error) {
	texts := map[string]*string{
		"type": &f.kind, "text": &f.text, "signature": &f.signature, "provider": &f.provider, "id": &f.id, "name": &f.name,
		"call": &f.call, "content": &f.content, "mime": &f.mime, "url": &f.url, "hash": &f.hash,
	}
	objects := map[string]*string{"extra": &f.extra, "input": &f.input, "json": &f.json}
	o := wire.Object(raw)
	for o.Next() {
		switch key := string(o.Key); key {
		case "is_error":
			f.isError = wire.Bool(o.Value)
		case "data":
			b, err := base64.StdEncoding.DecodeString(wire.String(o.Value))
			if err != nil {
				return f, errdefs.Validation.Errorf("message: file data: %w", err)
			}
			f.data = string(b)
		case "citations", "sources":
			f.cited = parseCitations(o.Value)
		case "files":
			a := wire.Array(o.Value)
			for a.Next() {
				inner, err := parseFields(a.Value)
				if err != nil {
					return f, err
				}
				f.files = append(f.files, inner.file())
			}
		default:
			if s := texts[key]; s != nil {
				*s = wire.String(o.Value)
			} else if s := objects[key]; s != nil {
				*s = fromObject(o.Value)
			}
		}
	}
	if err := o.Err(); err != nil {
		return f, errdefs.Validation.Errorf("message: part: %w", err)
	}
	return f, nil
}

func parseCitations(raw []byte) (cs []Citation) {
	for a := wire.Array(raw); a.Next(); {
		var c Citation
		for o := wire.Object(a.Value); o.Next(); {
			switch string(o.Key) {
			case "url":
				c.URL = wire.String(o.Value)
			case "title":
				c.Title = wire.String(o.Value)
			case "quote":
				c.Quote = wire.String(o.Value)
			case "start":
				c.Start = int(wire.Int(o.Value))
			case "end":
				c.End = int(wire.Int(o.Value))
			}
		}
		cs = append(cs, c)
	}
	return cs
}

// MarshalJSON writes the messages as a list. A message without a role, the zero Message too, is an error: it could not be read back.
func (h History) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, m := range h.All() {
		if !m.Role().Valid() {
			return nil, errdefs.Validation.Errorf("message: message %d: role %q: want user, assistant or tool", i, m.Role())
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = m.AppendJSON(b)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *History) UnmarshalJSON(b []byte) error {
	var ms []Message
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*h = NewHistory(ms...)
	return nil
}
