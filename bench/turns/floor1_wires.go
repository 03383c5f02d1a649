package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// f1over is f1 over another provider's wire: the same loop, with that one's structs.
type f1over struct {
	t    *load.Task
	path string
	wire func() f1wire
}

// f1wire is a session's conversation as a provider's structs.
type f1wire interface {
	user(prompt string)
	request() any                                    // the whole of it, for encoding/json
	event(data []byte, said func(string)) error      // of the reply that comes
	reply() (text string, calls []f1call, err error) // what came, which is appended
	results(calls []f1call, values []string)         // which are appended
}

type f1call struct{ id, name, input string }

func newF1OpenAI(t *load.Task) (load.System, error) {
	return f1over{t, "/v1/chat/completions", func() f1wire {
		return &chatWire{messages: []chatMessage{{Role: "system", Content: instructions}}}
	}}, nil
}

func newF1Responses(t *load.Task) (load.System, error) {
	return f1over{t, "/v1/responses", func() f1wire { return new(responsesWire) }}, nil
}

func newF1Gemini(t *load.Task) (load.System, error) {
	return f1over{t, "/v1beta/models/bench:streamGenerateContent?alt=sse", func() f1wire { return new(geminiWire) }}, nil
}

func (f f1over) Open(int) load.Session { return &f1overSession{f, f.wire()} }
func (f f1over) Close() error          { return nil }

type f1overSession struct {
	f f1over
	f1wire
}

// Ask implements [load.Session].
func (s *f1overSession) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	s.user(prompt)
	for {
		text, calls, err := s.turn(ctx, said)
		if err != nil {
			return a, err
		}
		if len(calls) == 0 {
			a.Text = text
			return a, nil
		}
		var values []string
		for _, c := range calls {
			var in struct {
				Value string `json:"value"`
			}
			if err := json.Unmarshal([]byte(c.input), &in); err != nil {
				return a, err
			}
			a.Calls++
			values = append(values, s.f.t.Call(in.Value))
		}
		s.results(calls, values)
	}
}

func (s *f1overSession) turn(ctx context.Context, said func(string)) (text string, calls []f1call, err error) {
	body, err := json.Marshal(s.request())
	if err != nil {
		return "", nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.f.t.Upstream+s.f.path, bytes.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	resp, err := send(req)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if err := lines(resp.Body, func(data []byte) error { return s.event(data, said) }); err != nil {
		return "", nil, err
	}
	return s.reply()
}

var errBrokeOff = errors.New("the stream broke off")

// OpenAI's Chat Completions.
type (
	chatRequest struct {
		Model         string        `json:"model"`
		Stream        bool          `json:"stream"`
		StreamOptions chatOptions   `json:"stream_options"`
		Tools         []chatTool    `json:"tools"`
		Messages      []chatMessage `json:"messages"`
	}
	chatOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatTool struct {
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
	}
	chatFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	chatMessage struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	chatCall struct {
		Index    int    `json:"index"`
		ID       string `json:"id,omitempty"`
		Type     string `json:"type,omitempty"`
		Function struct {
			Name      string `json:"name,omitempty"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	chatChunk struct {
		Choices []struct {
			Delta struct {
				Content   string     `json:"content"`
				ToolCalls []chatCall `json:"tool_calls"`
			} `json:"delta"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			CompletionTokens int `json:"completion_tokens"`
		} `json:"usage"`
	}
)

var chatTools = []chatTool{{"function", chatFunction{load.Tool, about, json.RawMessage(schema)}}}

type chatWire struct {
	messages []chatMessage
	text     strings.Builder
	inputs   strings.Builder // of the last call
	calls    []chatCall
	stop     string
}

func (c *chatWire) user(prompt string) {
	c.messages = append(c.messages, chatMessage{Role: "user", Content: prompt})
}

func (c *chatWire) request() any {
	return chatRequest{"bench", true, chatOptions{true}, chatTools, c.messages}
}

func (c *chatWire) event(data []byte, said func(string)) error {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return nil
	}
	var e chatChunk
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	for _, choice := range e.Choices {
		if text := choice.Delta.Content; text != "" {
			c.text.WriteString(text)
			said(text)
		}
		for _, call := range choice.Delta.ToolCalls {
			if call.Index == len(c.calls) {
				c.calls = append(c.calls, call)
				c.inputs.Reset()
			}
			c.inputs.WriteString(call.Function.Arguments)
			c.calls[call.Index].Function.Arguments = c.inputs.String()
		}
		if choice.FinishReason != "" {
			c.stop = choice.FinishReason
		}
	}
	return nil
}

func (c *chatWire) reply() (text string, calls []f1call, err error) {
	if c.stop == "" {
		return "", nil, errBrokeOff
	}
	text = c.text.String()
	for _, call := range c.calls {
		calls = append(calls, f1call{call.ID, call.Function.Name, call.Function.Arguments})
	}
	c.messages = append(c.messages, chatMessage{Role: "assistant", Content: text, ToolCalls: c.calls})
	c.text.Reset()
	c.calls, c.stop = nil, ""
	return text, calls, nil
}

func (c *chatWire) results(calls []f1call, values []string) {
	for i, call := range calls {
		c.messages = append(c.messages, chatMessage{Role: "tool", ToolCallID: call.id, Content: values[i]})
	}
}

// OpenAI's Responses.
type (
	responsesRequest struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Store        bool            `json:"store"`
		Instructions string          `json:"instructions"`
		Tools        []responsesTool `json:"tools"`
		Input        []responsesItem `json:"input"`
	}
	responsesTool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	responsesItem struct {
		Type      string `json:"type"`
		Role      string `json:"role,omitempty"`
		Content   string `json:"content,omitempty"`
		CallID    string `json:"call_id,omitempty"`
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments,omitempty"`
		Output    string `json:"output,omitempty"`
	}
	responsesStreamed struct {
		Type  string `json:"type"`
		Delta string `json:"delta"`
		Item  struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"item"`
		Response struct {
			Usage struct {
				OutputTokens int `json:"output_tokens"`
			} `json:"usage"`
		} `json:"response"`
	}
)

var responsesTools = []responsesTool{{"function", load.Tool, about, json.RawMessage(schema)}}

type responsesWire struct {
	input []responsesItem
	text  strings.Builder
	calls []f1call
	done  bool
}

func (r *responsesWire) user(prompt string) {
	r.input = append(r.input, responsesItem{Type: "message", Role: "user", Content: prompt})
}

func (r *responsesWire) request() any {
	return responsesRequest{"bench", true, false, instructions, responsesTools, r.input}
}

func (r *responsesWire) event(data []byte, said func(string)) error {
	var e responsesStreamed
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "response.output_text.delta":
		r.text.WriteString(e.Delta)
		said(e.Delta)
	case "response.output_item.done":
		if e.Item.Type == "function_call" {
			r.calls = append(r.calls, f1call{e.Item.CallID, e.Item.Name, e.Item.Arguments})
		}
	case "response.completed":
		r.done = true
	}
	return nil
}

func (r *responsesWire) reply() (text string, calls []f1call, err error) {
	if !r.done {
		return "", nil, errBrokeOff
	}
	text, calls = r.text.String(), r.calls
	r.input = append(r.input, responsesItem{Type: "message", Role: "assistant", Content: text})
	for _, c := range calls {
		r.input = append(r.input, responsesItem{Type: "function_call", CallID: c.id, Name: c.name, Arguments: c.input})
	}
	r.text.Reset()
	r.calls, r.done = nil, false
	return text, calls, nil
}

func (r *responsesWire) results(calls []f1call, values []string) {
	for i, c := range calls {
		r.input = append(r.input, responsesItem{Type: "function_call_output", CallID: c.id, Output: values[i]})
	}
}

// Gemini's streamGenerateContent.
type (
	geminiRequest struct {
		SystemInstruction geminiContent   `json:"systemInstruction"`
		Tools             []geminiTool    `json:"tools"`
		Contents          []geminiContent `json:"contents"`
	}
	geminiTool struct {
		FunctionDeclarations []geminiFunction `json:"functionDeclarations"`
	}
	geminiFunction struct {
		Name                 string          `json:"name"`
		Description          string          `json:"description"`
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
	}
	geminiContent struct {
		Role  string       `json:"role,omitempty"`
		Parts []geminiPart `json:"parts"`
	}
	geminiPart struct {
		Text             string          `json:"text,omitempty"`
		FunctionCall     *geminiCalled   `json:"functionCall,omitempty"`
		FunctionResponse *geminiResponse `json:"functionResponse,omitempty"`
	}
	geminiCalled struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	geminiResponse struct {
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
	geminiChunk struct {
		Candidates []struct {
			Content      geminiContent `json:"content"`
			FinishReason string        `json:"finishReason"`
		} `json:"candidates"`
		UsageMetadata struct {
			CandidatesTokenCount int `json:"candidatesTokenCount"`
		} `json:"usageMetadata"`
	}
)

var (
	geminiSystem = geminiContent{Parts: []geminiPart{{Text: instructions}}}
	geminiTools  = []geminiTool{{[]geminiFunction{{load.Tool, about, json.RawMessage(schema)}}}}
)

type geminiWire struct {
	contents []geminiContent
	text     strings.Builder
	calls    []geminiPart
	done     bool
}

func (g *geminiWire) user(prompt string) {
	g.contents = append(g.contents, geminiContent{"user", []geminiPart{{Text: prompt}}})
}

func (g *geminiWire) request() any { return geminiRequest{geminiSystem, geminiTools, g.contents} }

func (g *geminiWire) event(data []byte, said func(string)) error {
	var e geminiChunk
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	for _, c := range e.Candidates {
		for _, p := range c.Content.Parts {
			if p.FunctionCall != nil {
				g.calls = append(g.calls, p)
			}
			if p.Text != "" {
				g.text.WriteString(p.Text)
				said(p.Text)
			}
		}
		g.done = g.done || c.FinishReason != ""
	}
	return nil
}

func (g *geminiWire) reply() (text string, calls []f1call, err error) {
	if !g.done {
		return "", nil, errBrokeOff
	}
	text = g.text.String()
	for i, p := range g.calls { // which have no ids on this wire
		calls = append(calls, f1call{strconv.Itoa(i), p.FunctionCall.Name, string(p.FunctionCall.Args)})
	}
	g.contents = append(g.contents, geminiContent{"model", append([]geminiPart{{Text: text}}, g.calls...)})
	g.text.Reset()
	g.calls, g.done = nil, false
	return text, calls, nil
}

func (g *geminiWire) results(calls []f1call, values []string) {
	var parts []geminiPart
	for i, c := range calls {
		parts = append(parts, geminiPart{FunctionResponse: &geminiResponse{c.name, map[string]string{"output": values[i]}}})
	}
	g.contents = append(g.contents, geminiContent{"user", parts})
}
