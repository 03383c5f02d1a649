package gemini_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/providertest"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/gemini"
)

func TestMatrix(t *testing.T) {
	providertest.Run(t, providertest.Provider{
		Name: "gemini",
		New:  func(opts ...model.Option) model.Model { return gemini.New("gemini-2.5-flash", opts...) },
		Read: readRequest,
		Dir:  "testdata",
		Lacks: map[string]string{
			"reasoning_level": "not built yet", "provider_tools": "not built yet", "citations": "not built yet", "upload": "not built yet", "count": "not built yet",
			"half_call":   "arguments arrive whole",
			"refusal":     "a refusal is ordinary text",
			"pause":       "there are no turns to go on with",
			"cache_write": "writes to the implicit cache are not counted",
		},
	})
}

// The request as Google documents it; an unknown member fails the test.
type wireRequest struct {
	SystemInstruction *wireContent `json:"systemInstruction"`
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string         `json:"name"`
			Description          string         `json:"description"`
			ParametersJSONSchema map[string]any `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string   `json:"mode"`
			AllowedFunctionNames []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	GenerationConfig struct {
		MaxOutputTokens    int            `json:"maxOutputTokens"`
		Temperature        *float64       `json:"temperature"`
		TopP               *float64       `json:"topP"`
		TopK               *int           `json:"topK"`
		Seed               *int64         `json:"seed"`
		Frequency          *float64       `json:"frequencyPenalty"`
		Presence           *float64       `json:"presencePenalty"`
		StopSequences      []string       `json:"stopSequences"`
		ResponseMIMEType   string         `json:"responseMimeType"`
		ResponseJSONSchema map[string]any `json:"responseJsonSchema"`
	} `json:"generationConfig"`
	Contents []wireContent `json:"contents"`
}

type wireContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

type wirePart struct {
	Text             *string `json:"text"`
	Thought          bool    `json:"thought"`
	ThoughtSignature string  `json:"thoughtSignature"`
	FunctionCall     *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string            `json:"id"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	} `json:"functionResponse"`
	InlineData *struct {
		MIMEType string `json:"mimeType"`
		Data     string `json:"data"`
	} `json:"inlineData"`
	FileData *struct {
		MIMEType string `json:"mimeType"`
		FileURI  string `json:"fileUri"`
	} `json:"fileData"`
}

func readRequest(t *testing.T, path string, h http.Header, body []byte) providertest.Seen {
	t.Helper()
	var r wireRequest
	strict(t, body, &r)
	name, method, _ := strings.Cut(strings.TrimPrefix(path, "/models/"), ":")
	s := providertest.Seen{
		Model: name, Key: h.Get("X-Goog-Api-Key"), Stream: method == "streamGenerateContent?alt=sse",
		MaxTokens: r.GenerationConfig.MaxOutputTokens, Temperature: r.GenerationConfig.Temperature, TopP: r.GenerationConfig.TopP,
		TopK: r.GenerationConfig.TopK, Frequency: r.GenerationConfig.Frequency, Presence: r.GenerationConfig.Presence, Seed: r.GenerationConfig.Seed, Stop: r.GenerationConfig.StopSequences,
		Output: r.GenerationConfig.ResponseJSONSchema != nil && r.GenerationConfig.ResponseMIMEType == "application/json",
	}
	if !s.Stream && method != "generateContent" {
		t.Errorf("path %s", path)
	}
	if r.SystemInstruction != nil {
		for _, p := range readParts(t, r.SystemInstruction.Parts) {
			s.System += p.Text
		}
	}
	for _, group := range r.Tools {
		for _, tool := range group.FunctionDeclarations {
			s.Tools = append(s.Tools, tool.Name)
		}
	}
	switch c := r.ToolConfig.FunctionCallingConfig; {
	case c.Mode == "NONE":
		s.ToolChoice = "none"
	case c.Mode == "ANY" && len(c.AllowedFunctionNames) == 1:
		s.ToolChoice = c.AllowedFunctionNames[0]
	case c.Mode == "ANY":
		s.ToolChoice = "required"
	}
	for _, c := range r.Contents {
		role := c.Role
		if role == "model" {
			role = "assistant"
		} else if role != "user" {
			t.Errorf("role %q", role)
		}
		if len(c.Parts) == 0 {
			t.Error("a content without parts")
		}
		s.Messages = append(s.Messages, providertest.SeenMessage{Role: role, Parts: readParts(t, c.Parts)})
	}
	return s
}

func readParts(t *testing.T, raw []json.RawMessage) (out []providertest.SeenPart) {
	t.Helper()
	for _, r := range raw {
		var p wirePart
		if err := json.Unmarshal(r, &p); err != nil {
			t.Fatalf("part %s: %v", r, err)
		}
		seen := providertest.SeenPart{Signature: p.ThoughtSignature}
		switch {
		case p.FunctionCall != nil:
			seen.Kind, seen.ID, seen.Name, seen.Input = "tool_call", p.FunctionCall.ID, p.FunctionCall.Name, string(p.FunctionCall.Args)
			if !strings.HasPrefix(seen.Input, "{") {
				t.Errorf("args %s: not an object", seen.Input)
			}
		case p.FunctionResponse != nil:
			f := p.FunctionResponse
			seen.Kind, seen.ID, seen.Name = "tool_result", f.ID, f.Name
			if seen.Text, seen.IsError = f.Response["error"]; !seen.IsError {
				seen.Text = f.Response["result"]
			}
		case p.InlineData != nil:
			data, err := base64.StdEncoding.DecodeString(p.InlineData.Data)
			if err != nil {
				t.Errorf("inlineData: %v", err)
			}
			seen.Kind, seen.MIME, seen.Data = "file", p.InlineData.MIMEType, string(data)
		case p.FileData != nil:
			seen.Kind, seen.MIME, seen.Data = "file", p.FileData.MIMEType, p.FileData.FileURI
		case p.Text != nil && p.Thought:
			seen.Kind, seen.Text = "reasoning", *p.Text
		case p.Text != nil:
			seen.Kind, seen.Text = "text", *p.Text
			if seen.Text == "" && p.ThoughtSignature == "" {
				t.Error("an empty text: the API refuses it")
			}
		default:
			seen.Kind, seen.Data = "opaque", string(r)
		}
		out = append(out, seen)
	}
	return out
}

func strict(t *testing.T, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}
