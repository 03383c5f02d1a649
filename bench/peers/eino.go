package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// eino is its ReAct agent, compiled once, over its OpenAI component. Only the text of the last turn reaches who calls Stream.
type eino struct{ agent *react.Agent }

// callsKey is of the counter in a context.
type callsKey struct{}

type input struct {
	Value string `json:"value" jsonschema:"required"`
}

func newEino(t *load.Task) (load.System, error) {
	ctx := context.Background()
	limit := maxTokens
	model, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: "none", BaseURL: t.Upstream + "/v1", Model: modelName, MaxTokens: &limit})
	if err != nil {
		return nil, err
	}
	echo, err := utils.InferTool(load.Tool, load.About, func(ctx context.Context, in input) (string, error) {
		ctx.Value(callsKey{}).(*atomic.Int64).Add(1)
		return t.Call(in.Value), nil
	})
	if err != nil {
		return nil, err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel:      model,
		ToolsConfig:           compose.ToolsNodeConfig{Tools: []tool.BaseTool{echo}},
		MaxStep:               2*t.Workload.Asks.Turns + 10, // a call of the model is a step, and a call of tools
		StreamToolCallChecker: callsAfterText,
	})
	return eino{agent}, err
}

// callsAfterText looks for a call in all of a reply: eino's own checker takes one that begins with text for an answer, and this model speaks before it calls.
func callsAfterText(_ context.Context, reply *schema.StreamReader[*schema.Message]) (bool, error) {
	defer reply.Close()
	for {
		m, err := reply.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case len(m.ToolCalls) > 0:
			return true, nil
		}
	}
}

func (e eino) Open(int) load.Session { return &einoSession{agent: e.agent} }
func (e eino) Close() error          { return nil }

type einoSession struct {
	agent  *react.Agent
	answer string
}

// Ask implements [load.Session].
func (s *einoSession) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	var calls atomic.Int64
	reply, err := s.agent.Stream(context.WithValue(ctx, callsKey{}, &calls), []*schema.Message{schema.SystemMessage(load.Instructions), schema.UserMessage(prompt)})
	if err != nil {
		return a, err
	}
	defer reply.Close()
	var text strings.Builder
	for {
		m, err := reply.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
		if m.Content != "" {
			text.WriteString(m.Content)
			said(m.Content)
		}
	}
	s.answer = text.String()
	return load.Answer{Text: s.answer, Calls: int(calls.Load()), Last: true}, nil
}
