package oracle

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/openai"
)

var responsesSDK = vendor{
	name: "openai-responses", dir: "openai/testdata/responses", model: "gpt-5",
	lacks: []string{"top_k", "seed", "frequency_penalty", "presence_penalty", "stop"},
	ours:  func(name string, opts ...model.Option) model.Model { return openai.NewResponses(name, opts...) },
	ask:   askResponses, again: againResponses, plain: plainResponses, sent: sentItems, byHand: responsesByHand,
}

func askResponses(t *testing.T, c *http.Client, stream bool) *reply {
	api := openaiClient(c)
	req := responses.ResponseNewParams{Model: "gpt-5", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Hi")}}
	if !stream {
		r, err := api.Responses.New(t.Context(), req)
		if err != nil {
			return openaiFailure(err)
		}
		return readResponses(t, r)
	}
	// The SDK's accumulator is for its WebSocket; of a stream of events it gives the events, the last of which has the whole response.
	s := api.Responses.NewStreaming(t.Context(), req)
	defer func() { _ = s.Close() }()
	var last *responses.Response
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseCompletedEvent:
			last = &e.Response
		case responses.ResponseIncompleteEvent:
			last = &e.Response
		case responses.ResponseFailedEvent:
			last = &e.Response
		case responses.ResponseErrorEvent:
			return &reply{Failed: &failure{Code: e.Code, Message: e.Message}}
		}
	}
	if err := s.Err(); err != nil {
		return openaiFailure(err)
	}
	if last == nil {
		return cutOff
	}
	return readResponses(t, last)
}

func readResponses(t *testing.T, m *responses.Response) *reply {
	if m.Error.Message != "" {
		return &reply{Failed: &failure{Code: string(m.Error.Code), Message: m.Error.Message, Request: m.ID}}
	}
	u := m.Usage
	cached, written := int(u.InputTokensDetails.CachedTokens), int(u.InputTokensDetails.CacheWriteTokens)
	r := &reply{
		ID: m.ID, Model: m.Model,
		Usage: model.Usage{
			Input: int(u.InputTokens) - cached - written, Output: int(u.OutputTokens), CacheRead: cached, CacheWrite: written,
			Reasoning: int(u.OutputTokensDetails.ReasoningTokens),
		},
	}
	switch {
	case m.Status == responses.ResponseStatusCompleted:
		r.Stop = model.StopEnd
	case m.Status == responses.ResponseStatusIncomplete && m.IncompleteDetails.Reason == "max_output_tokens":
		r.Stop = model.StopLength
	case m.Status == responses.ResponseStatusIncomplete && m.IncompleteDetails.Reason == "content_filter":
		r.Stop = model.StopFilter
	default:
		return &reply{Failed: &failure{Code: string(m.Status), Request: m.ID}}
	}
	for _, item := range m.Output {
		if item.Type != "reasoning" || item.EncryptedContent != "" { // what is not encrypted would be looked up by its id, and nothing is stored
			r.Back = append(r.Back, backOf(t, item))
		}
		switch item := item.AsAny().(type) {
		case responses.ResponseOutputMessage:
			readOutputMessage(r, item)
			continue
		case responses.ResponseReasoningItem:
			var texts []string
			for _, s := range item.Summary {
				texts = append(texts, s.Text)
			}
			for _, c := range item.Content {
				texts = append(texts, c.Text)
			}
			r.Said = append(r.Said, said{Kind: "reasoning", Text: strings.Join(texts, "\n\n"), Signature: item.EncryptedContent})
			continue
		case responses.ResponseFunctionToolCall:
			r.Said = append(r.Said, said{Kind: "call", ID: item.CallID, Name: item.Name, Input: canonical(item.Arguments)})
			continue
		}
		r.Said = append(r.Said, said{Kind: "other", Other: canonical(item.RawJSON())})
	}
	return r.calling()
}

func readOutputMessage(r *reply, item responses.ResponseOutputMessage) {
	var texts []said
	for _, c := range item.Content {
		switch c := c.AsAny().(type) {
		case responses.ResponseOutputText:
			texts = append(texts, said{Kind: "text", Text: c.Text})
		case responses.ResponseOutputRefusal:
			r.Stop, r.Reason = model.StopRefusal, r.Reason+c.Refusal
		}
	}
	if len(texts) == 0 { // a refusal goes back as it came
		texts = []said{{Kind: "other", Other: canonical(item.RawJSON())}}
	}
	r.Said = append(r.Said, texts...)
}

// againResponses reads a body by the SDK's types.
func againResponses(t *testing.T, c *http.Client, body []byte, stream bool) error {
	var req responses.ResponseNewParams
	if err := json.Unmarshal(body, &req); err != nil {
		return fmt.Errorf("the SDK's types can't read the body: %w", err)
	}
	return sendResponses(t, c, req, stream)
}

func sendResponses(t *testing.T, c *http.Client, req responses.ResponseNewParams, stream bool) error {
	t.Helper()
	api := openaiClient(c)
	if !stream {
		_, err := api.Responses.New(t.Context(), req)
		return err
	}
	s := api.Responses.NewStreaming(t.Context(), req)
	for s.Next() {
	}
	return s.Err()
}

// sentItems gives the items between the first message of the user's and what comes after the reply.
func sentItems(body object) (sent []any) {
	begun := false
	for item := range objects(body["input"]) {
		ended := item["role"] == "user" || item["type"] == "function_call_output"
		if ended && begun {
			return sent[1:]
		}
		sent = append(sent, item)
		begun = true
	}
	return nil
}

// backOf makes an item of the output one of the input. The SDK has ways for some types; the others it reads again.
func backOf(t *testing.T, item responses.ResponseOutputItemUnion) any {
	t.Helper()
	switch item := item.AsAny().(type) {
	case responses.ResponseOutputMessage:
		return item.ToParam()
	case responses.ResponseReasoningItem:
		return item.ToParam()
	case responses.ResponseFunctionToolCall:
		return item.ToParam()
	}
	if item.AsAny() == nil { // a type that it doesn't know, as it came
		return json.RawMessage(item.RawJSON())
	}
	var back responses.ResponseInputItemUnionParam
	if err := json.Unmarshal([]byte(item.RawJSON()), &back); err != nil {
		t.Errorf("the SDK can't take its item back: %v", err)
	}
	return back
}
