package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

// paths is a server with an answer for each path.
type paths map[string]string

func (p paths) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(p[r.Method+" "+r.URL.Path]))}, nil
}

var server = paths{
	"POST /v1/messages/count_tokens":                 `{"input_tokens": 2095}`,
	"POST /v1/files":                                 `{"id": "file_011CNha8iCJcU1wXNR6q4V8w"}`,
	"DELETE /v1/files/file_011CNha8iCJcU1wXNR6q4V8w": `{}`,
	"POST /v1/messages": `{"stop_reason":"end_turn","content":[
		{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"pawl"}},
		{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com/pawl","title":"Pawl","encrypted_content":"…"}]},
		{"type":"text","text":"It lets a wheel turn one way only.","citations":[{"type":"web_search_result_location","url":"https://example.com/pawl","title":"Pawl","cited_text":"A pawl holds.","encrypted_index":"…"}]}]}`,
}

func Example_tools() {
	ctx := context.Background()
	// In earnest: anthropic.New("claude-sonnet-4-6"), with the key in ANTHROPIC_API_KEY.
	m := anthropic.New("claude-sonnet-4-6", model.WithKey("k"), model.WithHTTPClient(&http.Client{Transport: server}))

	file := message.File{MIME: "application/pdf", Name: "wheels.pdf", Data: "%PDF-1.7 …"}
	if u, ok := model.As[model.Uploader](m); ok { // sent once; from now on by its ID
		var err error
		if file, err = u.Upload(ctx, file); err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = u.Discard(ctx, file) }()
	}
	req := model.Request{
		Messages: message.NewHistory(message.New(message.RoleUser, file, message.Text{Text: "What does a pawl do? Look it up."})),
		Settings: model.Settings{
			Reasoning:     model.ReasoningHigh,
			ProviderTools: []model.ProviderTool{{Name: model.WebSearch, Options: []byte(`{"max_uses": 3}`)}},
		},
	}
	if c, ok := model.As[model.Counter](m); ok {
		n, err := c.CountTokens(ctx, req)
		fmt.Println(n, "tokens", err)
	}
	resp, err := m.Complete(ctx, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range message.Of[message.ProviderCall](resp.Message) {
		fmt.Println(step.Name, step.Input, len(step.Sources))
	}
	for text := range message.Of[message.Text](resp.Message) {
		fmt.Println(text.Text, text.Citations[0].URL, text.Citations[0].Quote)
	}
	// Output:
	// 2095 tokens <nil>
	// web_search {"query":"pawl"} 0
	// web_search  1
	// It lets a wheel turn one way only. https://example.com/pawl A pawl holds.
}
