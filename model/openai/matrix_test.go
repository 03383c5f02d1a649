package openai_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/openai"
)

func TestChatMatrix(t *testing.T) {
	providertest.Run(t, providertest.Provider{
		Name: "openai",
		New:  func(opts ...model.Option) model.Model { return openai.New("gpt-5", opts...) },
		Read: readChat,
		Dir:  "testdata/chat",
		Lacks: map[string]string{
			"top_k":          "Chat Completions has none",
			"is_error":       "a tool message has no mark for failure",
			"pause":          "no tools of the provider's own",
			"unknown_block":  "a message has members, not blocks",
			"provider_tools": "Chat Completions has none but for models that are gone",
			"count":          "Chat Completions has none",
			"quote":          "a page's words are not told",
			"file_id_image":  "only PDF is sent by ID",
		},
	})
}

func TestResponsesMatrix(t *testing.T) {
	providertest.Run(t, providertest.Provider{
		Name: "openai-responses",
		New:  func(opts ...model.Option) model.Model { return openai.NewResponses("gpt-5", opts...) },
		Read: readResponses,
		Dir:  "testdata/responses",
		Lacks: map[string]string{
			"quote":             "a page's words are not told",
			"top_k":             "the Responses API has none",
			"seed":              "the Responses API has none",
			"frequency_penalty": "the Responses API has none", "presence_penalty": "the Responses API has none",
			"stop":          "the Responses API has none",
			"stop_sequence": "the Responses API has none",
			"is_error":      "an output has no mark for failure",
			"pause":         "a response is never paused",
		},
	})
}

// common has the members that both protocols have in a request.
type common struct {
	Model       string
	Stream      bool
	Temperature *float64
	TopP        *float64        `json:"top_p"`
	Frequency   *float64        `json:"frequency_penalty"`
	Presence    *float64        `json:"presence_penalty"`
	ToolChoice  json.RawMessage `json:"tool_choice"`
	Effort      string          `json:"reasoning_effort"`
	Reasoning   struct{ Effort string }
}

func (c common) seen(t *testing.T, h http.Header, body []byte) providertest.Seen {
	t.Helper()
	decodeInto(t, body, &c)
	s := providertest.Seen{
		Model: c.Model, Stream: c.Stream, Temperature: c.Temperature, TopP: c.TopP, Frequency: c.Frequency, Presence: c.Presence,
		Key:       strings.TrimPrefix(h.Get("Authorization"), "Bearer "),
		Reasoning: c.Effort + c.Reasoning.Effort,
	}
	var named struct {
		Name     string
		Function struct{ Name string }
	}
	switch {
	case len(c.ToolChoice) == 0:
	case c.ToolChoice[0] == '"':
		decodeInto(t, c.ToolChoice, &s.ToolChoice)
	default:
		decodeInto(t, c.ToolChoice, &named)
		s.ToolChoice = named.Name + named.Function.Name
	}
	return s
}

func decodeInto(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

type chatMessage struct {
	Role             string
	Content          json.RawMessage
	ToolCallID       string `json:"tool_call_id"`
	Refusal          string
	ReasoningDetails []struct{ Text, Signature string } `json:"reasoning_details"`
	ToolCalls        []struct {
		ID, Type string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func readChat(t *testing.T, path string, h http.Header, body []byte) providertest.Seen {
	t.Helper()
	if path != "/chat/completions" {
		t.Errorf("path %q", path)
	}
	var r struct {
		MaxTokens      int `json:"max_tokens"`
		Seed           *int64
		Stop           []string
		ResponseFormat *struct {
			JSONSchema struct {
				Name   string
				Schema json.RawMessage
			} `json:"json_schema"`
		} `json:"response_format"`
		Tools []struct {
			Type     string
			Function struct {
				Name       string
				Parameters map[string]any
			}
		}
		Messages []chatMessage
	}
	decodeInto(t, body, &r)
	s := common{}.seen(t, h, body)
	s.MaxTokens, s.Seed, s.Stop = r.MaxTokens, r.Seed, r.Stop
	s.Output = r.ResponseFormat != nil && r.ResponseFormat.JSONSchema.Name != "" && r.ResponseFormat.JSONSchema.Schema != nil
	for _, tool := range r.Tools {
		if tool.Type != "function" || tool.Function.Parameters == nil {
			t.Errorf("tool %+v", tool)
		}
		s.Tools = append(s.Tools, tool.Function.Name)
	}
	for _, m := range r.Messages {
		if m.Role == "system" {
			decodeInto(t, m.Content, &s.System)
			continue
		}
		s.Messages = append(s.Messages, m.seen(t))
	}
	return s
}

func (m chatMessage) seen(t *testing.T) providertest.SeenMessage {
	t.Helper()
	var parts []providertest.SeenPart
	for _, d := range m.ReasoningDetails {
		parts = append(parts, providertest.SeenPart{Kind: "reasoning", Text: d.Text, Signature: d.Signature})
	}
	var text string
	switch {
	case m.Role == "tool":
		decodeInto(t, m.Content, &text)
		parts = append(parts, providertest.SeenPart{Kind: "tool_result", ID: m.ToolCallID, Text: text})
	case m.Content == nil:
		t.Error("a message without content")
	case m.Content[0] == '"':
		decodeInto(t, m.Content, &text)
		parts = append(parts, providertest.SeenPart{Kind: "text", Text: text})
	case m.Content[0] == '[':
		var content []contentPart
		decodeInto(t, m.Content, &content)
		for _, c := range content {
			parts = append(parts, c.seen(t))
		}
	case len(m.ToolCalls) == 0 && m.Refusal == "":
		t.Error("a message that says nothing")
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, providertest.SeenPart{Kind: "tool_call", ID: c.ID, Name: c.Function.Name, Input: c.Function.Arguments})
	}
	return providertest.SeenMessage{Role: m.Role, Parts: parts}
}

// contentPart is a piece of content in either protocol.
type contentPart struct {
	Type, Text, Refusal string
	ImageURL            json.RawMessage `json:"image_url"`
	File                struct {
		Filename string
		FileData string `json:"file_data"`
		FileID   string `json:"file_id"`
	}
	FileID   string `json:"file_id"`
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
}

func (c contentPart) seen(t *testing.T) providertest.SeenPart {
	t.Helper()
	if id := c.FileID + c.File.FileID; id != "" {
		if (c.Type == "file") != (c.FileID == "") || c.FileData+c.FileURL+c.File.FileData+c.File.Filename != "" || c.ImageURL != nil {
			t.Errorf("a file by ID and otherwise, or where it has no place: %+v", c)
		}
		return providertest.SeenPart{Kind: "file", Data: id}
	}
	switch c.Type {
	case "text", "input_text", "output_text":
		return providertest.SeenPart{Kind: "text", Text: c.Text}
	case "image_url":
		var image struct{ URL string }
		decodeInto(t, c.ImageURL, &image)
		return seenFile(t, image.URL)
	case "input_image":
		var url string
		decodeInto(t, c.ImageURL, &url)
		return seenFile(t, url)
	case "file":
		if c.File.Filename == "" {
			t.Error("a file without a name")
		}
		return seenFile(t, c.File.FileData)
	case "input_file":
		return seenFile(t, c.FileData+c.FileURL)
	}
	t.Errorf("content of type %q", c.Type)
	return providertest.SeenPart{}
}

func seenFile(t *testing.T, url string) providertest.SeenPart {
	t.Helper()
	rest, inline := strings.CutPrefix(url, "data:")
	if !inline {
		return providertest.SeenPart{Kind: "file", Data: url}
	}
	kind, text, _ := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Error(err)
	}
	return providertest.SeenPart{Kind: "file", MIME: kind, Data: string(data)}
}

func readResponses(t *testing.T, path string, h http.Header, body []byte) providertest.Seen {
	t.Helper()
	if path != "/responses" && path != "/responses/input_tokens" {
		t.Errorf("path %q", path)
	}
	var r struct {
		Store        *bool
		Include      []string
		Instructions string
		MaxTokens    int `json:"max_output_tokens"`
		Text         struct {
			Format struct {
				Name   string
				Schema json.RawMessage
			}
		}
		Tools []map[string]json.RawMessage
		Input []json.RawMessage
	}
	decodeInto(t, body, &r)
	if path == "/responses" && (r.Store == nil || *r.Store) {
		t.Errorf("not stateless: %s", body)
	}
	s := common{}.seen(t, h, body)
	s.System, s.MaxTokens, s.Output = r.Instructions, r.MaxTokens, r.Text.Format.Name != "" && r.Text.Format.Schema != nil
	include := []string{"reasoning.encrypted_content"} // without it the reasoning could not be sent back
	for _, tool := range r.Tools {
		include = append(include, seenTool(t, tool, &s)...)
	}
	if got := slices.Sorted(slices.Values(r.Include)); path == "/responses" && !slices.Equal(got, slices.Sorted(slices.Values(include))) {
		t.Errorf("it asks for %q, want %q", got, include)
	}
	for _, raw := range r.Input {
		s.Messages = append(s.Messages, seenItem(t, raw))
	}
	return s
}

// seenTool reads a tool of ours, or one of the provider's, whose results have to be asked for: by what it gives.
func seenTool(t *testing.T, tool map[string]json.RawMessage, s *providertest.Seen) (include []string) {
	t.Helper()
	var kind, name string
	decodeInto(t, tool["type"], &kind)
	if kind == "function" {
		decodeInto(t, tool["name"], &name)
		if tool["parameters"] == nil {
			t.Errorf("tool %s has no parameters", name)
		}
		s.Tools = append(s.Tools, name)
		return nil
	}
	one := model.ProviderTool{Name: kind}
	if what := map[string]string{"web_search": "web_search_call.action.sources", "code_interpreter": "code_interpreter_call.outputs", "file_search": "file_search_call.results"}[kind]; what != "" {
		include = append(include, what)
	}
	if kind == "code_interpreter" {
		if one.Name = model.CodeExecution; string(tool["container"]) != `{"type":"auto"}` {
			t.Errorf("container %s", tool["container"])
		}
		delete(tool, "container")
	}
	delete(tool, "type")
	if len(tool) > 0 {
		one.Options, _ = json.Marshal(tool)
	}
	s.ProviderTools = append(s.ProviderTools, one)
	return include
}

func seenItem(t *testing.T, raw json.RawMessage) providertest.SeenMessage {
	t.Helper()
	var i struct {
		Type, Role, Name, Arguments string
		CallID                      string `json:"call_id"`
		EncryptedContent            string `json:"encrypted_content"`
		Summary                     []struct{ Text string }
		Content, Output             json.RawMessage
	}
	decodeInto(t, raw, &i)
	content := func(raw json.RawMessage) (parts []providertest.SeenPart) {
		if raw[0] == '"' {
			var text string
			decodeInto(t, raw, &text)
			return []providertest.SeenPart{{Kind: "text", Text: text}}
		}
		var list []contentPart
		decodeInto(t, raw, &list)
		for _, c := range list {
			parts = append(parts, c.seen(t))
		}
		return parts
	}
	switch i.Type {
	case "message":
		return providertest.SeenMessage{Role: i.Role, Parts: content(i.Content)}
	case "reasoning":
		part := providertest.SeenPart{Kind: "reasoning", Signature: i.EncryptedContent}
		for _, s := range i.Summary {
			part.Text += s.Text
		}
		return providertest.SeenMessage{Role: "assistant", Parts: []providertest.SeenPart{part}}
	case "function_call":
		return providertest.SeenMessage{Role: "assistant", Parts: []providertest.SeenPart{{Kind: "tool_call", ID: i.CallID, Name: i.Name, Input: i.Arguments}}}
	case "function_call_output":
		result := providertest.SeenPart{Kind: "tool_result", ID: i.CallID}
		var files []providertest.SeenPart
		for _, p := range content(i.Output) {
			if p.Kind == "text" {
				result.Text += p.Text
			} else {
				files = append(files, p)
			}
		}
		return providertest.SeenMessage{Role: "tool", Parts: append([]providertest.SeenPart{result}, files...)}
	}
	return providertest.SeenMessage{Role: "assistant", Parts: []providertest.SeenPart{{Kind: "opaque", Data: string(raw)}}}
}
