package wires

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

type content struct {
	Type, Text, Refusal string
	ImageURL            json.RawMessage `json:"image_url"`
	File                struct {
		FileData string `json:"file_data"`
		FileID   string `json:"file_id"`
	}
	FileID   string                 `json:"file_id"`
	FileData string                 `json:"file_data"`
	FileURL  string                 `json:"file_url"`
	Audio    *struct{ Data string } `json:"input_audio"`
}

func (c content) read(role string) (Said, error) {
	s := Said{Role: role, Kind: "file"}
	var err error
	if id := c.FileID + c.File.FileID; id != "" {
		s.Text = id
		return s, nil
	}
	switch c.Type {
	case "text", "input_text", "output_text":
		return Said{Role: role, Kind: "text", Text: c.Text}, nil
	case "refusal":
		return Said{Role: role, Kind: "opaque", Text: c.Refusal}, nil
	case "image_url":
		var image struct{ URL string }
		err = json.Unmarshal(c.ImageURL, &image)
		c.FileURL = image.URL
	case "input_image":
		err = json.Unmarshal(c.ImageURL, &c.FileURL)
	case "file":
		c.FileURL = c.File.FileData
	case "input_file":
		c.FileURL += c.FileData
	case "input_audio":
		var data []byte
		if c.Audio == nil {
			return s, errors.New("no audio")
		}
		data, err = base64.StdEncoding.DecodeString(c.Audio.Data)
		s.Text = string(data)
		return s, err
	default:
		if role == "assistant" {
			return Said{Role: role, Kind: "opaque"}, nil
		}
		return s, fmt.Errorf("content of type %q", c.Type)
	}
	if err == nil {
		s.Text, err = inline(c.FileURL)
	}
	return s, err
}

// contents reads what is a text or a list of parts.
func contents(role string, raw json.RawMessage) (out []Said, err error) {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		err := json.Unmarshal(raw, &text)
		return []Said{{Role: role, Kind: "text", Text: text}}, err
	}
	var list []content
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, c := range list {
		s, err := c.read(role)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// readChat knows: a tool message for each call right behind them; a user's content isn't empty; an assistant says something. longest is the
// most bytes of a call's id, 0 for any number: OpenAI's own servers take 40.
func readChat(body []byte, longest int) (out []Said, err error) {
	var req struct {
		Messages []struct {
			Role             string
			Content, Refusal json.RawMessage
			ToolCallID       string `json:"tool_call_id"`
			Reasoning        string `json:"reasoning_content"`
			ToolCalls        []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	var p pairs
	for i, m := range req.Messages {
		if m.Role != "tool" {
			if err := p.closed(); err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
		}
		if m.Reasoning != "" {
			out = append(out, Said{Role: m.Role, Kind: "reasoning", Text: m.Reasoning})
		}
		null := len(m.Content) == 0 || bytes.Equal(m.Content, []byte("null"))
		var said []Said
		if !null {
			if said, err = contents(m.Role, m.Content); err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
		}
		switch m.Role {
		case "tool":
			if len(said) != 1 || said[0].Kind != "text" {
				return nil, fmt.Errorf("message %d: the content of a result: %s", i, m.Content)
			}
			if err := p.result(m.ToolCallID); err != nil {
				return nil, err
			}
			said[0] = Said{Role: "user", Kind: "result", ID: m.ToolCallID, Text: said[0].Text}
		case "user":
			if len(said) == 0 || len(said) == 1 && said[0].Kind == "text" && said[0].Text == "" {
				return nil, fmt.Errorf("message %d: no content", i)
			}
		case "assistant":
			if null && len(m.ToolCalls) == 0 && len(m.Refusal) == 0 {
				return nil, fmt.Errorf("message %d: it says nothing", i)
			}
			if len(m.Refusal) > 0 {
				said = append(said, Said{Role: m.Role, Kind: "opaque", Text: string(m.Refusal)})
			}
		default:
			return nil, fmt.Errorf("message %d: role %q", i, m.Role)
		}
		out = append(out, said...)
		for _, c := range m.ToolCalls {
			if m.Role != "assistant" || c.Type != "function" || c.ID == "" || longest > 0 && len(c.ID) > longest || !object(json.RawMessage(c.Function.Arguments)) {
				return nil, fmt.Errorf("message %d: the call %+v", i, c)
			}
			if err := errors.Join(named(c.Function.Name), p.call(c.ID)); err != nil {
				return nil, err
			}
			out = append(out, Said{Role: m.Role, Kind: "call", ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
		}
	}
	return out, p.closed()
}

// readResponses knows: an output for each call before the user speaks, ids of at most 64 bytes, and that reasoning leads to an item of the
// model's.
func readResponses(body []byte) (out []Said, err error) {
	var req struct{ Input []json.RawMessage }
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	var p pairs
	thought := false
	for i, raw := range req.Input {
		var it struct {
			Type, Role, Name, Arguments string
			CallID                      string `json:"call_id"`
			Encrypted                   string `json:"encrypted_content"`
			Summary                     []struct{ Text string }
			Content, Output             json.RawMessage
		}
		if err := json.Unmarshal(raw, &it); err != nil && (it.Type == "message" || it.Type == "function_call" || it.Type == "function_call_output" || it.Type == "reasoning") {
			return nil, fmt.Errorf("item %d: %w in %s", i, err, raw)
		}
		if len(raw) == 0 || raw[0] != '{' {
			return nil, fmt.Errorf("item %d is %s", i, raw)
		}
		if (it.Type == "message" && it.Role == "user" || it.Type == "function_call_output") && thought {
			return nil, fmt.Errorf("item %d: reasoning was provided without its required following item", i)
		}
		thought = it.Type == "reasoning"
		switch it.Type {
		case "message":
			if it.Role == "user" {
				if err := p.closed(); err != nil {
					return nil, err
				}
			} else if it.Role != "assistant" {
				out = append(out, Said{Role: "assistant", Kind: "opaque", Text: string(raw)})
				continue
			}
			said, err := contents(it.Role, it.Content)
			if err != nil || len(said) == 0 {
				return nil, fmt.Errorf("item %d: %s %w", i, raw, err)
			}
			out = append(out, said...)
		case "reasoning":
			s := Said{Role: "assistant", Kind: "reasoning", Sign: it.Encrypted}
			for _, part := range it.Summary {
				s.Text += part.Text
			}
			if it.Encrypted == "" && len(it.Content) == 0 {
				return nil, fmt.Errorf("item %d: reasoning that would be looked up: %s", i, raw)
			}
			out = append(out, s)
		case "function_call":
			if !word.MatchString(it.CallID) || len(it.CallID) > 64 {
				return nil, fmt.Errorf("item %d: the id %q of a call", i, it.CallID)
			}
			if err := errors.Join(named(it.Name), p.call(it.CallID)); err != nil {
				return nil, err
			}
			out = append(out, Said{Role: "assistant", Kind: "call", ID: it.CallID, Name: it.Name, Args: it.Arguments})
		case "function_call_output":
			if err := p.result(it.CallID); err != nil {
				return nil, err
			}
			said, err := contents("user", it.Output)
			if err != nil {
				return nil, err
			}
			r := Said{Role: "user", Kind: "result", ID: it.CallID}
			for _, s := range said {
				if s.Kind == "text" {
					r.Text += s.Text
				}
			}
			out = append(append(out, r), slices.DeleteFunc(said, func(s Said) bool { return s.Kind == "text" })...)
		default:
			out = append(out, Said{Role: "assistant", Kind: "opaque", Text: string(raw)})
		}
	}
	if thought {
		return nil, errors.New("reasoning at the end")
	}
	return out, p.closed()
}
