package anthropic

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

const (
	provider = "anthropic"
	ownURL   = "https://api.anthropic.com"
	path     = "/v1/messages"
)

// Model is one model behind the Messages API. Make it with [New]. Safe for concurrent use.
type Model struct {
	name   string
	api    *httpapi.API
	can    model.Capabilities
	family family
	format any // the key of messages' encodings
	encode func(message.Message) []byte
	output atomic.Pointer[output]
	free   model.Model // the same, answering by a tool where the API takes no schema: see tooled
	chosen model.Model
	head   atomic.Pointer[head]
}

var (
	_ model.Model     = (*Model)(nil)
	_ model.Describer = (*Model)(nil)
	_ model.Counter   = (*Model)(nil)
	_ model.Uploader  = (*Model)(nil)
)

// New makes a model; name is as the server knows it, such as "claude-sonnet-4-5". It calls nothing and never fails: a missing key or
// a bad URL is an error of the first call.
//
// A base URL is the server without "/v1/messages"; a "/v1" at its end doesn't matter. The API has no default output limit, so where
// Settings.MaxTokens is 0 the request asks for 4096 tokens of Claude 3, 8192 of Claude 3.5 and of models whose version is not in
// their name, and 32000 of all later ones: enough for a large file in one call, allowed by each of them, and a small part of their
// windows, against which the API counts it. Thoughts count against it, too: where Settings.Reasoning asks for them, a request without a limit has one
// that is larger by as much, and the tokens to think with leave at least a quarter of any limit for the answer.
func New(name string, opts ...model.Option) *Model {
	api := httpapi.New(provider, ownURL, []string{"ANTHROPIC_API_KEY"}, opts, func(key string) (string, string) { return "X-Api-Key", key })
	api.Base = strings.TrimSuffix(api.Base, "/v1")
	api.Explain = explain
	if api.Header.Get("Anthropic-Version") == "" {
		api.Header.Set("Anthropic-Version", "2023-06-01")
	}
	f := familyOf(name)
	m := &Model{name: name, api: api, family: f, can: model.Capabilities{
		Name: api.Provider + "/" + name, Provider: provider, Files: api.Provider,
		Tools: true, Images: true, Documents: true, Schema: f.schema, TopK: true, Stop: true, MaxTokens: true,
		Reasoning: f.levels, ProviderTools: f.providerTools(),
	}}
	m.format, m.encode = format{}, encode
	if !m.keeps() {
		m.format, m.encode = inlineFormat{}, encodeInline
	}
	m.free, m.chosen = model.OutputByTool(plain{m, true}), model.OutputByTool(plain{m, false})
	return m
}

// Capabilities says what the model can do, by its name. An output schema needs Claude 4.5 or later; bounds in it become words of its descriptions, since the API refuses them, and for one that can't be said in the subset that the API takes (members of any name, any value, recursion) the model answers by a tool. Models from Claude Opus 4.7 on refuse
// temperature, top_p and top_k themselves, with an error of class validation; before them, these don't go with reasoning (a temperature of 1 and a top_p of 0.95
// and more do), nor does a choice that forces a call. Models before Claude 3.7 don't think and have no tools that the API runs itself. A name that is not known,
// or came later, may be asked for all.
func (m *Model) Capabilities() model.Capabilities { return m.can }

// Complete gives the whole reply.
func (m *Model) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	if m.byTool(&req) {
		return m.tooled(&req).Complete(ctx, req)
	}
	body, err := m.body(req, false)
	if err != nil {
		return nil, err
	}
	resp, err := m.api.Do(ctx, http.MethodPost, path, body.Content(), m.header(req, "application/json")) //nolint:bodyclose // httpapi.ReadAll closes it
	if err != nil {
		return nil, err
	}
	r, err := m.whole(ctx, resp)
	if err != nil {
		return nil, err
	}
	r.Rate = httpapi.RateOf(resp)
	return r, nil
}

// CompleteStream gives the reply as it is written. See [model.Model].
func (m *Model) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	if m.byTool(&req) {
		return m.streamByTool(ctx, &req, cb)
	}
	body, header, err := m.streamed(&req)
	if err != nil {
		return err
	}
	resp, err := m.api.Do(ctx, http.MethodPost, path, body.Content(), header)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // a reply that was read, or is given up
	var r *model.Response
	if httpapi.IsJSON(resp) {
		r, err = m.whole(ctx, resp)
	} else if r, err = m.listen(ctx, resp, req.Tools, cb); err == nil {
		httpapi.Finish(resp)
	}
	if err != nil {
		return err
	}
	r.Rate = httpapi.RateOf(resp)
	return cb(model.StreamResult{Final: true, Response: r})
}

// streamByTool is CompleteStream where the answer is to come by a tool; apart from it, which has no room for one more request on its stack.
func (m *Model) streamByTool(ctx context.Context, req *model.Request, cb model.StreamHandler) error {
	return m.tooled(req).CompleteStream(ctx, *req, cb)
}

// streamed is what is sent for a reply that comes as a stream.
func (m *Model) streamed(req *model.Request) (httpapi.Body, http.Header, error) {
	body, err := m.body(*req, true)
	return body, m.header(*req, "text/event-stream"), err
}

// whole reads a reply that is one JSON document.
func (m *Model) whole(ctx context.Context, resp *http.Response) (*model.Response, error) {
	data, err := m.api.ReadAll(ctx, resp)
	if err != nil {
		return nil, err
	}
	r, err := m.decode(data)
	return r, httpapi.WithID(err, resp)
}
