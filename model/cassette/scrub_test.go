package cassette_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/cassette"
)

// The secrets of these tests. None is one.
const (
	ofEnvironment = "open-sesame-42"
	longer        = "open-sesame-42-and-more"
	ofAForm       = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	pem           = "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----"
	ofOurs        = "customer 4711"
)

func secrets(t *testing.T) cassette.Option {
	t.Setenv("SHOP_API_KEY", ofEnvironment)
	t.Setenv("SHOP_TOKEN", longer)
	t.Setenv("SHOP_SECRET", "assistant") // no secret can be one of the file's own words
	t.Setenv("SHOP_PASSWORD", "short")
	customer := regexp.MustCompile(`customer \d+`)
	return cassette.Scrub(func(s string) string { return customer.ReplaceAllString(s, "customer N") })
}

func hasNoSecret(t *testing.T, file string, times int) {
	t.Helper()
	text := content(t, file)
	for _, s := range []string{"sesame", "and-more", "ghp_", "PRIVATE", "MIIabc", "4711", "b3Blbi1zZXNhbWUt"} {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s is in the file: …%s…", s, text[max(0, i-60):min(len(text), i+60)])
		}
	}
	if n := strings.Count(text, cassette.Redacted); n < times {
		t.Errorf("it says %s %d times, want %d at least:\n%s", cassette.Redacted, n, times, text)
	}
}

func TestNoSecretIsWrittenAndTheReplayMatchesAllTheSame(t *testing.T) {
	opt := secrets(t)
	all := strings.Join([]string{ofEnvironment, longer, ofAForm, pem, ofOurs, "short"}, " ")
	input := `{"` + ofEnvironment + `":"` + ofAForm + `"}`
	parts := []message.Part{
		message.Text{Text: all},
		message.Reasoning{Text: all, Signature: ofAForm},
		message.File{MIME: "text/plain", Name: ofEnvironment, Data: all},
		message.ToolCall{ID: ofEnvironment, Name: "t", Input: input},
		message.ToolCall{ID: "half", Name: "t", Input: `{"a":"` + ofEnvironment},
		message.ToolResult{Call: "c", Content: all, Files: []message.File{{MIME: "application/json", Data: input}}},
		message.Opaque{Provider: "p", JSON: input},
	}
	m := live{say: func(req model.Request) ([]model.StreamResult, *model.Response, error) {
		if req.System == "fail" {
			return nil, nil, &model.Error{Provider: ofEnvironment, Message: all, Code: ofAForm, Err: errAll}
		}
		half := len(all) / 2 // in the middle of one
		pieces := []model.StreamResult{{Held: true}, {Text: all[:5]}, {Reasoning: all[:half]}, {Text: all[5:]}, {}, {Reasoning: all[half:]}, {Input: all[:half], Tool: "t"}, {Input: "x", Tool: "u", Call: 1}, {Input: all[half:], Tool: "t"}}
		return pieces, &model.Response{Message: message.New(message.RoleAssistant, parts...), Reason: all, ID: ofEnvironment, Model: ofEnvironment}, nil
	}}
	request := func(m message.Message) model.Request {
		return model.Request{
			System: all, Messages: message.NewHistory(message.New(message.RoleUser, parts...), m), Settings: model.Settings{Stop: []string{ofEnvironment}},
			Tools: []model.Tool{{Name: "t", Description: all, Schema: []byte(input)}}, Output: []byte(input),
		}
	}
	file := tape(t)
	r := record(t, m, file, opt)
	first := listen(r, true, request(message.Message{}))
	var reply *model.Response
	if err := r.CompleteStream(t.Context(), request(message.User("2")), func(p model.StreamResult) error { reply = p.Response; return nil }); err != nil {
		t.Fatal(err)
	}
	listen(r, true, request(reply.Message)) // what was said goes back
	failing := request(message.User("3"))
	failing.System = "fail"
	listen(r, false, failing)
	closed(t, r)
	hasNoSecret(t, file, 20)
	if !strings.Contains(first.Reply, "sesame") {
		t.Error("the program was given what is for the file")
	}
	if text := content(t, file); !strings.Contains(text, "assistant") || !strings.Contains(text, "short") || !strings.Contains(text, "customer N") {
		t.Error(text)
	}

	p := open(t, file, opt)
	replayed := listen(p, true, request(message.Message{}))
	want := []model.StreamResult{{Text: replayed.Pieces[0].Text}, {Reasoning: replayed.Pieces[0].Text}, {}, {Input: replayed.Pieces[0].Text, Tool: "t"}, {Input: "x", Tool: "u", Call: 1}}
	if d := diff(want, replayed.Pieces); d != "" || !strings.Contains(want[0].Text, "customer N") {
		t.Error(d)
	}
	if err := p.CompleteStream(t.Context(), request(message.User("2")), func(p model.StreamResult) error { reply = p.Response; return nil }); err != nil {
		t.Error(err)
	}
	if got := listen(p, true, request(reply.Message)); got.Error != "" { // scrubbed as it is, it is the same request
		t.Error(got.Error)
	}
	if got := listen(p, false, failing); got.Of == nil || got.Of.Provider != cassette.Redacted {
		t.Errorf("%+v", got)
	}
	if err := p.Done(); err != nil {
		t.Error(err)
	}
}

var errAll = errorText(ofEnvironment + ofAForm)

type errorText string

func (e errorText) Error() string { return string(e) }

func TestNoSecretOfHTTPIsWrittenAndTheReplayMatchesAllTheSame(t *testing.T) {
	opt := secrets(t)
	quoted := `{"said":"` + ofEnvironment + ` ` + ofAForm + ` ` + strings.ReplaceAll(pem, "\n", `\n`) + ` ` + ofOurs + ` of the-header-key and the-cookie-value"}`
	answers := []answer{
		{200, http.Header{"Content-Type": {"application/json"}, "Set-Cookie": {"session=the-cookie-value"}, "X-Said": {ofEnvironment}}, quoted},
		{200, http.Header{"Content-Type": {"text/event-stream"}}, "event: " + ofEnvironment + "\r\ndata: " + quoted + "\r\n\r\ndata:" + quoted + "\n\n: " + ofAForm + "\n"},
		{401, http.Header{"Content-Type": {"text/plain"}}, "wrong key: the-header-key, " + ofEnvironment},
	}
	send := func(c *http.Client) (got []string) {
		for range answers {
			req, err := http.NewRequest(http.MethodPost, "https://me:pass-word@example.com/"+ofEnvironment+"?key=the-query-key&a=b&access_token=x", strings.NewReader(quoted))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer the-header-key")
			req.Header.Set("Cookie", "a=the-cookie-value")
			req.Header.Set("X-Other", ofAForm)
			got = append(got, do(t, c, req))
		}
		return got
	}
	file := tape(t)
	s := &server{answers: answers}
	r, err := cassette.RecordHTTP(s, file, opt)
	if err != nil {
		t.Fatal(err)
	}
	if got := send(&http.Client{Transport: r}); !strings.Contains(got[0], "sesame") || !strings.Contains(s.asked[0], "sesame") {
		t.Error("the program or the server was given what is for the file", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	hasNoSecret(t, file, 20)
	for _, s := range []string{"the-header-key", "the-query-key", "pass-word", "session=", "=x"} {
		if strings.Contains(content(t, file), s) {
			t.Errorf("%s is in the file:\n%s", s, content(t, file))
		}
	}
	p, err := cassette.OpenHTTP(file, opt)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range send(&http.Client{Transport: p}) {
		if !strings.Contains(got, cassette.Redacted) || strings.Contains(got, "sesame") {
			t.Errorf("answer %d: %s", i+1, got)
		}
	}
	if err := p.Done(); err != nil {
		t.Error(err)
	}
}

func TestASecretSpreadOverEventsIsNotRecorded(t *testing.T) {
	opt := secrets(t)
	file := tape(t)
	stream := "data: {\"delta\":{\"text\":\"open-\"}}\n\ndata: {\"delta\":{\"text\":\"sesame-42\"}}\n\n"
	r, err := cassette.RecordHTTP(&server{answers: []answer{{200, http.Header{"Content-Type": {"text/event-stream"}}, stream}}}, file, opt)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, &http.Client{Transport: r}, "https://example.com"); !strings.Contains(got, "sesame") {
		t.Error("the program has to go on:", got)
	}
	if got := get(t, &http.Client{Transport: r}, "https://example.com"); !strings.Contains(got, "spread over the events") {
		t.Error("a recording that is none goes on:", got)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "spread over the events") {
		t.Error(err)
	}
	hasNoSecret(t, file, 0)
}

func TestACompressedBodyIsNotRecorded(t *testing.T) {
	file := tape(t)
	r, err := cassette.RecordHTTP(&server{answers: []answer{{200, http.Header{"Content-Encoding": {"br"}}, "x"}}}, file)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, &http.Client{Transport: r}, "https://example.com"); !strings.Contains(got, "a compressed body") {
		t.Error(got)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "a compressed body") {
		t.Error(err)
	}
}

// A tool that the provider runs may be given the key of another server, in a form that nobody knows.
func TestTheKeysOfToolsThatAProviderRunsAreNotWritten(t *testing.T) {
	const options = `{"server_url":"https://x.example/mcp","authorization":"open-barley","headers":{"X-Api-Key":"Bearer open-wheat"},"max_uses":3}`
	request := model.Request{Messages: message.NewHistory(message.User("hi")), Settings: model.Settings{ProviderTools: []model.ProviderTool{{Name: "mcp", Options: []byte(options)}}}}
	file := tape(t)
	r := record(t, live{say: func(model.Request) ([]model.StreamResult, *model.Response, error) {
		return nil, &model.Response{Message: message.Assistant("ok")}, nil
	}}, file)
	listen(r, false, request)
	closed(t, r)
	if got := listen(open(t, file), false, request); got.Error != "" {
		t.Error(got.Error)
	}
	over := tape(t)
	h, err := cassette.RecordHTTP(&server{answers: []answer{{200, http.Header{"Content-Type": {"application/json"}}, `{"echo":"open-barley"}`}}}, over)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, "https://example.com/", strings.NewReader(`{"tools":[`+options+`],"input":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	do(t, &http.Client{Transport: h}, req)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{file, over} {
		if text := content(t, file); strings.Contains(text, "barley") || strings.Contains(text, "wheat") || !strings.Contains(text, "max_uses") || !strings.Contains(text, "x.example") {
			t.Error(text)
		}
	}
}
