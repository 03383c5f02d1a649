package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// taking answers every call with a body, and reads the file of the last form.
type taking struct {
	answer                 string
	field, name, kind, got string
	asked                  []*http.Request
}

func (k *taking) RoundTrip(r *http.Request) (*http.Response, error) {
	k.asked = append(k.asked, r)
	if _, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); params["boundary"] != "" {
		part, err := multipart.NewReader(r.Body, params["boundary"]).NextPart()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		k.field, k.name, k.kind, k.got = part.FormName(), part.FileName(), part.Header.Get("Content-Type"), string(data)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(k.answer))}, nil
}

func with(k *taking) *Model {
	return New("claude-opus-5", model.WithKey("k"), model.WithHTTPClient(&http.Client{Transport: k}))
}

func TestAFileIsUploadedAsItsNameAndTypeSay(t *testing.T) {
	for name, c := range map[string]struct {
		f                message.File
		wantName, wantOf string
	}{
		"a document":             {message.File{MIME: "application/pdf", Name: "a b.pdf", Data: "%PDF"}, "a b.pdf", "application/pdf"},
		"a text of any kind":     {message.File{MIME: "text/markdown", Name: "grüße.md", Data: "# A"}, "grüße.md", "text/plain"},
		"one without a name":     {message.File{MIME: "image/png", Data: "\x89PNG\r\n"}, "file", "image/png"},
		"a name that is a path":  {message.File{MIME: "image/png", Name: `../a\b?.png`, Data: "x"}, ".._a_b_.png", "image/png"},
		"a name with line ends":  {message.File{MIME: "image/png", Name: "a\r\nb\"", Data: "x"}, "a__b_", "image/png"},
		"a name that is endless": {message.File{MIME: "image/png", Name: strings.Repeat("ü", 200), Data: "x"}, strings.Repeat("ü", 127), "image/png"},
	} {
		k := &taking{answer: `{"id":"file_1","type":"file"}`}
		got, err := with(k).Upload(t.Context(), c.f)
		want := c.f
		want.Provider, want.ID = provider, "file_1"
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
		if k.field != "file" || k.name != c.wantName || k.kind != c.wantOf || k.got != c.f.Data {
			t.Errorf("%s: %s %q of type %s: %q", name, k.field, k.name, k.kind, k.got)
		}
		if r := k.asked[0]; r.URL.String() != "https://api.anthropic.com/v1/files" || r.Method != http.MethodPost || r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Anthropic-Version") == "" {
			t.Errorf("%s: %s %s %v", name, r.Method, r.URL, r.Header)
		}
	}
}

func TestWhatTheAPIWouldNotKeepIsNotUploaded(t *testing.T) {
	k := &taking{answer: `{"id":"file_1"}`}
	for name, f := range map[string]message.File{
		"a sound": {MIME: "audio/wav", Data: "x"},
		"nothing": {MIME: "image/png", URL: "https://example.com/a.png"},
	} {
		if _, err := with(k).Upload(t.Context(), f); !errors.Is(err, errdefs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(k.asked) > 0 {
		t.Errorf("%d calls", len(k.asked))
	}
	for most, ok := range map[int]bool{4: false, 5: true} {
		if err := with(k).uploadable(message.File{MIME: "image/png", Data: "12345"}, most); (err == nil) != ok {
			t.Errorf("5 bytes of at most %d: %v", most, err)
		}
	}
}

func TestAnAnswerThatSaysNothingIsAnError(t *testing.T) {
	k := &taking{answer: `{}`}
	f, err := with(k).Upload(t.Context(), message.File{MIME: "image/png", Data: "x"})
	if !errors.Is(err, errdefs.NotAvailable) || f.ID != "" {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := with(k).CountTokens(t.Context(), hi(model.Settings{})); !errors.Is(err, errdefs.NotAvailable) {
		t.Errorf("%v", err)
	}
}

func TestAFileIsDiscardedByItsID(t *testing.T) {
	k := &taking{answer: `{"id":"file_1","type":"file_deleted"}`}
	if err := with(k).Discard(t.Context(), message.File{Provider: provider, ID: "../x?"}); err != nil {
		t.Fatal(err)
	}
	if r := k.asked[0]; r.Method != http.MethodDelete || r.URL.EscapedPath() != "/v1/files/..%2Fx%3F" || r.Header.Get("Content-Type") != "" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
}

func TestAFileByIDIsSentAsWhatItIs(t *testing.T) {
	for f, want := range map[message.File]string{
		{MIME: "image/png", Provider: provider, ID: "f1", Data: "x"}:              `{"type":"image","source":{"type":"file","file_id":"f1"}}`,
		{MIME: "application/pdf", Name: "a.pdf", Provider: provider, ID: "f1"}:    `{"type":"document","source":{"type":"file","file_id":"f1"},"title":"a.pdf"}`,
		{MIME: "text/plain", Provider: provider, ID: "f1", Hash: "h"}:             `{"type":"document","source":{"type":"file","file_id":"f1"}}`,
		{MIME: "text/plain", Provider: "openai-responses", ID: "f1", Data: "abc"}: `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"abc"}}`,
	} {
		if got := joined(t, New("claude-opus-5"), model.Request{Messages: message.NewHistory(message.New(message.RoleUser, f))}, false); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	sound := message.New(message.RoleUser, message.File{MIME: "audio/wav", Provider: provider, ID: "f1"})
	if _, err := New("claude-opus-5").body(model.Request{Messages: message.NewHistory(sound)}, false); !errors.Is(err, errdefs.Validation) {
		t.Errorf("a sound: %v", err)
	}
}

func TestACountSaysWhatTheCallDoesButItsLimitsAndSampling(t *testing.T) {
	m := New("claude-sonnet-4-5")
	req := model.Request{System: "Be brief.", Tools: readTool, Messages: steps(2), Output: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), Settings: model.Settings{
		MaxTokens: 9000, Temperature: ptr(1.0), Stop: []string{"x"}, Reasoning: model.ReasoningLow, ProviderTools: []model.ProviderTool{{Name: model.WebSearch}},
	}}
	call, err := m.body(req, false)
	if err != nil {
		t.Fatal(err)
	}
	count, err := m.counted(req)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b [][]byte) (out map[string]json.RawMessage) {
		if err := json.Unmarshal(bytes.Join(b, nil), &out); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		return out
	}
	want, got := read(call), read(count)
	for _, name := range []string{"max_tokens", "temperature", "stop_sequences"} {
		if want[name] == nil {
			t.Fatalf("the call doesn't say %s", name)
		}
		delete(want, name)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-call +count):\n%s", d)
	}
	for i := range len(call) - 1 { // each piece but the head lies where the call's does
		if i > 0 && &call[i][0] != &count[i+1][0] {
			t.Errorf("piece %d was made again", i)
		}
	}
}
