package cassettes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
)

// object is a JSON object as encoding/json reads it.
type object = map[string]any

// dialect is what the tests know of a wire format by themselves: it shares no code with the providers.
type dialect struct {
	open   func(name string, opts ...model.Option) model.Model
	path   string                       // what stands behind the base URL
	gather func(events []object) object // the document that the events of a stream add up to
	read   func(document object) reply
	sent   func(request object) []any // what a request has of the first reply of the model
	turns  func(request object) []turn
}

var dialects = map[string]dialect{
	cassettes.Anthropic: {
		open: func(name string, opts ...model.Option) model.Model { return anthropic.New(name, opts...) },
		path: "/v1/messages", gather: gatherAnthropic, read: readAnthropic, sent: sentAnthropic, turns: turnsAnthropic,
	},
	cassettes.OpenAI: {
		open: func(name string, opts ...model.Option) model.Model { return openai.New(name, opts...) },
		path: "/chat/completions", gather: gatherChat, read: readChat, sent: sentChat, turns: turnsChat,
	},
	cassettes.Responses: {
		open: func(name string, opts ...model.Option) model.Model { return openai.NewResponses(name, opts...) },
		path: "/responses", gather: gatherResponses, read: readResponses, sent: sentResponses, turns: turnsResponses,
	},
	cassettes.Gemini: {
		open: func(name string, opts ...model.Option) model.Model { return gemini.New(name, opts...) },
		path: "/models/", gather: gatherGemini, read: readGemini, sent: sentGemini, turns: turnsGemini,
	},
}

// reply is what a recording has of a model's reply.
type reply struct {
	ID, Model string
	Stop      model.StopReason
	Usage     model.Usage
	Content   []any
}

// replyOf reads the reply of an exchange, whole or streamed.
func replyOf(t *testing.T, x cassettes.Exchange) reply {
	t.Helper()
	d := dialects[x.API()]
	if !x.Streamed() {
		return d.read(parse(t, x.ResponseBody))
	}
	return d.read(d.gather(eventsOf(t, x)))
}

// eventsOf gives the data of an event stream.
func eventsOf(t *testing.T, x cassettes.Exchange) (events []object) {
	t.Helper()
	for line := range bytes.Lines(x.ResponseBody) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); ok && string(data) != "[DONE]" {
			events = append(events, parse(t, data))
		}
	}
	return events
}

func parse(t *testing.T, data []byte) (o object) {
	t.Helper()
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatalf("not a JSON object: %v: %.300s", err, data)
	}
	return o
}

// open makes the model that an exchange asks, under its recorded address, with every call brought to the server.
func open(t *testing.T, x cassettes.Exchange, s *cassettes.Server) model.Model {
	t.Helper()
	return openOver(t, x, s.Anywhere())
}

// openOver is open with a client of one's own.
func openOver(t *testing.T, x cassettes.Exchange, c *http.Client) model.Model {
	t.Helper()
	d := dialects[x.API()]
	base, rest, ok := strings.Cut(x.URL, d.path)
	if !ok {
		t.Fatalf("%s has no %s", x.URL, d.path)
	}
	name := text(parse(t, x.RequestBody)["model"])
	if x.API() == cassettes.Gemini {
		name, _, _ = strings.Cut(rest, ":")
	}
	return d.open(name, model.WithBaseURL(base), model.WithKey("test-key"), model.WithHTTPClient(c))
}

// pathOf is the path that an exchange's request had. Anthropic's client asks for betas there; that isn't needed.
func pathOf(t *testing.T, x cassettes.Exchange) string {
	t.Helper()
	u, err := url.Parse(strings.TrimSuffix(x.URL, "?beta=true"))
	if err != nil {
		t.Fatal(err)
	}
	return u.RequestURI()
}

// heard is what a listener heard of a stream.
type heard struct{ Text, Reasoning string }

// ask asks a model as the exchange did, for a stream or a whole reply.
func ask(ctx context.Context, m model.Model, streamed bool, h message.History) (r *model.Response, said heard, err error) {
	req := model.Request{Messages: h}
	if !streamed {
		r, err = m.Complete(ctx, req)
		return r, said, err
	}
	err = m.CompleteStream(ctx, req, func(s model.StreamResult) error {
		said.Text, said.Reasoning = said.Text+s.Text, said.Reasoning+s.Reasoning
		if s.Final {
			r = s.Response
		}
		return nil
	})
	return r, said, err
}

// Short ways through what encoding/json reads; the zero value for what isn't there.

func text(v any) string   { s, _ := v.(string); return s }
func list(v any) []any    { l, _ := v.([]any); return l }
func member(v any) object { o, _ := v.(object); return o }
func number(v any) int    { f, _ := v.(float64); return int(f) }
func truth(v any) bool    { b, _ := v.(bool); return b }
func first(v any) object  { return member(at(list(v), 0)) }
func at(l []any, i int) any {
	if i >= len(l) {
		return nil
	}
	return l[i]
}

// canonical gives the JSON of v, with the members of objects in order.
func canonical(v any) string {
	b, _ := json.Marshal(v) // it was read from JSON
	return string(b)
}

// argued gives the canonical JSON of arguments that are a text on the wire.
func argued(arguments string) string {
	var v any
	if json.Unmarshal([]byte(arguments), &v) != nil {
		return arguments
	}
	return canonical(v)
}
