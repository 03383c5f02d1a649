package gemini

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

const (
	provider = "gemini"
	ownBase  = "https://generativelanguage.googleapis.com/v1beta"
	keyName  = "X-Goog-Api-Key"
)

// Model is one model of the Gemini API. [New] is the only way to make one. It is safe for concurrent use.
type Model struct {
	api     *httpapi.API
	name    string // as the caller wrote it
	path    string // "/models/NAME:"
	streams string // the path of a call that streams
	can     model.Capabilities
	format  any // the key of messages' encodings
	encode  func(message.Message) []byte
	family  family
	signed  bool // every turn's first call needs a signature
	head    atomic.Pointer[head]
}

// New makes a model: "gemini-2.5-flash", or with its collection, "tunedModels/mine". It never fails: what is wrong with the options
// is said by the first call.
func New(name string, opts ...model.Option) *Model {
	m := &Model{name: name, signed: needsSignatures(name), family: familyOf(name)}
	m.api = httpapi.New(provider, ownBase, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, opts, func(key string) (string, string) {
		return keyName, key
	})
	m.api.Explain = explain
	segments := strings.Split(name, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	if len(segments) == 1 {
		segments = []string{"models", segments[0]}
	}
	m.path = "/" + strings.Join(segments, "/") + ":"
	m.streams = m.path + "streamGenerateContent?alt=sse"
	m.can = model.Capabilities{
		Name: m.api.Provider + "/" + m.name, Provider: provider, Files: m.api.Provider,
		Tools: true, Images: true, Documents: true, Audio: true, Schema: true, TopK: true, Seed: true, Stop: true, MaxTokens: true, Penalties: true,
		Reasoning: m.family.levels, ProviderTools: m.family.tools(),
	}
	m.format, m.encode = m.encoder()
	return m
}

// needsSignatures tells Gemini 3 and later, whose names may have no number ("gemini-pro-latest"), from what came before and from
// the other families behind the API.
func needsSignatures(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2")
}

// Capabilities says what the Gemini API can do.
func (m *Model) Capabilities() model.Capabilities { return m.can }

// Complete gives the whole reply.
func (m *Model) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	body, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	resp, err := m.api.Post(ctx, m.path+"generateContent", body, "") //nolint:bodyclose // httpapi.ReadAll closes it
	if err != nil {
		return nil, err
	}
	raw, err := m.api.ReadAll(ctx, resp)
	if err != nil {
		return nil, err
	}
	r, err := m.decode(raw)
	if err != nil {
		return nil, err
	}
	r.Rate = httpapi.RateOf(resp)
	return r, nil
}

// CompleteStream gives the reply as it is written.
func (m *Model) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	body, err := m.prepare(req)
	if err != nil {
		return err
	}
	resp, err := m.api.Post(ctx, m.streams, body, "text/event-stream")
	if err != nil {
		return err
	}
	var r *model.Response
	if httpapi.IsJSON(resp) { // a proxy that can't stream, or an error
		var raw []byte
		if raw, err = m.api.ReadAll(ctx, resp); err == nil {
			r, err = m.decode(raw)
		}
	} else {
		defer func() { _ = resp.Body.Close() }() // not drained: a stream that somebody leaves early may have no end
		r, err = m.stream(ctx, req.Tools, resp.Body, cb)
	}
	if err != nil {
		return err
	}
	r.Rate = httpapi.RateOf(resp)
	return cb(model.StreamResult{Final: true, Response: r})
}

// prepare checks what can be checked before a call and gives the body.
func (m *Model) prepare(req model.Request) (httpapi.Body, error) {
	if err := m.can.Admit(req); err != nil {
		return nil, err
	}
	if m.api.Base == ownBase && m.api.Header.Get(keyName) == "" && m.api.Header.Get("Authorization") == "" {
		return nil, errdefs.Unauthorized.Errorf("gemini: no API key: set GEMINI_API_KEY or GOOGLE_API_KEY, or pass model.WithKey")
	}
	return m.body(req)
}
