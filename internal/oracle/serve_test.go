package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	doors "github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// told is what the vendor's client makes of a run of ours.
type told struct {
	Model, Text, Finish string
	Usage               [5]int64 // of the prompt, from a cache, of the completion, reasoning, in all
}

func toldBy(t *testing.T, c *sdk.ChatCompletion) told {
	t.Helper()
	if len(c.Choices) != 1 || c.ID == "" || c.Created == 0 || string(c.Object) != "chat.completion" {
		t.Fatalf("the SDK sees %s", c.RawJSON())
	}
	u := c.Usage
	return told{c.Model, c.Choices[0].Message.Content, c.Choices[0].FinishReason, [5]int64{u.PromptTokens, u.PromptTokensDetails.CachedTokens, u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens, u.TotalTokens}}
}

// serves serves an agent over HTTP, and gives who talks to it as OpenAI's client does.
func serves(t *testing.T, turns ...scripted.Turn) sdk.Client {
	t.Helper()
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }, tool.ReadOnly)
	e, err := loop.New(loop.Config{Model: scripted.New(turns...), Tools: []tool.Tool{look}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := doors.New(doors.Of(agent.Agent{ID: "a"}, e, journal.Memory()), doors.Options{Tokens: []string{"a-token-of-sixteen"}})
	if err != nil {
		t.Fatal(err)
	}
	at := httptest.NewServer(s)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		at.Close()
	})
	return sdk.NewClient(option.WithBaseURL(at.URL+"/v1"), option.WithAPIKey("a-token-of-sixteen"), option.WithMaxRetries(0), option.WithRequestTimeout(patience))
}

// looks is a run of two model calls, which the client sees as one answer.
var looks = []scripted.Turn{
	{Text: "Let me.", Calls: []scripted.Call{{ID: "c1", Name: "look", Input: "{}"}}, Usage: model.Usage{Input: 10, CacheRead: 90, Output: 5, Reasoning: 3}},
	{Text: "There.", Usage: model.Usage{Input: 20, Output: 6}},
}

var looked = told{"pawl", "Let me.\n\nThere.", "stop", [5]int64{120, 90, 11, 3, 131}}

func question() sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{Model: "pawl", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("Be brief."), sdk.UserMessage("Look.")}}
}

func TestTheSDKReadsOurAnswers(t *testing.T) {
	api := serves(t, looks...)
	c, err := api.Chat.Completions.New(t.Context(), question())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(looked, toldBy(t, c)); d != "" {
		t.Error(d)
	}
}

func TestTheSDKReadsOurStreams(t *testing.T) {
	api := serves(t, looks...)
	req := question()
	req.StreamOptions.IncludeUsage = sdk.Bool(true)
	s := api.Chat.Completions.NewStreaming(t.Context(), req)
	defer func() { _ = s.Close() }()
	var all sdk.ChatCompletionAccumulator
	pieces := 0
	for s.Next() {
		chunk := s.Current()
		if !all.AddChunk(chunk) {
			t.Errorf("the SDK can't take the chunk %s", chunk.RawJSON())
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				pieces++
			}
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	got := toldBy(t, &all.ChatCompletion)
	if d := cmp.Diff(looked, got); d != "" || pieces < 2 {
		t.Errorf("%d pieces: %s", pieces, d)
	}
}

func TestTheSDKReadsOurErrors(t *testing.T) {
	bad := sdk.ChatCompletionNewParams{Model: "gpt-7", Messages: question().Messages}
	twice := question()
	twice.N = sdk.Int(2)
	for name, c := range map[string]struct {
		req  sdk.ChatCompletionNewParams
		opts []option.RequestOption
		want seen
	}{
		"another model": {bad, nil, seen{404, "invalid_request_error", "model_not_found", "model"}},
		"what can't be": {twice, nil, seen{400, "invalid_request_error", "unsupported_parameter", "n"}},
		"a wrong token": {question(), []option.RequestOption{option.WithAPIKey("wrong")}, seen{401, "authentication_error", "invalid_api_key", ""}},
		"a run fails":   {question(), nil, seen{502, "server_error", "validation", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			fails := scripted.Turn{Error: &scripted.Failure{Status: 400, Message: "no such thing"}}
			api := serves(t, fails, fails)
			asked := 0
			counts := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
				asked++
				return next(r)
			})
			_, err := api.Chat.Completions.New(t.Context(), c.req, append(c.opts, option.WithMaxRetries(2), counts)...)
			if got := errorSeen(t, err); got != c.want || asked != 1 { // asked again, a run does all that it did once more
				t.Errorf("whole: %+v, want %+v; it was asked %d times", got, c.want, asked)
			}
			s := api.Chat.Completions.NewStreaming(t.Context(), c.req, c.opts...)
			for s.Next() {
				if text := s.Current().RawJSON(); strings.Contains(text, "no such thing") {
					t.Errorf("the error is taken for a piece: %s", text)
				}
			}
			var inside *ssestream.StreamError // a run that has begun: the status was sent before
			if errors.As(s.Err(), &inside) {
				var said struct{ Type, Code, Message string }
				if err := json.Unmarshal(inside.Event.Data, &struct{ Error any }{&said}); err != nil || c.req.Model != "pawl" || said.Type != c.want.Type || said.Code != c.want.Code || !strings.Contains(said.Message, "no such thing") {
					t.Errorf("streamed: %v, %+v", err, said)
				}
			} else if got := errorSeen(t, s.Err()); got != c.want || name == "a run fails" {
				t.Errorf("streamed: %+v, want %+v", got, c.want)
			}
		})
	}
}

// seen is an error as the SDK has it.
type seen struct {
	status            int
	Type, Code, Param string
}

func errorSeen(t *testing.T, err error) seen {
	t.Helper()
	var e *sdk.Error
	if !errors.As(err, &e) || e.Message == "" {
		t.Fatalf("the SDK sees %v", err)
	}
	return seen{e.StatusCode, e.Type, e.Code, e.Param}
}
