package serve_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
	"github.com/pawl-dev/pawl/tool"
)

// asked is a model that keeps what it was asked.
type asked struct {
	model.Model
	mu  sync.Mutex
	all []model.Request
}

func (a *asked) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	a.mu.Lock()
	a.all = append(a.all, req)
	a.mu.Unlock()
	return a.Model.CompleteStream(ctx, req, cb)
}

func (a *asked) last() model.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[len(a.all)-1]
}

// streams is a model whose pieces a test gives.
type streams func(ctx context.Context, req model.Request, cb model.StreamHandler) error

func (f streams) Complete(context.Context, model.Request) (*model.Response, error) {
	return nil, errors.New("nobody streams")
}

func (f streams) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	return f(ctx, req, cb)
}

type completion struct {
	ID, Object, Model string
	Choices           []struct {
		Message struct {
			Role, Content string
			Reasoning     string `json:"reasoning_content"`
		}
		Delta struct {
			Role      string
			Content   *string
			Reasoning string `json:"reasoning_content"`
		}
		Finish *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		PromptOf   struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionOf struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	Error *struct {
		Message, Type, Code string
		Param               *string
	}
}

func (c completion) said() string {
	if len(c.Choices) != 1 {
		return ""
	}
	return c.Choices[0].Message.Content
}

// chunks are those of a streamed answer, and the header that it came with.
func (p *place) chunks(body string, header ...string) (text, reasoning, finish string, last completion, h http.Header) {
	p.t.Helper()
	res := p.ask(p.t.Context(), "POST", "/v1/chat/completions", body, header...)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		p.t.Fatalf("%s: %d %s", body, res.StatusCode, b)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	done := false
	for event := range strings.SplitSeq(string(b), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if done && event != "" && !strings.HasPrefix(event, ":") {
			p.t.Errorf("behind the end: %q", event)
		}
		if done = done || data == "[DONE]"; !ok || done {
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			p.t.Fatalf("%v: %s", err, data)
		}
		last = c
		for _, choice := range c.Choices {
			if choice.Delta.Content != nil {
				text += *choice.Delta.Content
			}
			reasoning += choice.Delta.Reasoning
			if choice.Finish != nil {
				finish = *choice.Finish
			}
		}
	}
	if !done && last.Error == nil {
		p.t.Errorf("it does not end with [DONE]: %s", clip(string(b)))
	}
	return text, reasoning, finish, last, res.Header
}

func look() tool.Tool {
	return tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "there", nil }, tool.ReadOnly)
}

// What a stream says in pieces is what is said whole.
func TestAChatIsAnsweredWholeAndInChunks(t *testing.T) {
	turns := []scripted.Turn{
		{Reasoning: "So then.", Text: "Let me look.", Calls: callOf("look"), Usage: model.Usage{Input: 10, CacheRead: 90, Output: 5, Reasoning: 3}},
		{Text: "It is all there.", Usage: model.Usage{Input: 20, CacheWrite: 7, Output: 6}},
	}
	p := serves(t, journal.Memory(), scripted.New(turns...), serve.Options{}, look())
	var c completion
	h := p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Look."}],"temperature":0.7,"max_tokens":100,"stop":null}`)
	if c.said() != "Let me look.\n\nIt is all there." || c.Object != "chat.completion" || c.Model != "pawl" || *c.Choices[0].Finish != "stop" || c.Choices[0].Message.Role != "assistant" {
		t.Errorf("%+v", c)
	}
	if want := "So then.\n\n[look {}]"; c.Choices[0].Message.Reasoning != want {
		t.Errorf("it thought %q, want %q", c.Choices[0].Message.Reasoning, want)
	}
	if u := c.Usage; u == nil || u.Prompt != 127 || u.Completion != 11 || u.Total != 138 || u.PromptOf.Cached != 90 || u.CompletionOf.Reasoning != 3 {
		t.Errorf("%+v", u)
	}
	if session := h.Get("X-Pawl-Session"); c.ID != "chatcmpl-"+session {
		t.Errorf("the answer %s is of session %q", c.ID, session)
	}
	text, reasoning, finish, last, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Look."}],"stream":true,"stream_options":{"include_usage":true}}`)
	if text != c.said() || reasoning != c.Choices[0].Message.Reasoning || finish != "stop" {
		t.Errorf("%q, %q, %s", text, reasoning, finish)
	}
	if len(last.Choices) != 0 || last.Object != "chat.completion.chunk" || cmp.Diff(last.Usage, c.Usage) != "" {
		t.Errorf("last it said %+v", last)
	}
	if _, _, _, last, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Look."}],"stream":true}`); last.Usage != nil || len(last.Choices) != 1 {
		t.Errorf("usage that nobody asked for: %+v", last)
	}
}

// What the client says has been before is what the model is told, in a session of its own each time.
func TestAChatIsStateless(t *testing.T) {
	m := &asked{Model: scripted.New(scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three."))}
	p := serves(t, journal.Memory(), m, serve.Options{}, look())
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("\x89PNG"))
	p.do(http.StatusOK, nil, "POST", "/v1/chat/completions", `{"model":"pawl","user":"u7","messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"`+data+`","detail":"low"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"see","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"see","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"t2","content":"a cat"},
		{"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"an animal"}]},
		{"role":"assistant","content":"A cat.","reasoning_content":"Hm.","refusal":null},
		{"role":"developer","content":[{"type":"text","text":"In English."}]},
		{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}},{"type":"image_url","image_url":{"url":"https://pictures.example/a.gif"}},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"text","text":"And that?"}]}]}`)
	req := m.last()
	if req.System != "Be brief.\n\nIn English." {
		t.Errorf("the system prompt is %q", req.System)
	}
	got, _ := json.MarshalIndent(req.Messages, "", " ")
	want, _ := json.MarshalIndent(message.NewHistory(
		message.New(message.RoleUser, message.Text{Text: "What is this?"}, message.File{MIME: "image/png", Data: "\x89PNG"}),
		message.Assistant("", message.ToolCall{ID: "t1", Name: "see", Input: "{}"}, message.ToolCall{ID: "t2", Name: "see", Input: "{}"}),
		message.Results(message.ToolResult{Call: "t1", Name: "see", Content: "an animal"}, message.ToolResult{Call: "t2", Name: "see", Content: "a cat"}),
		message.Assistant("A cat."),
		message.New(message.RoleUser, message.File{MIME: "application/pdf", Name: "a.pdf", Data: "%PDF"}, message.File{MIME: "image/gif", URL: "https://pictures.example/a.gif"}, message.File{MIME: "audio/wav", Data: "RIFF"}, message.Text{Text: "And that?"}),
	), "", " ")
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
	var list struct {
		Sessions []struct{ Session, User string }
	}
	p.do(http.StatusOK, &list, "GET", "/v1/sessions", "")
	if len(list.Sessions) != 1 || list.Sessions[0].User != "u7" {
		t.Errorf("%+v", list)
	}
}

// A session that the client names has what was said before: only the newest message is taken.
func TestAChatInASessionRemembers(t *testing.T) {
	m := &asked{Model: scripted.New(scripted.Text("One."), scripted.Text("Two."), scripted.Text("Three."))}
	p := serves(t, journal.Memory(), m, serve.Options{})
	h := p.do(http.StatusOK, nil, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"First."}]}`, "X-Pawl-Session", "mine")
	if h.Get("X-Pawl-Session") != "mine" {
		t.Error(h)
	}
	var c completion
	p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","metadata":{"session":"mine","else":"x"},"messages":[{"role":"user","content":"Something else."},{"role":"assistant","content":"What?"},{"role":"user","content":"Second."}]}`)
	var texts []string
	for _, m := range m.last().Messages.All() {
		texts = append(texts, m.Text())
	}
	if d := cmp.Diff([]string{"First.", "One.", "Second."}, texts); d != "" || c.said() != "Two." {
		t.Error(d, c.said())
	}
	p.do(http.StatusBadRequest, nil, "POST", "/v1/chat/completions", `{"model":"pawl","metadata":{"session":"mine"},"messages":[{"role":"user","content":"x"}]}`, "X-Pawl-Session", "other")
}

// What was shown can't be taken back: an attempt that says the same goes on from there, another one is told to be one.
func TestAReplyThatBreaksOffIsNotShownTwice(t *testing.T) {
	for name, c := range map[string]struct{ first, second, want string }{
		"the same again":    {"It is", "It is five.", "It is five."},
		"another":           {"It is f", "It was six.", "It is f\n\n[The reply broke off. Once more, from its beginning:]\n\nIt was six."},
		"less":              {"It is five or", "It is five", "It is five or\n\n[The reply broke off. Once more, from its beginning:]\n\nIt is five"},
		"nothing was shown": {"", "It is five.", "It is five."},
	} {
		t.Run(name, func(t *testing.T) {
			m := streams(func(_ context.Context, _ model.Request, cb model.StreamHandler) error {
				for _, r := range c.first {
					if err := cb(model.StreamResult{Text: string(r)}); err != nil {
						return err
					}
				}
				if err := cb(model.StreamResult{Void: errors.New("cut off")}); err != nil {
					return err
				}
				for _, r := range c.second {
					if err := cb(model.StreamResult{Text: string(r)}); err != nil {
						return err
					}
				}
				return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant(c.second), Stop: model.StopEnd}})
			})
			p := serves(t, journal.Memory(), m, serve.Options{})
			text, _, _, _, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"How much?"}],"stream":true}`)
			if text != c.want {
				t.Errorf("it said %q, want %q", text, c.want)
			}
			var whole completion
			p.do(http.StatusOK, &whole, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"How much?"}]}`)
			if whole.said() != c.second {
				t.Errorf("whole it is %q", whole.said())
			}
		})
	}
}

func TestWhatAChatCantHaveIsNamed(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("No.")), serve.Options{MaxBody: 10000})
	const hi = `"messages":[{"role":"user","content":"Hi."}]`
	var wrong completion
	if p.do(http.StatusBadRequest, &wrong, "POST", "/v1/chat/completions", `{"model":"pawl","metadata":{"session":5},`+hi+`}`); !strings.Contains(wrong.Error.Message, `"session" is a number`) {
		t.Errorf("%+v", wrong.Error)
	}
	for body, want := range map[string]struct{ param, code string }{
		`{` + hi + `}`:                                                          {"model", "missing_required_parameter"},
		`{"model":"gpt-7",` + hi + `}`:                                          {"model", "model_not_found"},
		`{"model":"pawl"}`:                                                      {"messages", "missing_required_parameter"},
		`{"model":"pawl","messages":[]}`:                                        {"messages", "missing_required_parameter"},
		`{"model":"pawl","messages":{}}`:                                        {"messages", "invalid_type"},
		`{"model":7,` + hi + `}`:                                                {"model", "invalid_type"},
		`{"model":"pawl","n":2,` + hi + `}`:                                     {"n", "unsupported_parameter"},
		`{"model":"pawl","tools":[{"type":"function"}],` + hi + `}`:             {"tools", "unsupported_parameter"},
		`{"model":"pawl","response_format":{"type":"json_object"},` + hi + `}`:  {"response_format", "unsupported_parameter"},
		`{"model":"pawl","logprobs":true,` + hi + `}`:                           {"logprobs", "unsupported_parameter"},
		`{"model":"pawl","stop":["x"],` + hi + `}`:                              {"stop", "unsupported_parameter"},
		`{"model":"pawl","temperature":"hot",` + hi + `}`:                       {"temperature", "invalid_type"},
		`{"model":"pawl","stream":"yes",` + hi + `}`:                            {"stream", "invalid_type"},
		`{"model":"pawl","stream_options":{"more":true},` + hi + `}`:            {"stream_options", "invalid_value"},
		`{"model":"pawl","metadata":{"a":1},` + hi + `}`:                        {"metadata", "invalid_type"},
		`{"model":"pawl","chat_id":"x",` + hi + `}`:                             {"chat_id", "unknown_parameter"},
		`{"model":"pawl","Model":"pawl",` + hi + `}`:                            {"Model", "unknown_parameter"},
		`{"model":"pawl","messages":[{"role":"assistant","content":"Hi."}]}`:    {"messages", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"system","content":"Hi."}]}`:       {"messages", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"king","content":"Hi."}]}`:         {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"user","content":" "}]}`:           {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"user","content":"x","extra":1}]}`: {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"tool","tool_call_id":"c","content":"x"},{"role":"user","content":"x"}]}`:                      {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}]}`:           {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%%"}}]}]}`:     {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`:                                  {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"assistant","content":[{"type":"file","file":{}}]},{"role":"user","content":"x"}]}`:            {"messages[0]", "invalid_value"},
		`{"model":"pawl","messages":[{"role":"assistant","tool_calls":[{"id":"","function":{"name":"x"}}]},{"role":"user","content":"x"}]}`: {"messages[0]", "invalid_value"},
	} {
		status := http.StatusBadRequest
		if want.code == "model_not_found" {
			status = http.StatusNotFound
		}
		var c completion
		p.do(status, &c, "POST", "/v1/chat/completions", body)
		if c.Error == nil || c.Error.Param == nil || *c.Error.Param != want.param || c.Error.Code != want.code || c.Error.Type != "invalid_request_error" || c.Error.Message == "" {
			t.Errorf("%s: %+v, want %v", body, c.Error, want)
		}
	}
	for body, status := range map[string]int{
		`{`: 400, `[]`: 400, `"x"`: 400, "{\"model\":\"\xff\"}": 400, `{"model":"pawl","model":"pawl",` + hi + `}`: 400, `{"model":"pawl",` + hi + `} {}`: 400,
		strings.Repeat("[", 9000): 400, `{"model":"pawl","metadata":` + strings.Repeat(`{"a":`, 1500): 400,
		`{"model":"` + strings.Repeat("x", 10000) + `"}`: 413,
	} {
		var c completion
		p.do(status, &c, "POST", "/v1/chat/completions", body)
		if c.Error == nil || c.Error.Message == "" {
			t.Errorf("%s: it is told in another form", clip(body))
		}
	}
	var c completion
	p.do(http.StatusNotFound, &c, "GET", "/v1/chat/completions", "")
	if c.Error == nil {
		t.Error("another method is told of in another form")
	}
	locked := serves(t, journal.Memory(), scripted.New(scripted.Text("No.")), serve.Options{Tokens: []string{"0123456789abcdef"}})
	locked.do(http.StatusUnauthorized, &c, "GET", "/v1/models", "")
	if c.Error.Code != "invalid_api_key" || c.Error.Type != "authentication_error" {
		t.Errorf("%+v", c.Error)
	}
	locked.do(http.StatusOK, nil, "GET", "/v1/models", "", "Authorization", "Bearer 0123456789abcdef")
}

// OpenAI's client has headers of its own, which a page that may call has to be let send.
func TestAPageMayTalkToIt(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("Yes.")), serve.Options{Origins: []string{"https://chat.example"}})
	res := p.ask(t.Context(), "OPTIONS", "/v1/chat/completions", "", "Origin", "https://chat.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang,x-pawl-session")
	defer func() { _ = res.Body.Close() }()
	if h := res.Header.Get("Access-Control-Allow-Headers"); res.StatusCode != http.StatusNoContent || h != "*, Authorization" {
		t.Errorf("%d %q", res.StatusCode, h)
	}
	h := p.do(http.StatusOK, nil, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}`, "Origin", "https://chat.example")
	if !strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-Pawl-Session") {
		t.Error(h)
	}
}

func TestAgentsAreListedAsModels(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Text("No.")), serve.Options{Card: agent.AgentCard{Name: "our/agent"}})
	type item struct{ ID, Object string }
	var list struct {
		Object string
		Data   []item
	}
	p.do(http.StatusOK, &list, "GET", "/v1/models", "")
	if list.Object != "list" || len(list.Data) != 1 || list.Data[0] != (item{"our/agent", "model"}) {
		t.Errorf("%+v", list)
	}
	var one item
	p.do(http.StatusOK, &one, "GET", "/v1/models/our%2Fagent", "")
	if one != list.Data[0] {
		t.Errorf("%+v", one)
	}
	var c completion
	p.do(http.StatusNotFound, &c, "GET", "/v1/models/other", "")
	if c.Error.Code != "model_not_found" {
		t.Errorf("%+v", c.Error)
	}
}

// What a run fails with is told as the server's: a client that was let in would take the provider's 401 for its own.
func TestARunThatFailsEndsTheChat(t *testing.T) {
	for provider, c := range map[int]struct {
		status     int
		kind, code string
	}{
		401: {http.StatusBadGateway, "server_error", "unauthorized"},
		400: {http.StatusBadGateway, "server_error", "validation"},
		429: {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"},
		503: {http.StatusServiceUnavailable, "server_error", "not_available"},
	} {
		p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Error: &scripted.Failure{Status: provider, Message: "no key"}}), serve.Options{})
		var got completion
		h := p.do(c.status, &got, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}`)
		if h.Get("X-Should-Retry") != "false" || h.Get("Retry-After") != "" { // a client that asks again has all of it done again
			t.Errorf("%d: %v", provider, h)
		}
		if got.Error == nil || !strings.Contains(got.Error.Message, "no key") || got.Error.Type != c.kind || got.Error.Code != c.code {
			t.Errorf("%d: %+v", provider, got.Error)
		}
	}
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Error: &scripted.Failure{Status: 401, Message: "no key"}}), serve.Options{})
	_, _, finish, last, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Hi."}],"stream":true}`)
	if last.Error == nil || !strings.Contains(last.Error.Message, "no key") || last.Error.Type != "server_error" || finish != "" {
		t.Errorf("%s, %+v", finish, last.Error)
	}
}

// A client that goes away wants its answer no more: the run ends, on record.
func TestAChatThatNobodyReadsIsCancelled(t *testing.T) {
	for name, body := range map[string]string{"streamed": `,"stream":true`, "whole": ``} {
		t.Run(name, func(t *testing.T) {
			g := gated1()
			p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "Wait.", Calls: callOf("wait")}, scripted.Text("Done.")), serve.Options{}, g.tool)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-g.started
				cancel()
			}()
			req, _ := http.NewRequestWithContext(ctx, "POST", p.http.URL+"/v1/chat/completions", strings.NewReader(`{"model":"pawl","messages":[{"role":"user","content":"Go."}]`+body+`}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Pawl-Session", "s")
			res, err := p.client.Do(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			for e, err := range journal.Follow(t.Context(), p.store, "s", 0) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.Data.(journal.RunFinished); ok {
					if d.Status != string(agent.StatusCanceled) {
						t.Errorf("it ended as %s", d.Status)
					}
					break
				}
			}
		})
	}
}

type held struct {
	tool    tool.Tool
	started chan struct{}
}

// gated1 is a tool that waits until it is cancelled.
func gated1() held {
	h := held{started: make(chan struct{}, 10)}
	h.tool = tool.Func("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		h.started <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	return h
}

// In a session that the client names, its next message answers what waits.
func TestAChatAnswersWhatWaits(t *testing.T) {
	asks := hook.Middleware{Name: "asks", PreToolUse: func(context.Context, *hook.ToolUse) (hook.Decision, error) {
		return hook.Asking("It is far away."), nil
	}}
	script := func() *scripted.Model {
		return scripted.New(
			scripted.Turn{Text: "Let me look.", Calls: []scripted.Call{{Name: "look", Input: `{}`}}},
			scripted.Turn{Text: "I looked.", When: scripted.When{ToolOK: "call_1_1"}},
			scripted.Turn{Text: "I may not.", When: scripted.When{ToolError: "call_1_1"}},
		)
	}
	serving := func(t *testing.T) *place {
		e, err := loop.New(loop.Config{Model: script(), Tools: []tool.Tool{look()}})
		if err != nil {
			t.Fatal(err)
		}
		return open(t, serve.Of(agent.Agent{ID: "a", Hooks: []hook.Middleware{asks}}, e, journal.Memory()), serve.Options{})
	}
	for word, want := range map[string]string{"Yes.": "I looked.", "no": "I may not.", "Not today, yes?": "I may not."} {
		t.Run(word, func(t *testing.T) {
			p := serving(t)
			var c completion
			p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Look."}]}`, "X-Pawl-Session", "s")
			if got := c.said(); !strings.HasPrefix(got, "Let me look.\n\nMay this run?\n\nlook {}\n\nIt is far away.\n\nAnswer yes or no.") || *c.Choices[0].Finish != "stop" {
				t.Fatalf("it asked %q", got)
			}
			b, _ := json.Marshal(word)
			text, _, finish, _, _ := p.chunks(`{"model":"pawl","stream":true,"messages":[{"role":"user","content":`+string(b)+`}]}`, "X-Pawl-Session", "s")
			if text != want || finish != "stop" {
				t.Errorf("it said %q (%s), want %q", text, finish, want)
			}
			if strings.HasPrefix(word, "Not") {
				log, err := journal.Open(t.Context(), p.store, "s")
				if err != nil {
					t.Fatal(err)
				}
				if b, _ := json.Marshal(log.State().Messages); !strings.Contains(string(b), word) {
					t.Errorf("the model was not told why: %s", b)
				}
			}
		})
	}
	t.Run("a session that nobody named", func(t *testing.T) {
		p := serving(t)
		text, _, _, _, h := p.chunks(`{"model":"pawl","stream":true,"messages":[{"role":"user","content":"Look."}]}`)
		session := h.Get("X-Pawl-Session")
		if !strings.Contains(text, "/v1/sessions/"+session+"/answers") {
			t.Errorf("it does not say how it is answered: %q", text)
		}
		var st status1
		p.do(http.StatusOK, &st, "GET", "/v1/sessions/"+session, "")
		if len(st.Pending) != 1 || !strings.Contains(text, `"`+st.Pending[0].ID+`"`) {
			t.Errorf("%+v", st)
		}
	})
}

type status1 struct{ Pending []journal.Pending }

func TestAChatAnswersAQuestion(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(
		scripted.Calls(scripted.Call{Name: "ask_user", Input: `{"question":"Which colour?"}`}),
		scripted.Turn{Text: "Blue it is.", When: scripted.When{Contains: "sky blue"}},
	), serve.Options{}, askuser.New(nil))
	var c completion
	p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Paint."}]}`, "X-Pawl-Session", "s")
	if !strings.Contains(c.said(), "Which colour?") {
		t.Fatalf("it said %q", c.said())
	}
	p.do(http.StatusBadRequest, nil, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.example/b.png"}}]}]}`, "X-Pawl-Session", "s")
	p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"sky blue"}]}`, "X-Pawl-Session", "s")
	if c.said() != "Blue it is." {
		t.Errorf("it said %q", c.said())
	}
}

func TestAServerThatStopsTellsItsChats(t *testing.T) {
	g := gated1()
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Calls: callOf("wait")}, scripted.Text("Done.")), serve.Options{Grace: 10 * time.Millisecond}, g.tool)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-g.started
		_ = p.server.Close()
	}()
	_, _, finish, last, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Go."}],"stream":true}`)
	<-closed
	if last.Error == nil || finish != "" {
		t.Errorf("%s %+v", finish, last)
	}
}

// A reply that the output limit cut is gone on with: the pieces are one text.
func TestWhatWasCutIsJoined(t *testing.T) {
	p := serves(t, journal.Memory(), scripted.New(scripted.Turn{Text: "It is fi", Stop: model.StopLength}, scripted.Text("ve.")), serve.Options{})
	text, _, _, _, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"How much?"}],"stream":true}`)
	if text != "It is five." {
		t.Errorf("%q", text)
	}
}

// A decider that has a run done again has its answer, and not the one before, in a whole answer.
func TestARevisedAnswerIsTheLast(t *testing.T) {
	e, err := loop.New(loop.Config{Model: streams(func(_ context.Context, req model.Request, cb model.StreamHandler) error {
		return cb(model.StreamResult{Final: true, Response: &model.Response{Message: message.Assistant("Good."), Stop: model.StopEnd}})
	})})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	twice := agent.DeciderFunc(func(context.Context, agent.RunInfo, *agent.Request, *agent.Result) (agent.FinalizeDecision, error) {
		n++
		return agent.FinalizeDecision{Revise: n%2 == 1}, nil
	})
	p := open(t, serve.Of(agent.Agent{ID: "a", Deciders: []agent.Decider{twice}}, e, journal.Memory(), agent.WithMaxRevise(2)), serve.Options{})
	var c completion
	p.do(http.StatusOK, &c, "POST", "/v1/chat/completions", `{"model":"pawl","messages":[{"role":"user","content":"Go."}]}`)
	text, _, _, _, _ := p.chunks(`{"model":"pawl","messages":[{"role":"user","content":"Go."}],"stream":true}`)
	if c.said() != "Good." || text != "Good.\n\n[The reply broke off. Once more, from its beginning:]\n\nGood." {
		t.Errorf("%q, %q", c.said(), text)
	}
}

func FuzzChat(f *testing.F) {
	e, err := loop.New(loop.Config{Model: scripted.New(slices.Repeat([]scripted.Turn{scripted.Text("Yes.")}, 1<<12)...)}) // one for each reply that a request can have
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		`{"model":"pawl","messages":[{"role":"user","content":"Hi."}]}`, `{"model":"pawl","messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"stream":true}`,
		`{"model":"pawl","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"x","arguments":"{"}}]},{"role":"tool","tool_call_id":"c","content":"y"},{"role":"user","content":"x"}],"user":"u"}`,
		`{"model":"pawl","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,"}}]}]}`, `{}`, `[`, `{"model":"pawl","messages":null,"stop":[]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		p := open(t, serve.Of(agent.Agent{ID: "a"}, e, journal.Memory()), serve.Options{MaxBody: 1 << 16})
		res := p.ask(t.Context(), "POST", "/v1/chat/completions", body, "Content-Type", "application/json")
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]int{200, 400, 404, 413}, res.StatusCode) {
			t.Errorf("%q: %d %s", body, res.StatusCode, b)
		}
		if res.StatusCode != http.StatusOK {
			var c completion
			if err := json.Unmarshal(b, &c); err != nil || c.Error == nil || c.Error.Message == "" {
				t.Errorf("%q: %s", body, b)
			}
		}
	})
}

func callOf(name string) []scripted.Call { return []scripted.Call{{Name: name, Input: `{}`}} }
