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
	FileID    string `json:"file_id"`
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
		Tools    []json.RawMessage `json:"tools"`
		Thinking json.RawMessage   `json:"thinking"`
		Choice   *struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tool_choice"`
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"top_p"`
		TopK        *int     `json:"top_k"`
		Stop        []string `json:"stop_sequences"`
		Output      struct {
			Effort string `json:"effort"`
			Format *struct {
				Type   string         `json:"type"`
				Schema map[string]any `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	counts := path == "/v1/messages/count_tokens"
	if path != "/v1/messages" && !counts || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Content-Type") != "application/json" || (req.Max <= 0) != counts {
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
		var blocks []struct{ Type, Text string }
		if err := json.Unmarshal(req.System, &blocks); err != nil || len(blocks) != 1 || blocks[0].Type != "text" {
			t.Errorf("system: %v in %s", err, req.System)
			return seen
		}
		seen.System = blocks[0].Text
	}
	if req.Thinking != nil {
		seen.Reasoning = string(req.Thinking) + req.Output.Effort
	}
	for _, raw := range req.Tools {
		readTool(t, raw, &seen)
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

func readTool(t *testing.T, raw []byte, seen *providertest.Seen) {
	t.Helper()
	tool := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &tool); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	var name, kind string
	if err := json.Unmarshal(tool["name"], &name); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if tool["type"] == nil {
		var schema struct{ Type string }
		if err := json.Unmarshal(tool["input_schema"], &schema); err != nil || schema.Type != "object" {
			t.Errorf("tool %s has the schema %s", name, tool["input_schema"])
		}
		seen.Tools = append(seen.Tools, name)
		return
	}
	if err := json.Unmarshal(tool["type"], &kind); err != nil || !strings.HasPrefix(kind, name+"_20") {
		t.Errorf("tool %s is of type %s, which the API doesn't know", name, tool["type"])
	}
	delete(tool, "name")
	delete(tool, "type")
	if string(tool["allowed_callers"]) == `["direct"]` { // which is our default
		delete(tool, "allowed_callers")
	}
	if string(tool["cache_control"]) == `{"type":"ephemeral"}` { // a mark of ours
		delete(tool, "cache_control")
	}
	own := model.ProviderTool{Name: name}
	if len(tool) > 0 {
		own.Options, _ = json.Marshal(tool)
	}
	seen.ProviderTools = append(seen.ProviderTools, own)
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
	case "file":
		p.Data = s.FileID
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
