package chat

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// wireMessage is a message as clients write it. What answers have besides is taken back with them.
type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       string          `json:"name"`
	ToolCalls  []wireCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`

	Reasoning    string `json:"reasoning_content"` // without its signature no provider takes it
	Refusal      string `json:"refusal"`
	Annotations  []any  `json:"annotations"`
	Audio        *none  `json:"audio"`
	FunctionCall *none  `json:"function_call"`
}

type wireCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// none is a member that has to be null.
type none struct{}

func (*none) UnmarshalJSON([]byte) error { return errors.New("it has to be null") }

type wirePart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
	File *struct {
		Data string `json:"file_data"`
		Name string `json:"filename"`
		ID   string `json:"file_id"`
	} `json:"file"`
	Audio *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// messages reads the conversation. The last message is the user's; what is before it is made valid for every provider.
func (r *Request) messages(v json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(v, &list); err != nil {
		return kind(v, "a list")
	}
	var before []message.Message
	var system []string
	calls := map[string]string{} // the tools' names, by call
	var results []message.ToolResult
	flush := func() {
		if len(results) > 0 {
			before, results = append(before, message.Results(results...)), nil
		}
	}
	for i, raw := range list {
		place := func(err error) error { return at(fmt.Sprintf("messages[%d]", i), err) }
		var m wireMessage
		if err := web.Decode(raw, &m); err != nil {
			return place(err)
		}
		parts, err := partsOf(m.Role, m.Content)
		if err != nil {
			return place(err)
		}
		if m.Role != "tool" {
			flush()
		}
		var next message.Message
		switch m.Role {
		case "system", "developer":
			system = append(system, textOf(parts))
			if i == len(list)-1 {
				return at("messages", errors.New("the last one has to be the user's"))
			}
			continue
		case "user":
			next = message.New(message.RoleUser, parts...)
			if next.Blank() {
				return place(errors.New("it says nothing"))
			}
		case "assistant":
			for _, c := range m.ToolCalls {
				if c.ID == "" || c.Function.Name == "" || c.Type != "function" && c.Type != "" {
					return place(errors.New("a call needs an id, the type function, and the function's name"))
				}
				calls[c.ID] = c.Function.Name
				parts = append(parts, message.ToolCall{ID: c.ID, Name: c.Function.Name, Input: c.Function.Arguments})
			}
			next = message.New(message.RoleAssistant, parts...)
		case "tool":
			name, ok := calls[m.ToolCallID]
			if !ok {
				return place(fmt.Errorf("it answers the call %q, which no message before it makes", m.ToolCallID))
			}
			results = append(results, message.ToolResult{Call: m.ToolCallID, Name: name, Content: textOf(parts)})
			if i == len(list)-1 {
				return at("messages", errors.New("the last one has to be the user's: tools are called here"))
			}
			continue
		default:
			return place(fmt.Errorf("the role is %q: want system, developer, user, assistant or tool", m.Role))
		}
		if err := next.CheckFiles(); err != nil {
			return place(err)
		}
		if i < len(list)-1 {
			before = append(before, next)
			continue
		}
		if m.Role != "user" {
			return at("messages", errors.New("the last one has to be the user's"))
		}
		r.Message = next
	}
	r.System, r.History = strings.Join(system, "\n\n"), message.Repair(message.NewHistory(before...))
	return nil
}

func textOf(parts []message.Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(message.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// partsOf reads content: a text, or a list of parts. Files are for users to send.
func partsOf(role string, v json.RawMessage) (parts []message.Part, err error) {
	if len(v) == 0 || string(v) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		if text != "" {
			parts = append(parts, message.Text{Text: text})
		}
		return parts, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, errors.New("the content is neither a text nor a list of parts")
	}
	for i, raw := range list {
		p, err := partOf(role, raw)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func partOf(role string, raw json.RawMessage) (message.Part, error) {
	var p wirePart
	if err := web.Decode(raw, &p); err != nil {
		return nil, err
	}
	switch {
	case p.Type == "text":
		return message.Text{Text: p.Text}, nil
	case p.Type == "refusal" && role == "assistant":
		return message.Text{Text: p.Refusal}, nil
	case role != "user":
		return nil, fmt.Errorf("a part of type %q: a message of role %s has text only", p.Type, role)
	case p.Type == "image_url" && p.ImageURL != nil:
		return fileAt(p.ImageURL.URL, "", "image/jpeg")
	case p.Type == "file" && p.File != nil:
		if p.File.ID != "" {
			return nil, errors.New("file_id: nothing is kept here: send file_data")
		}
		return fileAt(p.File.Data, p.File.Name, "application/octet-stream")
	case p.Type == "input_audio" && p.Audio != nil:
		kind, ok := map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}[p.Audio.Format]
		if !ok {
			return nil, fmt.Errorf("input_audio of format %q: want wav or mp3", p.Audio.Format)
		}
		data, err := base64.StdEncoding.DecodeString(p.Audio.Data)
		if err != nil {
			return nil, fmt.Errorf("input_audio: %w", err)
		}
		return message.File{MIME: kind, Data: string(data)}, nil
	}
	return nil, fmt.Errorf("a part of type %q: want text, image_url, file or input_audio, with the member of that name", p.Type)
}

// fileAt is the file that an address has, data: ones with their bytes. What kind it is, is guessed by names where nothing says it.
func fileAt(at, name, kind string) (message.Part, error) {
	if guess := mime.TypeByExtension(path.Ext(name)); guess != "" {
		kind = guess
	}
	if rest, ok := strings.CutPrefix(at, "data:"); ok {
		head, data, ok := strings.Cut(rest, ",")
		head, inBase64 := strings.CutSuffix(head, ";base64")
		if !ok || !inBase64 {
			return nil, errors.New("a data: address has to be data:TYPE;base64,BYTES")
		}
		b, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil, fmt.Errorf("a data: address: %w", err)
		}
		if head != "" {
			kind = head
		}
		return message.File{MIME: kind, Name: name, Data: string(b)}, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%.80q: want data:TYPE;base64,BYTES, or an address of http or https", at)
	}
	if guess := mime.TypeByExtension(path.Ext(u.Path)); guess != "" {
		kind = guess
	}
	return message.File{MIME: kind, Name: name, URL: at}, nil
}
