package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// png and pdf are small files; that they are broken is no model's business here.
const (
	png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	pdf = "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
)

var tools = []model.Tool{
	{Name: "read", Description: "Read a \"file\".", Schema: json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`)},
	{Name: "bash", Description: "Run a command.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}`)},
}

// request is one question, and what the provider has to see of it.
type request struct {
	name  string
	req   func() model.Request
	check func(t *testing.T, p Provider, got Seen)
}

var requests = []request{
	{"system", func() model.Request {
		r := hi()
		r.System = "Be brief.\nBe \"kind\"."
		return r
	}, func(t *testing.T, _ Provider, got Seen) {
		equal(t, "system", "Be brief.\nBe \"kind\".", got.System)
		equal(t, "messages", []SeenMessage{{"user", []SeenPart{{Kind: "text", Text: "Hi"}}}}, got.Messages)
	}},
	{"tool_round", func() model.Request {
		return model.Request{Tools: tools, Messages: toolRound()}
	}, wantToolRound},
	{"foreign_parts", func() model.Request {
		alien := message.Origin{Provider: "somebody-else", Extra: `{"alien":true}`}
		return conversation(message.New(
			message.RoleAssistant,
			message.Reasoning{Text: "alien thought", Signature: "alien", Origin: alien},
			message.Opaque{Provider: "somebody-else", JSON: `{"type":"alien"}`},
			message.Text{Text: "Hello", Origin: alien},
		))
	}, func(t *testing.T, _ Provider, got Seen) {
		equal(t, "messages", userAssistantUser(SeenPart{Kind: "text", Text: "Hello"}), got.Messages)
	}},
	{"image", func() model.Request {
		return file(message.File{MIME: "image/png", Data: png})
	}, func(t *testing.T, _ Provider, got Seen) { wantFile(t, "image/png", png, got) }},
	{"image_url", func() model.Request {
		return file(message.File{MIME: "image/png", URL: "https://example.com/cat.png?a=1&b=2"})
	}, func(t *testing.T, _ Provider, got Seen) {
		wantFile(t, "image/png", "https://example.com/cat.png?a=1&b=2", got)
	}},
	{"pdf", func() model.Request {
		return file(message.File{MIME: "application/pdf", Name: "report.pdf", Data: pdf})
	}, func(t *testing.T, _ Provider, got Seen) { wantFile(t, "application/pdf", pdf, got) }},
	{"result_files", func() model.Request {
		return conversation(
			message.Assistant("", message.ToolCall{ID: "call_1", Name: "read", Input: `{}`}),
			message.Results(message.ToolResult{Call: "call_1", Name: "read", Content: "a picture", Files: []message.File{{MIME: "image/png", Data: png}}}),
		)
	}, func(t *testing.T, _ Provider, got Seen) { wantFile(t, "image/png", png, got) }},
	setting("max_tokens", model.Settings{MaxTokens: 77}, func(s Seen) any { return s.MaxTokens }, 77),
	setting("temperature", model.Settings{Temperature: ptr(0.5)}, func(s Seen) any { return s.Temperature }, ptr(0.5)),
	setting("top_p", model.Settings{TopP: ptr(0.9)}, func(s Seen) any { return s.TopP }, ptr(0.9)),
	setting("top_k", model.Settings{TopK: ptr(40)}, func(s Seen) any { return s.TopK }, ptr(40)),
	setting("frequency_penalty", model.Settings{FrequencyPenalty: ptr(0.5)}, func(s Seen) any { return s.Frequency }, ptr(0.5)),
	setting("presence_penalty", model.Settings{PresencePenalty: ptr(-1.5)}, func(s Seen) any { return s.Presence }, ptr(-1.5)),
	setting("seed", model.Settings{Seed: ptr(int64(1234567890))}, func(s Seen) any { return s.Seed }, ptr(int64(1234567890))),
	setting("stop", model.Settings{Stop: []string{"END", "\n\"stop\""}}, func(s Seen) any { return s.Stop }, []string{"END", "\n\"stop\""}),
	choice("tool_choice_auto", model.ToolsAuto, "auto"),
	choice("tool_choice_none", model.ToolsNone, "none"),
	choice("tool_choice_required", model.ToolsRequired, "required"),
	choice("tool_choice_name", "bash", "bash"),
	{"output", func() model.Request {
		r := hi()
		r.Output = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
		return r
	}, func(t *testing.T, _ Provider, got Seen) { equal(t, "output schema", true, got.Output) }},
	{"invalid_input", func() model.Request {
		return conversation(
			message.Assistant("", message.ToolCall{ID: "call_1", Name: "read", Input: `{"file_path":"go.m`}, message.ToolCall{ID: "call_2", Name: "read", Input: `[1]`}),
			message.Results(message.ToolResult{Call: "call_1", Name: "read", Content: "cut off", IsError: true}, message.ToolResult{Call: "call_2", Name: "read", Content: "no", IsError: true}),
		)
	}, wantInvalidInput},
	{"consecutive", func() model.Request {
		return model.Request{Messages: message.NewHistory(message.User("one"), message.User("two"), message.Assistant("three"), message.Assistant("four"), message.User("five"))}
	}, func(t *testing.T, _ Provider, got Seen) {
		equal(t, "messages", []SeenMessage{
			{"user", []SeenPart{{Kind: "text", Text: "one"}, {Kind: "text", Text: "two"}}},
			{"assistant", []SeenPart{{Kind: "text", Text: "three"}, {Kind: "text", Text: "four"}}},
			{"user", []SeenPart{{Kind: "text", Text: "five"}}},
		}, got.Messages)
	}},
	{"unicode", func() model.Request {
		r := model.Request{System: odd, Messages: message.NewHistory(message.User(odd + "\xff"))}
		return r
	}, func(t *testing.T, _ Provider, got Seen) {
		equal(t, "system", odd, got.System)
		equal(t, "messages", []SeenMessage{{"user", []SeenPart{{Kind: "text", Text: odd + "\ufffd"}}}}, got.Messages)
	}},
}

// odd has what an encoder may get wrong.
const odd = "a\x00\x01\x1f\x7f\t\r\n\"\\/</script>&\u2028\u2029é世👋🏽\ufeff\ufffd"

func (p Provider) requests(t *testing.T) {
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			if p.lacks(r.name) {
				p.refused(t, r.req())
				return
			}
			got, _ := p.ask(t, r.req())
			r.check(t, p, got)
		})
	}
	t.Run("reasoning_back", p.reasoningBack)
	t.Run("prefix", p.prefix)
	t.Run("head", p.head)
	t.Run("nothing to say", func(t *testing.T) { p.refused(t, model.Request{System: "Be brief."}) })
	t.Run("a file of an unknown type", func(t *testing.T) { p.refused(t, file(message.File{MIME: "application/x-odd", Data: "x"})) })
	t.Run("a file that is in the journal", func(t *testing.T) { p.refused(t, file(message.File{MIME: "image/png", Hash: "abc"})) })
}

// ask sends a request both ways and gives what was seen of it, once, with the body of the call that isn't a stream.
func (p Provider) ask(t *testing.T, req model.Request) (Seen, []byte) {
	t.Helper()
	m, s := p.answering(t)
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatalf("Complete: %v", err)
	}
	if _, err := listen(t.Context(), t, m, req); err != nil {
		t.Fatalf("CompleteStream: %v", err)
	}
	calls := s.seen()
	if len(calls) != 2 {
		t.Fatalf("%d calls, want one for each way", len(calls))
	}
	got, streamed := p.read(t, calls[0]), p.read(t, calls[1])
	if got.Stream || !streamed.Stream {
		t.Errorf("stream: %v for Complete, %v for CompleteStream", got.Stream, streamed.Stream)
	}
	streamed.Stream = got.Stream
	if diff := cmp.Diff(got, streamed); diff != "" {
		t.Errorf("the two ways ask differently (-whole +stream):\n%s", diff)
	}
	return got, calls[0].body
}

// answering is a model whose provider answers every call with the fixture text.
func (p Provider) answering(t *testing.T) (model.Model, *server) {
	t.Helper()
	body, sse := p.fixture(t, "text.json"), p.fixture(t, "text.sse")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, c call) {
		if p.Read(t, c.path, c.header, c.body).Stream {
			stream(w, [][]byte{sse})
			return
		}
		whole(w, http.StatusOK, body)
	})
	return p.model(s), s
}

// read reads a call and makes what is left to wires the same: neighbours of a role are merged, tools count as users.
func (p Provider) read(t *testing.T, c call) Seen {
	t.Helper()
	if !json.Valid(c.body) {
		t.Fatalf("the body is not JSON: %s", c.body)
	}
	got := p.Read(t, c.path, c.header, c.body)
	var merged []SeenMessage
	for _, m := range got.Messages {
		if m.Role == "tool" {
			m.Role = "user"
		}
		if n := len(merged); n > 0 && merged[n-1].Role == m.Role {
			merged[n-1].Parts = append(slices.Clip(merged[n-1].Parts), m.Parts...)
			continue
		}
		merged = append(merged, m)
	}
	got.Messages = merged
	return got
}

// refused checks that a request fails with Validation, both ways, and that nothing is called.
func (p Provider) refused(t *testing.T, req model.Request) {
	t.Helper()
	m, s := p.answering(t)
	_, err := m.Complete(t.Context(), req)
	streamed := m.CompleteStream(t.Context(), req, func(model.StreamResult) error {
		t.Error("the handler was called")
		return nil
	})
	for _, err := range []error{err, streamed} {
		if !errors.Is(err, errdefs.Validation) {
			t.Errorf("got %v, want an error of class validation", err)
		}
	}
	if n := len(s.seen()); n != 0 {
		t.Errorf("the provider was called %d times", n)
	}
}

// head checks what every call says: model, key, tools.
func (p Provider) head(t *testing.T) {
	r := hi()
	r.Tools = tools
	m, s := p.answering(t)
	if _, err := m.Complete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := p.read(t, s.seen()[0])
	equal(t, "key", Key, got.Key)
	equal(t, "tools", []string{"read", "bash"}, got.Tools)
	if c, ok := model.CapabilitiesOf(m); !ok || c.Provider != p.Name || got.Model == "" || !strings.HasSuffix(c.Name, "/"+got.Model) {
		t.Errorf("model %q, capabilities of %q %q", got.Model, c.Provider, c.Name)
	}
}

// prefix checks that a second step sends the first step's bytes again, up to the end of its last message.
func (p Provider) prefix(t *testing.T) {
	const mark = "the-last-of-step-one"
	h := toolRound().Append(message.User(mark))
	r := model.Request{System: "Be brief.", Tools: tools, Messages: h}
	m, s := p.answering(t)
	for range 2 {
		if _, err := m.Complete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		h = h.Append(message.Assistant("Well."), message.User("And then?"))
		r.Messages = h
	}
	one, two := s.seen()[0].body, s.seen()[1].body
	end := bytes.Index(one, []byte(mark)) + len(mark)
	if len(two) < end || !bytes.Equal(one[:end], two[:end]) {
		t.Errorf("the second step moved the prefix:\n%s\n%s", one, two)
	}
}

// reasoningBack sends the reasoning of the fixture back to who made it.
func (p Provider) reasoningBack(t *testing.T) {
	p.skip(t, "reasoning")
	p.skip(t, "reasoning_back")
	p.skip(t, "signature")
	got, _ := p.ask(t, conversation(p.complete(t, "reasoning").Message))
	var signature, said string
	for _, m := range got.Messages {
		for _, part := range m.Parts {
			signature += part.Signature
			if part.Kind == "text" && m.Role == "assistant" {
				said += part.Text
			}
		}
	}
	equal(t, "signature", "c2lnbmF0dXJl", signature)
	equal(t, "text", "4", said)
}
