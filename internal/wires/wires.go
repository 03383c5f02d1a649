// Package wires has every wire format side by side, for tests: a model of each that needs no network, and the rules of its requests, read
// with encoding/json from the providers' documents and error texts, so that they are no copy of an encoder. What one provider said has to
// be a valid request to each of them.
package wires

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
)

// Wire is one format of requests and replies.
type Wire struct {
	Name     string // tells the formats apart; two may have one provider
	Provider string // as in message.Origin
	Dir      string // its fixtures, below the directory model
	New      func(opts ...model.Option) model.Model
	read     func(body []byte) ([]Said, error)
}

// All has every format. Another one is a line here, a reader of its requests, and fixtures.
var All = []Wire{
	{"anthropic", "anthropic", "anthropic/testdata", func(o ...model.Option) model.Model { return anthropic.New("claude-sonnet-4-5", o...) }, readAnthropic},
	{"openai", "openai", "openai/testdata/chat", func(o ...model.Option) model.Model { return openai.New("gpt-5", o...) }, func(b []byte) ([]Said, error) { return readChat(b, 40) }},
	{"openai-compatible", "openai", "openai/testdata/chat", func(o ...model.Option) model.Model {
		return openai.New("qwen3", append([]model.Option{model.WithBaseURL("http://localhost:1/v1")}, o...)...)
	}, func(b []byte) ([]Said, error) { return readChat(b, 0) }},
	{"openai-responses", "openai-responses", "openai/testdata/responses", func(o ...model.Option) model.Model { return openai.NewResponses("gpt-5", o...) }, readResponses},
	{"gemini", "gemini", "gemini/testdata", func(o ...model.Option) model.Model { return gemini.New("gemini-2.5-flash", o...) }, readGemini},
	{"gemini-3", "gemini", "gemini/testdata", func(o ...model.Option) model.Model { return gemini.New("gemini-3-pro", o...) }, readGemini},
}

// Said is one thing that a request says, in its order.
type Said struct {
	Role string // "user" or "assistant"; results are the user's
	Kind string // "text", "reasoning", "call", "result", "file" or "opaque"
	Text string // of texts, thoughts and results; a file's bytes or its URL; the JSON of what is opaque
	ID   string // of a call, or the call of a result; "" where the wire has none
	Name string // of a call
	Args string // of a call
	Sign string // a signature, wherever the wire has it
}

// Read reads a request and says what of it the provider would refuse.
func (w Wire) Read(body []byte) ([]Said, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("not UTF-8")
	}
	said, err := w.read(body)
	if err != nil {
		return nil, fmt.Errorf("%s refuses: %w in %s", w.Name, err, body[:min(len(body), 4<<10)])
	}
	return said, nil
}

// errStop is how a round tripper ends a call whose request is all that was wanted.
var errStop = errors.New("wires: seen enough")

// Body gives the request that w makes of req. An error is one that came before any call.
func (w Wire) Body(req model.Request) (body []byte, err error) {
	_, err = w.Over(func(r *http.Request) (*http.Response, error) {
		body, err = io.ReadAll(r.Body)
		return nil, errors.Join(errStop, err)
	}).Complete(context.Background(), req)
	if body != nil {
		return body, nil
	}
	return nil, err
}

// Over makes a model whose calls are answered by f.
func (w Wire) Over(f func(*http.Request) (*http.Response, error)) model.Model {
	return w.New(model.WithKey("test-key"), model.WithHTTPClient(&http.Client{Transport: roundTrip(f)}))
}

// Answering makes a model that gets each reply from body, of that content type.
func (w Wire) Answering(contentType string, body func() io.Reader) model.Model {
	return w.Over(func(r *http.Request) (*http.Response, error) {
		_ = r.Body.Close()
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1, Request: r,
			Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(body()),
		}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Takes reports what is wrong with a reply: each wire has to take it back, in a transcript and after a way through a journal. Calls get
// results, as the loop would give them.
func Takes(reply message.Message) error {
	h := message.Repair(message.NewHistory(message.User("Hi"), unique(reply), message.User("Go on")))
	b, err := h.MarshalJSON()
	if err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("the journal is not UTF-8: %q", b)
	}
	var again message.History
	if err := again.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("the journal can't be read: %w", err)
	}
	for _, w := range All {
		body, err := w.Body(model.Request{Messages: h})
		if hasFiles(reply) && errors.Is(err, errdefs.Validation) {
			continue // not every wire takes a model's files, and those that don't say so before the call
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
		if _, err := w.Read(body); err != nil {
			return err
		}
		if two, err := w.Body(model.Request{Messages: again}); err != nil || !bytes.Equal(body, two) {
			return fmt.Errorf("%s: %w; after a way through the journal it says %s, before %s", w.Name, err, two, body)
		}
	}
	return nil
}

func hasFiles(m message.Message) bool {
	for range message.Of[message.File](m) {
		return true
	}
	return false
}

// unique renames calls that share an id, as the loop does.
func unique(m message.Message) message.Message {
	seen := map[string]bool{}
	var parts []message.Part
	for p := range m.Parts() {
		if c, ok := p.(message.ToolCall); ok {
			for n := 2; seen[c.ID]; n++ {
				c.ID = fmt.Sprintf("%s_%d", c.ID, n)
			}
			seen[c.ID] = true
			p = c
		}
		parts = append(parts, p)
	}
	return message.New(m.Role(), parts...)
}
