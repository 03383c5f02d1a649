package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// server is a transport that answers by itself and keeps what it was asked.
type server struct {
	status int
	body   string
	asked  []*http.Request
	bodies [][]byte
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil { // DELETE has none
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, body)
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(s.body)),
	}, nil
}

func (s *server) option() model.Option { return model.WithHTTPClient(&http.Client{Transport: s}) }

const (
	chatOK      = `{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`
	responsesOK = `{"id":"1","model":"m","status":"completed","output":[]}`
)

func hi() model.Request { return model.Request{Messages: message.NewHistory(message.User("Hi"))} }

// everything is a request that has all that a request may have and the protocol takes.
func everything(seed *int64, stop ...string) model.Request {
	return model.Request{
		System: "Be \"brief\".",
		Messages: message.NewHistory(
			message.New(message.RoleUser, message.Text{Text: "What is this?"}, message.File{MIME: "image/png", Data: "png"},
				message.File{MIME: "application/pdf", Data: "pdf", Name: "a.pdf"}, message.File{MIME: "text/plain; charset=utf-8", Data: "note\n", Name: "a.txt"}),
			message.New(message.RoleAssistant,
				message.Reasoning{Text: "hm", Origin: message.Origin{Provider: chat, Extra: `{"#field":"reasoning_content"}`}},
				message.Reasoning{Text: "sum", Signature: "sig", Origin: message.Origin{Provider: responses, Extra: `{"id":"rs_1"}`}},
				message.Text{Text: "Let me look.", Origin: message.Origin{Provider: responses, Extra: `{"#item":{"id":"msg_1"}}`}},
				message.ToolCall{ID: "c1", Name: "read", Input: `{"p":1}`, Origin: message.Origin{Provider: chat, Extra: `{"extra_content":{"google":{"thought_signature":"s"}}}`}},
				message.ToolCall{ID: "c2", Name: "read", Input: `{"p":`},
			),
			message.Results(
				message.ToolResult{Call: "c1", Content: "a picture", Files: []message.File{{MIME: "image/png", URL: "https://example.com/a.png"}}},
				message.ToolResult{Call: "c2", Content: "invalid", IsError: true},
			),
			message.User("Go on."),
		),
		Tools: []model.Tool{
			{Name: "read", Description: "Read.", Schema: json.RawMessage(`{"type": "object", "properties": {"p": {"type": "integer"}}}`)},
			{Name: "stop"},
		},
		Settings: model.Settings{MaxTokens: 100, Temperature: ptr(0.25), TopP: ptr(1.0), Seed: seed, Stop: stop, ToolChoice: "read"},
		Output:   json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}`),
	}
}

func TestRequestsAreTheseBytes(t *testing.T) {
	for name, ask := range map[string]func(s *server) (model.Model, model.Request){
		"request_chat": func(s *server) (model.Model, model.Request) {
			return New("m", s.option(), model.WithBaseURL("http://x/v1")), everything(ptr(int64(7)), "END", "\n")
		},
		"request_chat_own": func(s *server) (model.Model, model.Request) {
			return New("m", s.option(), model.WithKey("k")), everything(ptr(int64(7)), "END")
		},
		"request_responses": func(s *server) (model.Model, model.Request) {
			return NewResponses("m", s.option(), model.WithKey("k")), everything(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{status: 200, body: chatOK}
			if strings.Contains(name, "responses") {
				s.body = responsesOK
			}
			m, req := ask(s)
			if _, err := m.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, s.bodies[0], "", "\t"); err != nil {
				t.Fatalf("%v: %s", err, s.bodies[0])
			}
			got.WriteByte('\n')
			golden(t, filepath.Join("testdata", name+".json"), got.Bytes())
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), -update writes it anew:\n%s", path, diff)
	}
}

func TestAMissingKeyIsToldBeforeAnyCall(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	s := &server{status: 200, body: chatOK}
	for name, m := range map[string]model.Model{
		"chat":      New("m", s.option()),
		"responses": NewResponses("m", s.option()),
		"vendor":    Vendor{Name: "acme", BaseURL: "https://acme.example/v1/", Env: []string{"ACME_KEY", "ACME_API_KEY"}}.New("m", s.option()),
	} {
		_, err := m.Complete(t.Context(), hi())
		streamed := m.CompleteStream(t.Context(), hi(), func(model.StreamResult) error { return nil })
		for _, err := range []error{err, streamed} {
			want := "OPENAI_API_KEY"
			if name == "vendor" {
				want = "ACME_KEY or ACME_API_KEY"
			}
			if !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if len(s.asked) != 0 {
		t.Errorf("%d calls", len(s.asked))
	}
}

func TestAnotherServerNeedsNoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	s := &server{status: 200, body: chatOK}
	for name, m := range map[string]*Model{
		"another base URL":    New("m", s.option(), model.WithBaseURL("http://localhost:1/v1/")),
		"a vendor without":    Vendor{Name: "ollama", BaseURL: "http://localhost:1/v1"}.New("m", s.option()),
		"a moved vendor":      Vendor{Name: "acme", BaseURL: "https://acme.example", Env: []string{"ACME_KEY"}}.New("m", s.option(), model.WithBaseURL("http://localhost:1/v1")),
		"a header of its own": New("m", s.option(), model.WithHeader("Authorization", "Bearer x")),
	} {
		if _, err := m.Complete(t.Context(), hi()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := s.asked[0].URL.Path; got != "/v1/chat/completions" {
		t.Errorf("path %q", got)
	}
}

func TestAVendorNeverGetsOpenAIsKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret-of-openai")
	s := &server{status: 200, body: chatOK}
	if _, err := (Vendor{Name: "ollama", BaseURL: "http://localhost:1/v1"}).New("m", s.option()).Complete(t.Context(), hi()); err != nil {
		t.Fatal(err)
	}
	if got := s.asked[0].Header.Get("Authorization"); got != "" {
		t.Errorf("Authorization: %s", got)
	}
}

func TestAVendorsNameIsInErrorsAndCapabilities(t *testing.T) {
	v := Vendor{Name: "ollama", BaseURL: "http://localhost:1/v1"}
	s := &server{status: 500, body: `{"error":"model runner stopped"}`}
	for _, m := range []interface {
		model.Model
		model.Describer
	}{v.New("llama3", s.option()), v.NewResponses("llama3", s.option())} {
		if got := m.Capabilities().Name; got != "ollama/llama3" {
			t.Errorf("name %q", got)
		}
		_, err := m.Complete(t.Context(), hi())
		if err == nil || !strings.HasPrefix(err.Error(), "ollama: HTTP 500") || !strings.Contains(err.Error(), "model runner stopped") {
			t.Errorf("%v", err)
		}
		_, err = m.Complete(t.Context(), model.Request{})
		if err == nil || !strings.HasPrefix(err.Error(), "ollama: ") {
			t.Errorf("%v", err)
		}
	}
}

func TestABaseURLThatIsNoneFailsBeforeAnyCall(t *testing.T) {
	for _, url := range []string{"localhost:11434/v1", "http://a b:x", "ftp://example.com", "http://"} {
		if _, err := New("m", model.WithBaseURL(url)).Complete(t.Context(), hi()); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := (Vendor{Name: "x"}).New("m").Complete(t.Context(), hi()); !errors.Is(err, errdefs.Validation) {
		t.Errorf("no base URL: %v", err)
	}
}

func TestTheServersOfOpenAIAndAzureAreKnownByTheirHosts(t *testing.T) {
	for url, want := range map[string]bool{
		"":                                  true,
		"https://eu.api.openai.com/v1":      true,
		"https://x.openai.azure.com/v1":     true,
		"https://api.deepseek.com":          false,
		"https://api.openai.com.evil.dev":   false,
		"http://localhost:8000/openai.com/": false,
	} {
		if got := New("m", model.WithBaseURL(url)).own(); got != want {
			t.Errorf("%q: %v", url, got)
		}
	}
}

func TestWhatTheWireHasNoPlaceForIsRefusedBeforeACall(t *testing.T) {
	chatModel, respModel := New("m", model.WithBaseURL("http://localhost:1")), NewResponses("m", model.WithBaseURL("http://localhost:1"))
	file := func(f message.File) model.Request {
		return model.Request{Messages: message.NewHistory(message.New(message.RoleUser, f))}
	}
	result := func(f message.File) model.Request {
		return model.Request{Messages: message.NewHistory(message.Results(message.ToolResult{Call: "c", Files: []message.File{f}}))}
	}
	drawn := func() model.Request {
		r := hi()
		r.Messages = r.Messages.Append(message.New(message.RoleAssistant, message.File{MIME: "image/png", Data: "x"}), message.User("More"))
		return r
	}
	infinite := hi()
	infinite.Temperature = ptr(math.Inf(1))
	for name, c := range map[string]struct {
		m   model.Model
		req model.Request
	}{
		"chat: a PDF by URL":                  {chatModel, file(message.File{MIME: "application/pdf", URL: "https://x/a.pdf"})},
		"chat: a sound by URL":                {chatModel, file(message.File{MIME: "audio/wav", URL: "https://x/a.wav"})},
		"chat: a sound that isn't WAV or MP3": {chatModel, file(message.File{MIME: "audio/ogg", Data: "x"})},
		"chat: a file without bytes":          {chatModel, file(message.File{MIME: "image/png"})},
		"chat: a stored file in a result":     {chatModel, result(message.File{MIME: "image/png", Hash: "h"})},
		"chat: an odd file in a result":       {chatModel, result(message.File{MIME: "model/gltf", Data: "x"})},
		"chat: a file of the model's":         {chatModel, drawn()},
		"responses: a file of the model's":    {respModel, drawn()},
		"chat: an infinite temperature":       {chatModel, infinite},
		"chat: the zero message":              {chatModel, model.Request{Messages: message.NewHistory(message.Message{})}},
		"responses: a sound":                  {respModel, file(message.File{MIME: "audio/wav", Data: "x"})},
		"responses: a sound in a result":      {respModel, result(message.File{MIME: "audio/wav", Data: "x"})},
		"responses: a file without bytes":     {respModel, file(message.File{MIME: "application/pdf"})},
	} {
		if _, err := c.m.Complete(t.Context(), c.req); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesOfEachKindHaveTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		file message.File
		chat string
		resp string
	}{
		"sound":    {message.File{MIME: "audio/mpeg", Data: "x"}, `{"type":"input_audio","input_audio":{"data":"eA==","format":"mp3"}}`, ""},
		"text":     {message.File{MIME: "text/csv", Data: "a,b"}, `{"type":"text","text":"a,b"}`, `{"type":"input_text","text":"a,b"}`},
		"text URL": {message.File{MIME: "text/csv", URL: "https://x/a"}, "", `{"type":"input_file","file_url":"https://x/a"}`},
		"PDF":      {message.File{MIME: "application/pdf", Data: "x"}, `{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,eA=="}}`, `{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,eA=="}`},
		"PDF URL":  {message.File{MIME: "application/pdf", URL: "https://x/a"}, "", `{"type":"input_file","file_url":"https://x/a"}`},
		"image":    {message.File{MIME: "image/gif", URL: "https://x/\"a"}, `{"type":"image_url","image_url":{"url":"https://x/\"a"}}`, `{"type":"input_image","detail":"auto","image_url":"https://x/\"a"}`},
	} {
		m := message.New(message.RoleUser, c.file)
		if got := string(chatFormat{}.encode(m)); c.chat != "" && got != `,{"role":"user","content":[`+c.chat+`]}` {
			t.Errorf("%s: chat: %s", name, got)
		}
		if got := string(responsesFormat{}.encode(m)); c.resp != "" && got != `,{"type":"message","role":"user","content":[`+c.resp+`]}` {
			t.Errorf("%s: responses: %s", name, got)
		}
	}
}

func TestErrorsHaveTheirClass(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		class  *errdefs.Class
		code   string
	}{
		"an exhausted quota":          {429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, errdefs.RateLimit, "insufficient_quota"},
		"Azure's content filter":      {400, `{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400}}`, errdefs.Refused, "content_filter"},
		"a prompt that isn't allowed": {400, `{"error":{"message":"Invalid prompt: limited access","type":"invalid_request_error","code":"invalid_prompt"}}`, errdefs.Refused, "invalid_prompt"},
		"OpenRouter's numbers":        {502, `{"error":{"message":"Provider returned error","code":502,"metadata":{}}}`, errdefs.NotAvailable, "502"},
		"vLLM without an envelope":    {404, `{"object":"error","message":"The model does not exist.","type":"NotFoundError","param":null,"code":404}`, errdefs.NotFound, "NotFoundError"},
		"vLLM's context overflow":     {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}`, errdefs.Overflow, "BadRequestError"},
		"a wrong key":                 {401, `{"error":{"message":"no","type":"invalid_request_error","code":null}}`, errdefs.Unauthorized, "invalid_request_error"},
		"200 with an error":           {200, `{"error":{"message":"Rate limited upstream","code":429}}`, errdefs.RateLimit, "429"},
	} {
		s := &server{status: c.status, body: c.body}
		_, err := New("m", s.option(), model.WithKey("k")).Complete(t.Context(), hi())
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != c.class || e.Code != c.code || e.Message == "" {
			t.Errorf("%s: %v: %#v", name, errdefs.Of(err), e)
		}
	}
}

func TestASchemaIsStrictWhereItMayBe(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                                      true,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                                            true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                   false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                                                       false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                                                        false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                                      false,
		`{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`:                                                                       false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/x"}}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":["string","null"]}}}`: true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                                        false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                                                                     false,
		`{"anyOf":[{"type":"object","properties":{},"additionalProperties":false}]}`:                                                                                                false,
		`{"type":"object","properties":null,"additionalProperties":false}`:                                                                                                          false, // null is no schema
		`{"type":"object","properties":{"a":{"type":"string","anyOf":null}},"required":["a"],"additionalProperties":false}`:                                                         false,
		`{"type":"string"}`: false,
		`true`:              false,
		`{`:                 false,
	} {
		if got := strictSchema(json.RawMessage(schema)); got != want {
			t.Errorf("%v: %s", got, schema)
		}
	}
}

// Only OpenAI's own servers are told of the conversation, by a hash: it routes to the server that has the prompt in its cache.
func TestTheCacheKeyGoesToOpenAIAlone(t *testing.T) {
	const session = `the session of "Ms. Example", which has a name that is longer than the 64 characters that the API takes`
	for _, c := range []struct {
		name, url, key string
		want           bool
	}{
		{"OpenAI", "", session, true},
		{"in Europe", "https://eu.api.openai.com/v1", session, true},
		{"without a key", "", "", false},
		{"Azure, whose older versions don't know it", "https://x.openai.azure.com/v1", session, false},
		{"another server", "https://api.deepseek.com", session, false},
	} {
		for protocol, ask := range map[string]func(s *server, req model.Request) error{
			"chat": func(s *server, req model.Request) error {
				s.body = chatOK
				_, err := New("m", s.option(), model.WithKey("k"), model.WithBaseURL(c.url)).Complete(t.Context(), req)
				return err
			},
			"responses": func(s *server, req model.Request) error {
				s.body = responsesOK
				_, err := NewResponses("m", s.option(), model.WithKey("k"), model.WithBaseURL(c.url)).Complete(t.Context(), req)
				return err
			},
		} {
			t.Run(c.name+" "+protocol, func(t *testing.T) {
				var keys []string
				for _, key := range []string{c.key, c.key, c.key + "2"} {
					req, s := hi(), &server{status: http.StatusOK}
					if req.CacheKey = key; c.key == "" {
						req.CacheKey = ""
					}
					if err := ask(s, req); err != nil {
						t.Fatal(err)
					}
					var body map[string]any
					if err := json.Unmarshal(s.bodies[0], &body); err != nil {
						t.Fatalf("%v in %s", err, s.bodies[0])
					}
					got, has := body["prompt_cache_key"].(string)
					if keys = append(keys, got); has != c.want || bytes.Contains(s.bodies[0], []byte("Example")) {
						t.Fatalf("%s", s.bodies[0])
					}
				}
				if c.want && (len(keys[0]) != 64 || keys[0] != keys[1] || keys[1] == keys[2]) {
					t.Errorf("keys %q: want one of 64 characters for each conversation", keys)
				}
			})
		}
	}
}

func TestTheCacheKeyCostsAStepNothing(t *testing.T) {
	m, req := New("m"), hi()
	req.CacheKey = "s"
	build := func() { m.body(&req, false, m.begin, m.format, m.encode) }
	build()
	if n := testing.AllocsPerRun(100, build); n > 1 {
		t.Errorf("%v allocations, want the list of pieces alone", n)
	}
}
