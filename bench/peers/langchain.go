package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// langchain is its OpenAI client, with a loop by hand around GenerateContent: its agents have none that streams and calls a model's own tools.
type langchain struct {
	t     *load.Task
	model *openai.LLM
	tools []llms.Tool
}

func newLangchain(t *load.Task) (load.System, error) {
	model, err := openai.New(openai.WithToken("none"), openai.WithBaseURL(t.Upstream+"/v1"), openai.WithModel(modelName))
	if err != nil {
		return nil, err
	}
	echo := llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: load.Tool, Description: load.About, Parameters: json.RawMessage(load.Schema)}}
	return &langchain{t, model, []llms.Tool{echo}}, nil
}

// Open implements [load.System].
func (l *langchain) Open(int) load.Session { return &langchainSession{l: l} }

// Close implements [load.System].
func (l *langchain) Close() error { return nil }

type langchainSession struct {
	l        *langchain
	messages []llms.MessageContent
}

// Ask implements [load.Session].
func (s *langchainSession) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	s.messages = append(s.messages, llms.TextParts(llms.ChatMessageTypeSystem, load.Instructions), llms.TextParts(llms.ChatMessageTypeHuman, prompt))
	hear := func(_ context.Context, chunk []byte) error {
		if len(chunk) > 0 && !bytes.HasPrefix(chunk, []byte(`[{`)) { // pieces of calls come the same way, as JSON
			said(string(chunk))
		}
		return nil
	}
	for {
		reply, err := s.l.model.GenerateContent(ctx, s.messages, llms.WithTools(s.l.tools), llms.WithMaxTokens(maxTokens), llms.WithStreamingFunc(hear))
		if err != nil {
			return a, err
		}
		choice := reply.Choices[0]
		said := llms.TextParts(llms.ChatMessageTypeAI, choice.Content)
		for _, c := range choice.ToolCalls {
			said.Parts = append(said.Parts, c)
		}
		s.messages = append(s.messages, said)
		if len(choice.ToolCalls) == 0 {
			if choice.StopReason != "stop" {
				return a, fmt.Errorf("it stopped for %q", choice.StopReason)
			}
			a.Text = choice.Content
			return a, nil
		}
		for _, c := range choice.ToolCalls {
			result, err := call(s.l.t, []byte(c.FunctionCall.Arguments))
			if err != nil {
				return a, err
			}
			a.Calls++
			s.messages = append(s.messages, llms.MessageContent{
				Role:  llms.ChatMessageTypeTool,
				Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: c.ID, Name: c.FunctionCall.Name, Content: result}},
			})
		}
	}
}
