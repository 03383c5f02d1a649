package openai

import (
	"context"
	"math"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Vendor is a provider that speaks one of OpenAI's protocols, or both:
//
//	ollama := openai.Vendor{Name: "ollama", BaseURL: "http://localhost:11434/v1"}
//	m := ollama.New("llama3")
type Vendor struct {
	Name    string   // in error texts, before the model's name in Capabilities.Name, and the Provider of files that it keeps: "ollama"
	BaseURL string   // where it is, "/v1" included; model.WithBaseURL goes before it
	Env     []string // environment variables that may have the key, in order; none: it needs no key
}

// New makes a model that is asked over Chat Completions with OpenAI's name and base URL; the key comes from the options or from
// OPENAI_API_KEY. With model.WithBaseURL it asks any other server, which gets the same key: a [Vendor] has its own.
// New never fails; a bad base URL or a missing key is an error of each call.
func New(name string, opts ...model.Option) *Model { return vendor("openai").New(name, opts...) }

// NewResponses makes a model that is asked over the Responses API, otherwise as [New] does.
func NewResponses(name string, opts ...model.Option) *Responses {
	return vendor("openai-responses").NewResponses(name, opts...)
}

func vendor(name string) Vendor {
	return Vendor{Name: name, BaseURL: "https://api.openai.com/v1", Env: []string{"OPENAI_API_KEY"}}
}

// New makes a model of this vendor that is asked over Chat Completions. See the function [New].
func (v Vendor) New(name string, opts ...model.Option) *Model {
	c := v.client(name, opts)
	c.effort = effortOf(name, "xhigh") // what Chat Completions takes of OpenAI's newest, and all others understand who know more than high
	f := chatFormat{own: c.own(), files: c.keeper}
	return &Model{client: c, format: f, encode: f.encode, can: model.Capabilities{
		Name: c.vendor.Name + "/" + name, Provider: chat, Files: c.keeper,
		Tools: true, Images: true, Documents: true, Audio: true, Schema: true, Seed: true, Stop: true, MaxTokens: true, Penalties: true,
		Reasoning: c.effort.levels,
	}}
}

// NewResponses makes a model of this vendor that is asked over the Responses API. See the function [NewResponses].
func (v Vendor) NewResponses(name string, opts ...model.Option) *Responses {
	c := v.client(name, opts)
	c.effort = effortOf(name, "max")
	f := responsesFormat{files: c.keeper}
	return &Responses{client: c, format: f, encode: f.encode, can: model.Capabilities{
		Name: c.vendor.Name + "/" + name, Provider: responses, Files: c.keeper,
		Tools: true, Images: true, Documents: true, Schema: true, MaxTokens: true,
		Reasoning: c.effort.levels, ProviderTools: providerToolNames,
	}}
}

// client is what both protocols share.
type client struct {
	api    *httpapi.API
	vendor Vendor
	name   string // of the model
	effort effort
	keeper string // see keeper
	last   atomic.Pointer[head]
	routes bool // the server takes prompt_cache_key; others that speak the protocol may refuse what they don't know
	tail   atomic.Pointer[tail]
}

func (v Vendor) client(name string, opts []model.Option) *client {
	c := &client{vendor: v, name: name}
	c.api = httpapi.New(v.Name, v.BaseURL, v.Env, opts, func(key string) (string, string) { return "Authorization", "Bearer " + key })
	c.api.Explain = explain
	c.routes = c.at(".openai.com")
	c.vendor.Name = c.api.Provider
	c.keeper = keeper(v.Name, c.api.Base)
	return c
}

// own reports whether the server is OpenAI's, or Azure's, which runs the same.
func (c *client) own() bool { return c.at(".openai.com") || c.at(".azure.com") }

// at reports whether the server's host is in a domain.
func (c *client) at(domain string) bool {
	u, err := url.Parse(c.api.Base)
	return err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), domain)
}

// keeper says who keeps the files that are uploaded to a server, as message.File.Provider: OpenAI under one name for both protocols, everybody else under
// their own, because nobody knows another one's IDs.
func keeper(vendor, base string) string {
	switch u, err := url.Parse(base); {
	case err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), ".azure.com"):
		return "azure"
	case vendor == responses:
		return chat
	}
	return vendor
}

// admit finds what is wrong with a request before it is sent. file tells what is wrong with a file, "" for nothing.
func (c *client) admit(req *model.Request, can *model.Capabilities, file func(message.File) string) error {
	if err := can.Admit(*req); err != nil {
		return err
	}
	if req.Messages.Len() == 0 {
		return errdefs.Validation.Errorf("%s: no messages to answer", c.vendor.Name)
	}
	if err := c.admitReasoning(req); err != nil {
		return err
	}
	for _, t := range req.ProviderTools {
		if err := c.admitProviderTool(t); err != nil {
			return err
		}
	}
	for _, f := range []*float64{req.Temperature, req.TopP, req.FrequencyPenalty, req.PresencePenalty} {
		if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
			return errdefs.Validation.Errorf("%s: temperature, top_p and penalties have to be finite numbers", c.vendor.Name)
		}
	}
	if req.Messages.HasZero() || req.Messages.HasFiles() {
		return c.admitMessages(req.Messages, file)
	}
	return nil
}

// admitMessages finds what is wrong with messages.
func (c *client) admitMessages(h message.History, file func(message.File) string) error {
	for i, m := range h.All() {
		if m.IsZero() {
			return errdefs.Validation.Errorf("%s: message %d is the zero Message", c.vendor.Name, i+1)
		}
		if err := c.admitFiles(m, i, file); err != nil {
			return err
		}
	}
	return nil
}

// admitFiles finds what is wrong with the files of message i.
func (c *client) admitFiles(m message.Message, i int, file func(message.File) string) error {
	for f := range httpapi.FilesOf(m) {
		what := file(f)
		if m.Role() == message.RoleAssistant {
			what = "the model's own messages can't hold files: move it to a user message"
		}
		if what != "" {
			return errdefs.Validation.Errorf("%s: message %d: file of type %q: %s", c.vendor.Name, i+1, f.MIME, what)
		}
	}
	return nil
}

// complete asks for a whole reply and hands its body to decode.
func (c *client) complete(ctx context.Context, path string, body httpapi.Body, decode func(whole []byte) (*model.Response, error)) (*model.Response, error) {
	resp, err := c.api.Post(ctx, path, body, "") //nolint:bodyclose // httpapi.ReadAll closes it
	if err != nil {
		return nil, err
	}
	whole, err := c.api.ReadAll(ctx, resp)
	if err != nil {
		return nil, err
	}
	r, err := decode(whole)
	if err != nil {
		return nil, err
	}
	r.Rate = httpapi.RateOf(resp)
	return r, nil
}

// listener reads a stream. tools are those that the model was offered.
type listener func(ctx context.Context, tools []model.Tool, events *wire.Events, cb model.StreamHandler) (*model.Response, error)

// completeStream asks for a stream and hands it to stream, or to decode when the server answered as a whole.
func (c *client) completeStream(
	ctx context.Context, path string, body httpapi.Body, tools []model.Tool, cb model.StreamHandler,
	decode func(whole []byte) (*model.Response, error),
	stream listener,
) error {
	resp, err := c.api.Post(ctx, path, body, "text/event-stream")
	if err != nil {
		return err
	}
	var final *model.Response
	if httpapi.IsJSON(resp) {
		var whole []byte
		if whole, err = c.api.ReadAll(ctx, resp); err == nil {
			final, err = decode(whole)
		}
	} else {
		events := wire.NewEvents(resp.Body)
		if final, err = stream(ctx, tools, events, cb); err == nil {
			events.Release() // a reply is made of copies
		}
	}
	if err != nil {
		_ = resp.Body.Close() // what the server still has to say isn't waited for
		return err
	}
	httpapi.Finish(resp)
	final.Rate = httpapi.RateOf(resp)
	return cb(model.StreamResult{Final: true, Response: final})
}

// longestName is the most bytes of a function's name that both protocols take. A model may call what nobody offered, by any name, and that
// call is sent back with all others.
const longestName = 64
