package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// claudeSDK is anthropic-sdk-go with its types: params that grow, and a stream of events.
type claudeSDK struct {
	t     *load.Task
	api   sdk.Client
	tools []sdk.ToolUnionParam
	read  claudeReader
}

// claudeReader makes a message of a stream.
type claudeReader func(stream *ssestream.Stream[sdk.MessageStreamEventUnion], said func(string)) (reply sdk.MessageParam, stop sdk.StopReason, err error)

func newClaude(read claudeReader) func(*load.Task) (load.System, error) {
	return func(t *load.Task) (load.System, error) {
		var schema sdk.ToolInputSchemaParam
		if err := json.Unmarshal([]byte(load.Schema), &schema); err != nil {
			return nil, err
		}
		echo := sdk.ToolParam{Name: load.Tool, Description: sdk.String(load.About), InputSchema: schema}
		api := sdk.NewClient(option.WithHTTPClient(client), option.WithBaseURL(t.Upstream), option.WithAPIKey("none"))
		return &claudeSDK{t, api, []sdk.ToolUnionParam{{OfTool: &echo}}, read}, nil
	}
}

// Open implements [load.System].
func (c *claudeSDK) Open(int) load.Session { return &claudeSession{c: c} }

// Close implements [load.System].
func (c *claudeSDK) Close() error { return nil }

type claudeSession struct {
	c        *claudeSDK
	messages []sdk.MessageParam
}

// Ask implements [load.Session].
func (s *claudeSession) Ask(ctx context.Context, prompt string, said func(string)) (a load.Answer, err error) {
	s.messages = append(s.messages, sdk.NewUserMessage(sdk.NewTextBlock(prompt)))
	for {
		stream := s.c.api.Messages.NewStreaming(ctx, sdk.MessageNewParams{
			Model: modelName, MaxTokens: maxTokens, System: []sdk.TextBlockParam{{Text: load.Instructions}}, Tools: s.c.tools, Messages: s.messages,
		})
		reply, stop, err := s.c.read(stream, said)
		if err != nil {
			return a, err
		}
		s.messages = append(s.messages, reply)
		switch stop {
		case sdk.StopReasonEndTurn:
			a.Text = reply.Content[0].OfText.Text
			return a, nil
		case sdk.StopReasonToolUse:
		default:
			return a, fmt.Errorf("it stopped for %q", stop)
		}
		var results []sdk.ContentBlockParamUnion
		for _, b := range reply.Content {
			if b.OfToolUse == nil {
				continue
			}
			result, err := call(s.c.t, b.OfToolUse.Input.(json.RawMessage))
			if err != nil {
				return a, err
			}
			a.Calls++
			results = append(results, sdk.NewToolResultBlock(b.OfToolUse.ID, result, false))
		}
		s.messages = append(s.messages, sdk.NewUserMessage(results...))
	}
}

// byHand takes the fields of events as they are.
func byHand(stream *ssestream.Stream[sdk.MessageStreamEventUnion], said func(string)) (reply sdk.MessageParam, stop sdk.StopReason, err error) {
	var text, arguments strings.Builder
	var block sdk.ContentBlockStartEventContentBlockUnion
	reply.Role = sdk.MessageParamRoleAssistant
	for stream.Next() {
		e := stream.Current()
		switch e.Type {
		case "content_block_start":
			block = e.ContentBlock
			text.Reset()
			arguments.Reset()
		case "content_block_delta":
			if e.Delta.Text != "" {
				text.WriteString(e.Delta.Text)
				said(e.Delta.Text)
			}
			arguments.WriteString(e.Delta.PartialJSON)
		case "content_block_stop":
			b := sdk.NewTextBlock(text.String())
			if block.Type == "tool_use" {
				b = sdk.NewToolUseBlock(block.ID, json.RawMessage(arguments.String()), block.Name)
			}
			reply.Content = append(reply.Content, b)
		case "message_delta":
			stop = e.Delta.StopReason
		}
	}
	return reply, stop, stream.Err()
}

// accumulated leaves that to the SDK.
func accumulated(stream *ssestream.Stream[sdk.MessageStreamEventUnion], said func(string)) (reply sdk.MessageParam, stop sdk.StopReason, err error) {
	var m sdk.Message
	for stream.Next() {
		e := stream.Current()
		if err := m.Accumulate(e); err != nil {
			return reply, "", err
		}
		if e.Type == "content_block_delta" && e.Delta.Text != "" {
			said(e.Delta.Text)
		}
	}
	return m.ToParam(), m.StopReason, stream.Err()
}
