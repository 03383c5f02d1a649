package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

var anthropicSDK = vendor{
	name: "anthropic", dir: "anthropic/testdata", model: "claude-sonnet-4-5", lacks: []string{"seed", "frequency_penalty", "presence_penalty"},
	ours: func(name string, opts ...model.Option) model.Model { return anthropic.New(name, opts...) },
	ask:  askAnthropic, again: againAnthropic, plain: plainAnthropic, sent: func(body object) []any { return sentBy(body["messages"], "assistant") }, byHand: anthropicByHand,
}

func anthropicClient(c *http.Client) sdk.Client {
	return sdk.NewClient(option.WithHTTPClient(c), option.WithAPIKey("test-key"), option.WithMaxRetries(0), option.WithRequestTimeout(patience))
}

func askAnthropic(t *testing.T, c *http.Client, stream bool) *reply {
	api := anthropicClient(c)
	req := sdk.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 100, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("Hi"))}}
	if !stream {
		m, err := api.Messages.New(t.Context(), req)
		if err != nil {
			return anthropicFailure(t, err)
		}
		return readAnthropic(m)
	}
	var m sdk.Message
	s := api.Messages.NewStreaming(t.Context(), req)
	defer func() { _ = s.Close() }()
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			t.Errorf("the SDK can't take an event: %v", err)
		}
	}
	if err := s.Err(); err != nil {
		return anthropicFailure(t, err)
	}
	return readAnthropic(&m)
}

func readAnthropic(m *sdk.Message) *reply {
	u := m.Usage
	r := &reply{
		ID: m.ID, Model: m.Model, Reason: m.StopDetails.Explanation,
		Usage: model.Usage{
			Input: int(u.InputTokens), Output: int(u.OutputTokens), CacheRead: int(u.CacheReadInputTokens),
			CacheWrite: int(u.CacheCreationInputTokens), Reasoning: int(u.OutputTokensDetails.ThinkingTokens),
		},
	}
	switch m.StopReason {
	case sdk.StopReasonEndTurn:
		r.Stop = model.StopEnd
	case sdk.StopReasonMaxTokens:
		r.Stop = model.StopLength
	case sdk.StopReasonStopSequence:
		r.Stop = model.StopSequence
	case sdk.StopReasonToolUse:
		r.Stop = model.StopTools
	case sdk.StopReasonPauseTurn:
		r.Stop = model.StopPause
	case sdk.StopReasonRefusal:
		r.Stop = model.StopRefusal
	case sdk.StopReasonModelContextWindowExceeded:
		r.Stop = model.StopWindow
	case "":
		return cutOff
	default:
		r.Stop = "unknown to the SDK: " + model.StopReason(m.StopReason)
	}
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case sdk.TextBlock:
			r.Said = append(r.Said, said{Kind: "text", Text: b.Text})
			continue
		case sdk.ThinkingBlock:
			r.Said = append(r.Said, said{Kind: "reasoning", Text: b.Thinking, Signature: b.Signature})
			continue
		case sdk.ToolUseBlock:
			r.Said = append(r.Said, said{Kind: "call", ID: b.ID, Name: b.Name, Input: canonical(string(b.Input))})
			continue
		}
		r.Said = append(r.Said, said{Kind: "other", Other: canonical(b.RawJSON())})
	}
	r.Back = []any{m.ToParam()}
	return r
}

func anthropicFailure(t *testing.T, err error) *reply {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) {
		return &reply{Failed: &failure{Message: err.Error()}}
	}
	var body struct {
		Error     struct{ Message string }
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(e.RawJSON()), &body); err != nil {
		t.Errorf("the SDK keeps no JSON of the error: %v", err)
	}
	return &reply{Failed: &failure{Status: e.StatusCode, Code: string(e.Type()), Message: body.Error.Message, Request: body.RequestID}}
}

// againAnthropic reads a body by the SDK's types.
func againAnthropic(t *testing.T, c *http.Client, body []byte, stream bool) error {
	var req sdk.MessageNewParams
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("the SDK's types can't read the body: %w", err)
	}
	return sendAnthropic(t, c, req, stream)
}

func sendAnthropic(t *testing.T, c *http.Client, req sdk.MessageNewParams, stream bool) error {
	t.Helper()
	api := anthropicClient(c)
	if !stream {
		_, err := api.Messages.New(t.Context(), req)
		return err
	}
	s := api.Messages.NewStreaming(t.Context(), req)
	for s.Next() {
	}
	return s.Err()
}
