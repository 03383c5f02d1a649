package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/shared"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// openaiSDK is openai-go with its types, over Chat Completions.
type openaiSDK struct {
	t     *load.Task
	api   sdk.Client
	tools []sdk.ChatCompletionToolUnionParam
	read  openaiReader
}

// openaiReader makes a message of a stream.
type openaiReader func(stream *ssestream.Stream[sdk.ChatCompletionChunk], said func(string)) (reply sdk.ChatCompletionAssistantMessageParam, stop string, err error)

func newOpenAI(read openaiReader) func(*load.Task) (load.System, error) {
	return func(t *load.Task) (load.System, error) {
		var schema shared.FunctionParameters
		if err := json.Unmarshal([]byte(load.Schema), &schema); err != nil {
			return nil, err
		}
		echo := sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: load.Tool, Description: sdk.String(load.About), Parameters: schema})
		api := sdk.NewClient(option.WithHTTPClient(client), option.WithBaseURL(t.Upstream+"/v1"), option.WithAPIKey("none"))
		return &openaiSDK{t, api, []sdk.ChatCompletionToolUnionParam{echo}, read}, nil
	}
}

// Open implements [load.System].
func (o *openaiSDK) Open(int) load.Session { return &openaiSession{o: o} }

// Close implements [load.System].
func (o *openaiSDK) Close() error { return nil }

type openaiSession struct {
	o        *openaiSDK
	messages []sdk.ChatCompletionMessageParamUnion
}

// Ask implements [load.Session].
func (s *openaiSession) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	s.messages = append(s.messages, sdk.SystemMessage(load.Instructions), sdk.UserMessage(prompt))
	for {
		stream := s.o.api.Chat.Completions.NewStreaming(ctx, sdk.ChatCompletionNewParams{
			Model: modelName, MaxCompletionTokens: sdk.Int(maxTokens), Tools: s.o.tools, Messages: s.messages,
			StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
		})
		reply, stop, err := s.o.read(stream, said)
		if err != nil {
			return a, err
		}
		s.messages = append(s.messages, sdk.ChatCompletionMessageParamUnion{OfAssistant: &reply})
		switch stop {
		case "stop":
			a.Text = reply.Content.OfString.Value
			return a, nil
		case "tool_calls":
		default:
			return a, fmt.Errorf("it stopped for %q", stop)
		}
		for _, c := range reply.ToolCalls {
			result, err := call(s.o.t, []byte(c.OfFunction.Function.Arguments))
			if err != nil {
				return a, err
			}
			a.Calls++
			s.messages = append(s.messages, sdk.ToolMessage(result, c.OfFunction.ID))
		}
	}
}

// openaiByHand takes the fields of chunks as they are.
func openaiByHand(stream *ssestream.Stream[sdk.ChatCompletionChunk], said func(string)) (reply sdk.ChatCompletionAssistantMessageParam, stop string, err error) {
	var text strings.Builder
	var calls []*strings.Builder
	for stream.Next() {
		chunk := stream.Current()
		if len(chunk.Choices) == 0 {
			continue
		}
		c := chunk.Choices[0]
		if c.Delta.Content != "" {
			text.WriteString(c.Delta.Content)
			said(c.Delta.Content)
		}
		for _, d := range c.Delta.ToolCalls {
			if int(d.Index) == len(calls) {
				f := sdk.ChatCompletionMessageFunctionToolCallParam{ID: d.ID}
				f.Function.Name = d.Function.Name
				reply.ToolCalls = append(reply.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &f})
				calls = append(calls, &strings.Builder{})
			}
			_, _ = calls[d.Index].WriteString(d.Function.Arguments)
		}
		if c.FinishReason != "" {
			stop = c.FinishReason
		}
	}
	reply.Content.OfString = sdk.String(text.String())
	for i, arguments := range calls {
		reply.ToolCalls[i].OfFunction.Function.Arguments = arguments.String()
	}
	return reply, stop, stream.Err()
}

// openaiAccumulated leaves that to the SDK.
func openaiAccumulated(stream *ssestream.Stream[sdk.ChatCompletionChunk], said func(string)) (reply sdk.ChatCompletionAssistantMessageParam, stop string, err error) {
	var all sdk.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			return reply, "", errors.New("the SDK can't take a chunk")
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			said(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return reply, "", err
	}
	if len(all.Choices) == 0 {
		return reply, "", errors.New("nothing was answered")
	}
	return all.Choices[0].Message.ToAssistantMessageParam(), all.Choices[0].FinishReason, nil
}
