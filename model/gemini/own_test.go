package gemini

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func asked(t *testing.T, name string, s model.Settings, tools ...model.Tool) map[string]json.RawMessage {
	t.Helper()
	b, err := New(name).body(model.Request{Messages: message.NewHistory(message.User("Hi")), Settings: s, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(b.Reader())
	var out map[string]json.RawMessage
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func TestLevelsAreSaidInTheWordsOfTheModel(t *testing.T) {
	for name, want := range map[string]string{
		"gemini-2.5-pro":               "minimal 512, low 1024, medium 8192, high 16384, max 32768",
		"models/gemini-2.5-flash-lite": "none 0, minimal 512, low 1024, medium 8192, high 16384, max 24576",
		"gemini-2.0-flash":             "none",
		"gemma-3-27b-it":               "none",
		"gemini-3-pro-preview":         "low LOW, high HIGH, max HIGH",
		"gemini-3.1-pro-preview":       "low LOW, medium MEDIUM, high HIGH, max HIGH",
		"gemini-3-flash-preview":       "minimal MINIMAL, low LOW, medium MEDIUM, high HIGH, max HIGH",
		"gemini-9-ultra":               "minimal MINIMAL, low LOW, medium MEDIUM, high HIGH, max HIGH",
	} {
		var got []string
		for _, level := range New(name).Capabilities().Reasoning {
			var config struct {
				ThinkingConfig struct {
					ThinkingBudget *int
					ThinkingLevel  string
				}
			}
			if raw := asked(t, name, model.Settings{Reasoning: level})["generationConfig"]; raw != nil {
				if err := json.Unmarshal(raw, &config); err != nil {
					t.Fatal(err)
				}
			}
			said := string(level) + " " + config.ThinkingConfig.ThinkingLevel
			if b := config.ThinkingConfig.ThinkingBudget; b != nil {
				said = fmt.Sprint(level, " ", *b)
			}
			got = append(got, strings.TrimSpace(said))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestThoughtsLeaveRoomForTheAnswer(t *testing.T) {
	for limit, want := range map[int]string{4000: `"thinkingBudget":3000`, 600: `"thinkingBudget":512`, 100000: `"thinkingBudget":16384`} {
		if got := string(asked(t, "gemini-2.5-pro", model.Settings{Reasoning: model.ReasoningHigh, MaxTokens: limit})["generationConfig"]); !strings.Contains(got, want) {
			t.Errorf("%d: %s", limit, got)
		}
	}
	_, err := New("gemini-2.5-pro").body(model.Request{Messages: message.NewHistory(message.User("Hi")), Settings: model.Settings{Reasoning: model.ReasoningLow, MaxTokens: 512}})
	if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "output limit") {
		t.Error(err)
	}
}

func TestSinceGemini3ToolsOfBothSidesGoTogether(t *testing.T) {
	search := []model.ProviderTool{{Name: model.WebSearch}, {Name: model.CodeExecution}}
	mine := model.Tool{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}
	const both = `[{"functionDeclarations":[{"name":"look","description":"","parametersJsonSchema":{"type":"object"}}]},{"googleSearch":{}},{"codeExecution":{}}]`
	for choice, want := range map[model.ToolChoice][2]string{
		model.ToolsAuto:     {both, `{"includeServerSideToolInvocations":true}`},
		model.ToolsRequired: {both, `{"functionCallingConfig":{"mode":"ANY"},"includeServerSideToolInvocations":true}`},
		model.ToolsNone:     {`[{"functionDeclarations":[{"name":"look","description":"","parametersJsonSchema":{"type":"object"}}]}]`, `{"functionCallingConfig":{"mode":"NONE"}}`},
	} {
		got := asked(t, "gemini-3-flash-preview", model.Settings{ProviderTools: search, ToolChoice: choice}, mine)
		if string(got["tools"]) != want[0] || string(got["toolConfig"]) != want[1] {
			t.Errorf("%q: %s %s", choice, got["tools"], got["toolConfig"])
		}
	}
	if got := asked(t, "gemini-3-flash-preview", model.Settings{ProviderTools: search, ToolChoice: model.ToolsNone}); got["tools"] != nil || got["toolConfig"] != nil {
		t.Errorf("no tool may be called, and there are %s %s", got["tools"], got["toolConfig"])
	}
	if got := asked(t, "gemini-2.5-flash", model.Settings{ProviderTools: search}); string(got["tools"]) != `[{"googleSearch":{}},{"codeExecution":{}}]` || got["toolConfig"] != nil {
		t.Errorf("%s %s", got["tools"], got["toolConfig"])
	}
	_, err := New("gemini-3-flash-preview").body(model.Request{Messages: message.NewHistory(message.User("Hi")), Settings: model.Settings{ProviderTools: search, ToolChoice: model.ToolsRequired}})
	if !errdefs.Validation.Is(err) {
		t.Errorf("a call of the API's own tools can't be forced: %v", err)
	}
}

func decoded(t *testing.T, candidate string) *model.Response {
	t.Helper()
	r, err := New("m").decode([]byte(`{"candidates":[{"finishReason":"STOP",` + candidate + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStepsOfToolsOfTheAPIAreTold(t *testing.T) {
	step := func(json, call, name, input, output string, failed bool) message.ProviderCall {
		return message.ProviderCall{Opaque: message.Opaque{Provider: provider, JSON: json}, Call: call, Name: name, Input: input, Output: output, IsError: failed}
	}
	var parts []string
	want := []message.ProviderCall{
		step(`{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["a"]},"id":"1"},"thoughtSignature":"ZQ=="}`, "1", model.WebSearch, `{"queries":["a"]}`, "", false),
		step(`{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"x":1},"id":"1"}}`, "1", model.WebSearch, "", "", false),
		step(`{"toolCall":{"toolType":"URL_CONTEXT","id":"2"}}`, "2", model.WebFetch, "", "", false),
		step(`{"toolCall":{"toolType":"OF_THE_FUTURE","args":{}}}`, "", "OF_THE_FUTURE", "{}", "", false),
		step(`{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED"}}`, "", model.CodeExecution, "", "OUTCOME_DEADLINE_EXCEEDED", true),
	}
	for _, s := range want {
		parts = append(parts, s.JSON)
	}
	r := decoded(t, `"content":{"parts":[`+strings.Join(parts, ",")+`]},"groundingMetadata":{"webSearchQueries":["a"]}`) // which parts have told of already
	if d := cmp.Diff(want, slices.Collect(message.Of[message.ProviderCall](r.Message))); d != "" {
		t.Error(d)
	}
	if len(r.Message.ToolCalls()) > 0 || r.Stop != model.StopEnd {
		t.Errorf("they look like calls of ours: %v %s", r.Message.ToolCalls(), r.Stop)
	}
}

func TestSourcesAreFoundInTheTextThatRestsOnThem(t *testing.T) {
	const chunks = `"groundingChunks":[{"web":{"uri":"https://a","title":"A"}},{"retrievedContext":{"uri":"https://b","title":"B","text":"its words"}},{"of_the_future":{}}],`
	a, b := message.Citation{URL: "https://a", Title: "A"}, message.Citation{URL: "https://b", Title: "B", Quote: "its words"}
	at := func(c message.Citation, start, end int) message.Citation { c.Start, c.End = start, end; return c }
	for name, c := range map[string]struct {
		supports string
		want     []message.Citation
	}{
		"two sources":             {`{"segment":{"startIndex":4,"endIndex":9,"text":"größe"},"groundingChunkIndices":[0,1]}`, []message.Citation{at(a, 5, 12), at(b, 5, 12)}},
		"by the text":             {`{"segment":{"startIndex":900,"endIndex":901,"text":"größe"},"groundingChunkIndices":[0]}`, []message.Citation{at(a, 5, 12)}},
		"by its place":            {`{"segment":{"endIndex":4},"groundingChunkIndices":[0]}`, []message.Citation{at(a, 0, 4)}},
		"in the middle of a rune": {`{"segment":{"startIndex":0,"endIndex":8},"groundingChunkIndices":[0]}`, []message.Citation{a}},
		"nowhere":                 {`{"segment":{"startIndex":-9e99,"endIndex":1e99,"text":"zzz"},"groundingChunkIndices":[0]}`, []message.Citation{a}},
		"no segment":              {`{"groundingChunkIndices":[0]}`, []message.Citation{a}},
		"chunks that are none":    {`{"groundingChunkIndices":[2,3,-1,1e99,"x"]}`, nil},
		"nothing":                 {`3,null,"x",{}`, nil},
	} {
		r := decoded(t, `"content":{"parts":[{"text":"Die  größe."}]},"groundingMetadata":{`+chunks+`"groundingSupports":[`+c.supports+`]}`)
		text := r.Message.Part(0).(message.Text)
		for _, x := range text.Citations {
			if x.Start < 0 || x.End < x.Start || x.End > len(text.Text) {
				t.Fatalf("%s: %v", name, x)
			}
		}
		if d := cmp.Diff(c.want, text.Citations); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	r := decoded(t, `"content":{"parts":[{"text":"abc"}]},"citationMetadata":{"citationSources":[{"startIndex":1,"endIndex":3,"uri":"https://x"},{}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://y"},{}]}`)
	want := []message.Part{
		message.ProviderCall{Opaque: message.Opaque{Provider: provider}, Name: model.WebFetch, Sources: []message.Citation{{URL: "https://y"}}},
		message.Text{Text: "abc", Citations: []message.Citation{{URL: "https://x", Start: 1, End: 3}}, Origin: message.Origin{Provider: provider}},
	}
	if d := cmp.Diff(want, slices.Collect(r.Message.Parts())); d != "" {
		t.Error(d)
	}
	if back := encodePlain(r.Message); strings.Contains(string(back), "https://") || !json.Valid(back[1:]) {
		t.Errorf("%s", back)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(f func(r *http.Request) string) model.Option {
	return model.WithHTTPClient(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(f(r)))}, nil
	})})
}

func TestAnUploadWaitsUntilTheFileCanBeUsed(t *testing.T) {
	film := message.File{MIME: "video/mp4", Name: `a "film"`, Data: "x"}
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		m := New("m", model.WithKey("k"), answering(func(r *http.Request) string {
			calls = append(calls, r.Method+" "+r.URL.String())
			switch len(calls) {
			case 1:
				body, _ := io.ReadAll(r.Body)
				if r.Header.Get("X-Goog-Upload-Protocol") != "multipart" || !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/related; boundary=") || !strings.Contains(string(body), `{"file":{"displayName":"a \"film\""}}`) {
					t.Errorf("%v %s", r.Header, body)
				}
				return `{"file":{"name":"files/f1","state":"PROCESSING"}}`
			case 2:
				return `{"name":"files/f1","state":"PROCESSING"}`
			}
			return `{"name":"files/f1","state":"ACTIVE"}`
		}))
		began := time.Now()
		f, err := m.Upload(t.Context(), film)
		if err != nil || f.ID != "f1" || f.Provider != provider {
			t.Error(f, err)
		}
		const host = "https://generativelanguage.googleapis.com"
		want := []string{"POST " + host + "/upload/v1beta/files?uploadType=multipart", "GET " + host + "/v1beta/files/f1", "GET " + host + "/v1beta/files/f1"}
		if d := cmp.Diff(want, calls); d != "" || time.Since(began) != 750*time.Millisecond {
			t.Errorf("%s in %v", d, time.Since(began))
		}
		if b := encodePlain(message.New(message.RoleUser, f)); !strings.Contains(string(b), `{"fileData":{"mimeType":"video/mp4","fileUri":"`+host+`/v1beta/files/f1"}}`) {
			t.Errorf("%s", b)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := New("m", model.WithKey("k"), answering(func(*http.Request) string {
			return `{"file":{"name":"files/f1","state":"FAILED","error":{"message":"It has no frames."}}}`
		}))
		if f, err := m.Upload(t.Context(), film); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "no frames") || f.ID != "" {
			t.Error(f, err)
		}
	})
	if _, err := New("m", model.WithKey("k")).Upload(t.Context(), message.File{MIME: "a/b\r\nX: y", Data: "x"}); !errors.Is(err, errdefs.Validation) {
		t.Error(err)
	}
}
