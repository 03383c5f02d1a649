package anthropic_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

func TestMatrix(t *testing.T) {
	providertest.Run(t, providertest.Provider{
		Name: "anthropic",
		New:  func(opts ...model.Option) model.Model { return anthropic.New("claude-sonnet-4-5", opts...) },
		Read: readRequest,
		Dir:  "testdata",
		Lacks: map[string]string{
			"reasoning_level": "not built yet", "provider_tools": "not built yet", "citations": "not built yet", "upload": "not built yet", "count": "not built yet",
			"seed":              "the Messages API has none",
			"frequency_penalty": "the Messages API has none", "presence_penalty": "the Messages API has none",
			"filter": "the API's filter ends a reply as a refusal, or answers with an error",
		},
	})
}

// source is where the bytes of an image or document are.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// content is a block that may stand in a request.
type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    *source         `json:"source"`
}

// readRequest reads a request as the API would.
func readRequest(t *testing.T, path string, h http.Header, body []byte) providertest.Seen {
	t.Helper()
	var req struct {
		Model    string          `json:"model"`
		Max      int             `json:"max_tokens"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name   string         `json:"name"`
			Schema map[string]any `json:"input_schema"`
		} `json:"tools"`
		Choice *struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tool_choice"`
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"top_p"`
		TopK        *int     `json:"top_k"`
		Stop        []string `json:"stop_sequences"`
		Output      struct {
			Format *struct {
				Type   string         `json:"type"`
				Schema map[string]any `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if path != "/v1/messages" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Content-Type") != "application/json" || req.Max <= 0 {
		t.Errorf("path %s, max_tokens %d, headers %v", path, req.Max, h)
	}
	if marks := strings.Count(string(body), `"cache_control"`); marks > 4 {
		t.Errorf("%d cache marks", marks)
	}
	seen := providertest.Seen{
		Model: req.Model, Stream: req.Stream, MaxTokens: req.Max, Temperature: req.Temperature, TopP: req.TopP, TopK: req.TopK,
		Stop: req.Stop, Key: h.Get("X-Api-Key"), Output: req.Output.Format != nil && req.Output.Format.Type == "json_schema" && req.Output.Format.Schema["type"] == "object",
	}
	if req.System != nil {
		if err := json.Unmarshal(req.System, &seen.System); err != nil {
			t.Errorf("system: %v", err)
		}
	}
	for _, tool := range req.Tools {
		if tool.Schema["type"] != "object" {
			t.Errorf("tool %s has the schema %v", tool.Name, tool.Schema)
		}
		seen.Tools = append(seen.Tools, tool.Name)
	}
	if req.Choice != nil {
		seen.ToolChoice = map[string]string{"auto": "auto", "none": "none", "any": "required", "tool": req.Choice.Name}[req.Choice.Type]
	}
	for _, m := range req.Messages {
		sm := providertest.SeenMessage{Role: m.Role}
		if len(m.Content) == 0 {
			t.Error("a message without content")
		}
		for _, raw := range m.Content {
			sm.Parts = append(sm.Parts, readBlock(t, raw)...)
		}
		seen.Messages = append(seen.Messages, sm)
	}
	return seen
}

func readBlock(t *testing.T, raw []byte) []providertest.SeenPart {
	t.Helper()
	var b content
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			t.Errorf("the API refuses a blank text: %s", raw)
		}
		return []providertest.SeenPart{{Kind: "text", Text: b.Text}}
	case "thinking":
		if b.Signature == "" {
			t.Errorf("the API refuses a thought without a signature: %s", raw)
		}
		return []providertest.SeenPart{{Kind: "reasoning", Text: b.Thinking, Signature: b.Signature}}
	case "tool_use":
		if len(b.Input) == 0 || b.Input[0] != '{' {
			t.Errorf("the API wants an object as input: %s", raw)
		}
		return []providertest.SeenPart{{Kind: "tool_call", ID: b.ID, Name: b.Name, Input: string(b.Input)}}
	case "image", "document":
		return []providertest.SeenPart{readSource(t, b.Source)}
	case "tool_result":
		return readResult(t, b)
	}
	return []providertest.SeenPart{{Kind: "opaque", Data: string(raw)}}
}

func readResult(t *testing.T, b content) []providertest.SeenPart {
	t.Helper()
	result := providertest.SeenPart{Kind: "tool_result", ID: b.ToolUseID, IsError: b.IsError}
	if b.Content == nil || json.Unmarshal(b.Content, &result.Text) == nil {
		return []providertest.SeenPart{result}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(b.Content, &list); err != nil {
		t.Fatalf("%v in %s", err, b.Content)
	}
	parts := []providertest.SeenPart{result}
	for _, raw := range list {
		for _, p := range readBlock(t, raw) {
			if p.Kind == "text" {
				parts[0].Text += p.Text
				continue
			}
			parts = append(parts, p)
		}
	}
	return parts
}

func readSource(t *testing.T, s *source) providertest.SeenPart {
	t.Helper()
	p := providertest.SeenPart{Kind: "file", MIME: s.MediaType, Data: s.Data}
	switch s.Type {
	case "url":
		p.Data = s.URL
	case "base64":
		data, err := base64.StdEncoding.DecodeString(s.Data)
		if err != nil {
			t.Errorf("base64: %v", err)
		}
		p.Data = string(data)
	case "text":
	default:
		t.Errorf("a source of type %q", s.Type)
	}
	return p
}
