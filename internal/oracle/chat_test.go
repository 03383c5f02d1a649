package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/openai"
)

var chatSDK = vendor{
	name: "openai", dir: "openai/testdata/chat", model: "gpt-5", lacks: []string{"top_k"},
	ours: func(name string, opts ...model.Option) model.Model { return openai.New(name, opts...) },
	ask:  askChat, again: againChat, plain: plainChat, sent: func(body object) []any { return sentBy(body["messages"], "assistant") }, byHand: chatByHand,
}

func openaiClient(c *http.Client) sdk.Client {
	return sdk.NewClient(option.WithHTTPClient(c), option.WithAPIKey("test-key"), option.WithMaxRetries(0), option.WithRequestTimeout(patience))
}

func askChat(t *testing.T, c *http.Client, stream bool) *reply {
	api := openaiClient(c)
	req := sdk.ChatCompletionNewParams{Model: "gpt-5", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("Hi")}}
	if !stream {
		m, err := api.Chat.Completions.New(t.Context(), req)
		if err != nil {
			return openaiFailure(err)
		}
		return readChat(t, m)
	}
	var all sdk.ChatCompletionAccumulator
	s := api.Chat.Completions.NewStreaming(t.Context(), req)
	defer func() { _ = s.Close() }()
	for s.Next() {
		if !all.AddChunk(s.Current()) {
			t.Errorf("the SDK can't take the chunk %s", s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		return openaiFailure(err)
	}
	return readChat(t, &all.ChatCompletion)
}

func readChat(t *testing.T, m *sdk.ChatCompletion) *reply {
	t.Helper()
	if len(m.Choices) != 1 {
		t.Fatalf("the SDK sees %d choices", len(m.Choices))
	}
	u, choice := m.Usage, m.Choices[0]
	cached, written := int(u.PromptTokensDetails.CachedTokens), int(u.PromptTokensDetails.CacheWriteTokens)
	r := &reply{
		ID: m.ID, Model: m.Model, Reason: choice.Message.Refusal,
		Usage: model.Usage{
			Input: int(u.PromptTokens) - cached - written, Output: int(u.CompletionTokens), CacheRead: cached, CacheWrite: written,
			Reasoning: int(u.CompletionTokensDetails.ReasoningTokens),
		},
	}
	switch choice.FinishReason {
	case "stop":
		r.Stop = model.StopEnd
	case "length":
		r.Stop = model.StopLength
	case "tool_calls":
		r.Stop = model.StopTools
	case "content_filter":
		r.Stop = model.StopFilter
	case "":
		return cutOff
	default:
		r.Stop = "unknown to the SDK: " + model.StopReason(choice.FinishReason)
	}
	for _, name := range []string{"reasoning_content", "reasoning"} { // other vendors' members, which the SDK keeps raw
		var thought string
		if raw := choice.Message.JSON.ExtraFields[name].Raw(); raw != "" && json.Unmarshal([]byte(raw), &thought) == nil && thought != "" {
			r.Said = append(r.Said, said{Kind: "reasoning", Text: thought})
			break
		}
	}
	if choice.Message.Content != "" {
		r.Said = append(r.Said, said{Kind: "text", Text: choice.Message.Content})
	}
	if choice.Message.Refusal != "" {
		r.Stop = model.StopRefusal
		words, _ := json.Marshal(map[string]string{"refusal": choice.Message.Refusal})
		r.Said = append(r.Said, said{Kind: "other", Other: canonical(string(words))})
	}
	for _, c := range choice.Message.ToolCalls {
		r.Said = append(r.Said, said{Kind: "call", ID: c.ID, Name: c.Function.Name, Input: canonical(c.Function.Arguments)})
	}
	r.Back = []any{choice.Message.ToParam()}
	return r.calling()
}

func openaiFailure(err error) *reply {
	var e *sdk.Error
	if !errors.As(err, &e) {
		return &reply{Failed: &failure{Message: err.Error()}}
	}
	code := e.Code
	if code == "" {
		code = e.Type
	}
	return &reply{Failed: &failure{Status: e.StatusCode, Code: code, Message: e.Message}}
}

// againChat reads a body by the SDK's types.
func againChat(t *testing.T, c *http.Client, body []byte, stream bool) error {
	var req sdk.ChatCompletionNewParams
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("the SDK's types can't read the body: %w", err)
	}
	return sendChat(t, c, req, stream)
}

func sendChat(t *testing.T, c *http.Client, req sdk.ChatCompletionNewParams, stream bool) error {
	t.Helper()
	api := openaiClient(c)
	if !stream {
		_, err := api.Chat.Completions.New(t.Context(), req)
		return err
	}
	s := api.Chat.Completions.NewStreaming(t.Context(), req)
	for s.Next() {
	}
	return s.Err()
}
