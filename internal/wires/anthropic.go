package wires

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type block struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input, Content                            json.RawMessage
	ToolUseID                                 string `json:"tool_use_id"`
	IsError                                   bool   `json:"is_error"`
	Source                                    *struct {
		Type, Data, URL string
		MediaType       string `json:"media_type"`
		FileID          string `json:"file_id"`
	}
}

// readAnthropic knows: messages have content; neighbours of one role count as one; results stand at the beginning of what follows their
// calls; a text isn't blank, a thought is signed and isn't the last block.
func readAnthropic(body []byte) (out []Said, err error) {
	var req struct {
		Max      int `json:"max_tokens"`
		Messages []struct {
			Role    string
			Content []json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	if req.Max <= 0 || len(req.Messages) == 0 || strings.Count(string(body), `"cache_control":{"type":"ephemeral"}`) > 4 {
		return nil, errors.New("no limit, no messages, or too many marks")
	}
	var p pairs
	before := ""
	for i, m := range req.Messages {
		if m.Role != "user" && m.Role != "assistant" || len(m.Content) == 0 {
			return nil, fmt.Errorf("message %d: role %q, %d blocks", i, m.Role, len(m.Content))
		}
		if m.Role == "assistant" && before == "user" || m.Role == "user" && before == "user" {
			if err := p.closed(); err != nil {
				return nil, err
			}
		}
		last := ""
		for _, raw := range m.Content {
			var b block
			if err := b.parse(raw); err != nil {
				return nil, err
			}
			if m.Role == "user" && b.Type != "tool_result" {
				if err := p.closed(); err != nil {
					return nil, err
				}
			}
			said, err := b.read(m.Role, raw, &p)
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			out = append(out, said...)
			last = b.Type
		}
		if last == "thinking" || last == "redacted_thinking" {
			return nil, fmt.Errorf("message %d: the final block in an assistant message cannot be `thinking`", i)
		}
		before = m.Role
	}
	return out, p.closed()
}

// parse reads a block. Of those that the provider made for itself only the type is known.
func (b *block) parse(raw []byte) error {
	var is struct{ Type string }
	if err := json.Unmarshal(raw, &is); err != nil || is.Type == "" {
		return fmt.Errorf("a block without a type: %s", raw)
	}
	switch b.Type = is.Type; b.Type {
	case "text", "thinking", "tool_use", "tool_result", "image", "document":
		return json.Unmarshal(raw, b)
	}
	return nil
}

func (b block) read(role string, raw []byte, p *pairs) ([]Said, error) {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return nil, errors.New("a blank text")
		}
		return []Said{{Role: role, Kind: "text", Text: b.Text}}, nil
	case "thinking":
		if b.Signature == "" || role != "assistant" {
			return nil, errors.New("a thought without a signature, or not the model's")
		}
		return []Said{{Role: role, Kind: "reasoning", Text: b.Thinking, Sign: b.Signature}}, nil
	case "tool_use":
		if !word.MatchString(b.ID) || !object(b.Input) || role != "assistant" {
			return nil, fmt.Errorf("a call: %s", raw)
		}
		return []Said{{Role: role, Kind: "call", ID: b.ID, Name: b.Name, Args: string(b.Input)}}, errors.Join(named(b.Name), p.call(b.ID))
	case "tool_result":
		out := []Said{{Role: role, Kind: "result", ID: b.ToolUseID}}
		if role != "user" {
			return nil, errors.New("a result that isn't the user's")
		}
		if b.Content != nil && json.Unmarshal(b.Content, &out[0].Text) != nil {
			var list []block
			if err := json.Unmarshal(b.Content, &list); err != nil {
				return nil, err
			}
			for _, inner := range list {
				said, err := inner.read(role, nil, p)
				if err != nil {
					return nil, err
				}
				if inner.Type == "text" {
					out[0].Text += inner.Text
				} else {
					out = append(out, said...)
				}
			}
		}
		return out, p.result(b.ToolUseID)
	case "image", "document":
		if b.Source == nil || role != "user" {
			return nil, errors.New("a file without a source, or the model's")
		}
		f := Said{Role: role, Kind: "file", Text: b.Source.Data}
		switch b.Source.Type {
		case "url":
			f.Text = b.Source.URL
		case "file":
			f.Text = b.Source.FileID
		case "base64":
			data, err := base64.StdEncoding.DecodeString(b.Source.Data)
			if err != nil || b.Source.MediaType == "" {
				return nil, fmt.Errorf("a file of type %q: %w", b.Source.MediaType, err)
			}
			f.Text = string(data)
		}
		return []Said{f}, nil
	}
	return []Said{{Role: role, Kind: "opaque", Text: string(raw)}}, nil
}
