package wires

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// geminiName is the rule of the API's error text for names of functions.
var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// readGemini knows: a content has parts; a turn of calls is followed by one content with as many responses, in their order, under their
// names; no text is empty unless it is signed.
func readGemini(body []byte) (out []Said, err error) {
	var req struct {
		Contents []struct {
			Role  string
			Parts []json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	if len(req.Contents) == 0 {
		return nil, errors.New("no contents")
	}
	var calls []Said // of the last content
	for i, c := range req.Contents {
		role := map[string]string{"user": "user", "model": "assistant"}[c.Role]
		if role == "" || len(c.Parts) == 0 {
			return nil, fmt.Errorf("content %d: role %q, %d parts", i, c.Role, len(c.Parts))
		}
		var made []Said
		answered := 0
		for _, raw := range c.Parts {
			s, err := readGeminiPart(role, raw)
			if err != nil {
				return nil, fmt.Errorf("content %d: %w in %s", i, err, raw)
			}
			switch s.Kind {
			case "call":
				made = append(made, s)
			case "result":
				if answered >= len(calls) || calls[answered].ID != s.ID || calls[answered].Name != s.Name {
					return nil, fmt.Errorf("content %d: the response %+v to %+v", i, s, calls)
				}
				answered++
			}
			out = append(out, s)
		}
		if answered != len(calls) {
			return nil, fmt.Errorf("content %d: the number of function response parts is %d, of calls %d", i, answered, len(calls))
		}
		calls = made
	}
	if len(calls) > 0 {
		return nil, errors.New("calls without responses")
	}
	return out, nil
}

func readGeminiPart(role string, raw []byte) (Said, error) {
	var p struct {
		Text             *string
		Thought          bool
		ThoughtSignature string
		FunctionCall     *struct {
			ID, Name string
			Args     json.RawMessage
		}
		FunctionResponse *struct {
			ID, Name string
			Response struct{ Result, Error string }
		}
		InlineData *struct{ MIMEType, Data string }
		FileData   *struct{ MIMEType, FileURI string }
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		if object(raw) && role == "assistant" {
			return Said{Role: role, Kind: "opaque", Text: string(raw)}, nil // the model's own part goes back as it came
		}
		return Said{}, err
	}
	s := Said{Role: role, Sign: p.ThoughtSignature}
	switch {
	case p.FunctionCall != nil:
		f := p.FunctionCall
		s.Kind, s.ID, s.Name, s.Args = "call", f.ID, f.Name, string(f.Args)
		if !geminiName.MatchString(f.Name) || !object(f.Args) || role != "assistant" {
			return s, errors.New("a call")
		}
	case p.FunctionResponse != nil:
		f := p.FunctionResponse
		s.Kind, s.ID, s.Name, s.Text = "result", f.ID, f.Name, f.Response.Result+f.Response.Error
		if !geminiName.MatchString(f.Name) || role != "user" {
			return s, errors.New("a response")
		}
	case p.InlineData != nil:
		data, err := base64.StdEncoding.DecodeString(p.InlineData.Data)
		s.Kind, s.Text = "file", string(data)
		if (err != nil || p.InlineData.MIMEType == "") && role == "user" {
			return s, fmt.Errorf("inline data: %w", err)
		}
	case p.FileData != nil:
		s.Kind, s.Text = "file", p.FileData.FileURI
	case p.Text != nil && p.Thought:
		s.Kind, s.Text = "reasoning", *p.Text
	case p.Text != nil:
		s.Kind, s.Text = "text", *p.Text
		if s.Text == "" && s.Sign == "" {
			return s, errors.New("an empty text")
		}
	default:
		s.Kind, s.Text = "opaque", string(raw)
	}
	return s, nil
}
