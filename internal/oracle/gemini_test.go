package oracle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	sdk "google.golang.org/genai"

	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/gemini"
)

var geminiSDK = vendor{
	name: "gemini", dir: "gemini/testdata", model: "gemini-2.5-flash",
	ours: func(name string, opts ...model.Option) model.Model { return gemini.New(name, opts...) },
	ask:  askGemini, again: againGemini, plain: plainGemini, sent: func(body object) []any { return sentBy(body["contents"], "model") }, byHand: geminiByHand,
}

func geminiClient(t *testing.T, c *http.Client) *sdk.Client {
	t.Helper()
	api, err := sdk.NewClient(t.Context(), &sdk.ClientConfig{
		APIKey: "test-key", Backend: sdk.BackendGeminiAPI, HTTPClient: c, HTTPOptions: sdk.HTTPOptions{Timeout: new(patience)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func askGemini(t *testing.T, c *http.Client, stream bool) *reply {
	api := geminiClient(t, c)
	hi := sdk.Text("Hi")
	if !stream {
		m, err := api.Models.GenerateContent(t.Context(), "gemini-2.5-flash", hi, nil)
		if err != nil {
			return geminiFailure(err)
		}
		return readGemini(m)
	}
	// The SDK has no accumulator: a stream is many replies, each of which may have news of everything.
	var all []*sdk.GenerateContentResponse
	for m, err := range api.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", hi, nil) {
		if err != nil {
			return geminiFailure(err)
		}
		all = append(all, m)
	}
	return readGemini(all...)
}

func readGemini(chunks ...*sdk.GenerateContentResponse) *reply {
	r := &reply{}
	var finish sdk.FinishReason
	var note string
	for _, m := range chunks {
		if m.ModelVersion != "" {
			r.Model = m.ModelVersion
		}
		if m.ResponseID != "" {
			r.ID = m.ResponseID
		}
		if u := m.UsageMetadata; u != nil {
			r.Usage = model.Usage{
				Input:  int(u.PromptTokenCount - u.CachedContentTokenCount + u.ToolUsePromptTokenCount),
				Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), CacheRead: int(u.CachedContentTokenCount), Reasoning: int(u.ThoughtsTokenCount),
			}
		}
		if f := m.PromptFeedback; f != nil && f.BlockReason != "" {
			r.Stop, r.Reason = model.StopFilter, f.BlockReasonMessage
			if r.Reason == "" {
				r.Reason = string(f.BlockReason)
			}
		}
		for _, c := range m.Candidates {
			if c.FinishReason != "" {
				finish, note = c.FinishReason, c.FinishMessage
			}
			if c.Content != nil {
				for _, p := range c.Content.Parts {
					r.part(p)
				}
			}
		}
	}
	if len(chunks) == 1 && len(chunks[0].Candidates) > 0 && chunks[0].Candidates[0].Content != nil {
		r.Back = []any{chunks[0].Candidates[0].Content} // of a stream it keeps each piece by itself
	}
	if r.Stop != "" {
		return r
	}
	switch finish {
	case sdk.FinishReasonStop:
		r.Stop = model.StopEnd
		return r.calling()
	case sdk.FinishReasonMaxTokens:
		r.Stop = model.StopLength
		return r
	case sdk.FinishReasonSafety, sdk.FinishReasonRecitation, sdk.FinishReasonBlocklist, sdk.FinishReasonProhibitedContent, sdk.FinishReasonSPII,
		sdk.FinishReasonLanguage, sdk.FinishReasonImageSafety, sdk.FinishReasonImageProhibitedContent, sdk.FinishReasonImageRecitation:
		r.Stop = model.StopFilter
	case sdk.FinishReasonMalformedFunctionCall, sdk.FinishReasonUnexpectedToolCall:
		r.Stop = model.StopBadCall
	case "":
		return cutOff
	default:
		r.Stop = model.StopReason(finish)
	}
	if r.Reason = note; r.Reason == "" {
		r.Reason = string(finish)
	}
	return r
}

// part adds a part. Neighbours of one kind are one text, but for those that are signed: Google asks for these to be kept.
func (r *reply) part(p *sdk.Part) {
	sign := base64.StdEncoding.EncodeToString(p.ThoughtSignature)
	switch {
	case p.FunctionCall != nil:
		input := "{}"
		if p.FunctionCall.Args != nil {
			raw, _ := json.Marshal(p.FunctionCall.Args)
			input = string(raw)
		}
		r.Said = append(r.Said, said{Kind: "call", ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Input: canonical(input), Signature: sign})
	case p.InlineData != nil, p.FileData != nil, p.ExecutableCode != nil, p.CodeExecutionResult != nil, p.ToolCall != nil, p.ToolResponse != nil:
		raw, _ := json.Marshal(p)
		r.Said = append(r.Said, said{Kind: "other", Other: canonical(string(raw))})
	default:
		kind := "text"
		if p.Thought {
			kind = "reasoning"
		}
		if p.Text == "" && sign == "" {
			return
		}
		next := said{Kind: kind, Text: p.Text, Signature: sign}
		if n := len(r.Said); n > 0 && sign == "" && r.Said[n-1].Kind == kind && r.Said[n-1].Signature == "" {
			r.Said[n-1].Text += p.Text
			return
		}
		r.Said = append(r.Said, next)
	}
}

func geminiFailure(err error) *reply {
	var e sdk.APIError
	if !errors.As(err, &e) {
		return &reply{Failed: &failure{Message: err.Error()}}
	}
	return &reply{Failed: &failure{Status: e.Code, Code: e.Status, Message: e.Message}}
}

// geminiRequest is what the SDK's client is asked with.
type geminiRequest struct {
	contents []*sdk.Content
	config   *sdk.GenerateContentConfig
}

// againGemini reads a body by the SDK's types: it has none of a whole one, but one of each member.
func againGemini(t *testing.T, c *http.Client, body []byte, stream bool) error {
	var req struct {
		Contents          []*sdk.Content
		SystemInstruction *sdk.Content
		Tools             []*sdk.Tool
		ToolConfig        *sdk.ToolConfig
		GenerationConfig  json.RawMessage
	}
	if err := strictly(body, &req); err != nil {
		return err
	}
	config := &sdk.GenerateContentConfig{}
	if req.GenerationConfig != nil {
		var own sdk.GenerationConfig // knows what belongs here; the other type has more
		if err := errors.Join(strictly(req.GenerationConfig, &own), strictly(req.GenerationConfig, config)); err != nil {
			return err
		}
	}
	config.SystemInstruction, config.Tools, config.ToolConfig = req.SystemInstruction, req.Tools, req.ToolConfig
	return sendGemini(t, c, geminiRequest{req.Contents, config}, stream)
}

func sendGemini(t *testing.T, c *http.Client, req geminiRequest, stream bool) error {
	t.Helper()
	api := geminiClient(t, c)
	if !stream {
		_, err := api.Models.GenerateContent(t.Context(), "gemini-2.5-flash", req.contents, req.config)
		return err
	}
	for _, err := range api.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", req.contents, req.config) {
		if err != nil {
			return err
		}
	}
	return nil
}

func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the SDK's types can't read the body: %w: %s", err, data)
	}
	return nil
}
