package openai

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// bodies are the two ways in which a body is built, with the count of messages that were encoded.
func bodies(encoded *int) map[string]func(*model.Request) httpapi.Body {
	c, r := compatible(), stateless()
	type chatCounted struct{}
	type responsesCounted struct{}
	count := func(encode func(message.Message) []byte) func(message.Message) []byte {
		return func(m message.Message) []byte { *encoded++; return encode(m) }
	}
	return map[string]func(*model.Request) httpapi.Body{
		"chat": func(req *model.Request) httpapi.Body {
			return c.body(req, true, c.begin, chatCounted{}, count(chatFormat{}.encode))
		},
		"responses": func(req *model.Request) httpapi.Body {
			return r.body(req, true, r.begin, responsesCounted{}, count(responsesFormat{}.encode))
		},
	}
}

func steps(n int) message.History {
	var h message.History
	for i := range n {
		id := fmt.Sprint("call_", i)
		h = h.Append(
			message.Assistant("Let me look.", message.ToolCall{ID: id, Name: "read", Input: `{"file_path":"go.mod"}`}),
			message.Results(message.ToolResult{Call: id, Content: strings.Repeat("x", 100)}))
	}
	return h
}

func settings() model.Settings {
	return model.Settings{MaxTokens: 100, Temperature: ptr(0.5), ToolChoice: model.ToolsRequired}
}

func TestAFurtherStepEncodesOnlyWhatIsNew(t *testing.T) {
	var encoded int
	for name, build := range bodies(&encoded) {
		encoded = 0
		req := model.Request{System: "Be brief.", Messages: steps(10), Tools: []model.Tool{{Name: "read"}}, Settings: settings()}
		before := build(&req)
		if encoded != 20 {
			t.Errorf("%s: the first step encoded %d messages", name, encoded)
		}
		req.Messages = req.Messages.Append(message.User("And?"))
		after := build(&req)
		if encoded != 21 {
			t.Errorf("%s: the second step encoded %d messages", name, encoded-20)
		}
		for i := range before[:len(before)-1] {
			if &before[i][0] != &after[i][0] {
				t.Errorf("%s: piece %d was made anew", name, i)
			}
		}
	}
}

func TestAStepAllocatesTheListOfPiecesAlone(t *testing.T) {
	short, long := steps(2), steps(500)
	for name, m := range map[string]interface {
		build(*model.Request) httpapi.Body
	}{"chat": buildChat{compatible()}, "responses": buildResponses{stateless()}} {
		for _, h := range []message.History{short, long} {
			req := model.Request{System: "Be brief.", Messages: h, Tools: []model.Tool{{Name: "read"}}, Settings: settings()}
			m.build(&req)
			req.Settings = settings() // equal, not identical
			if n := testing.AllocsPerRun(100, func() { m.build(&req) }); n > 1 {
				t.Errorf("%s, %d messages: %.0f allocations", name, h.Len(), n)
			}
		}
	}
}

type buildChat struct{ m *Model }

func (b buildChat) build(req *model.Request) httpapi.Body {
	return b.m.body(req, true, b.m.begin, b.m.format, b.m.encode)
}

type buildResponses struct{ m *Responses }

func (b buildResponses) build(req *model.Request) httpapi.Body {
	return b.m.body(req, true, b.m.begin, b.m.format, b.m.encode)
}

func TestAnotherHeadIsMadeForWhateverDiffers(t *testing.T) {
	tools := []model.Tool{{Name: "read"}, {Name: "write"}}
	base := model.Request{System: "a", Tools: tools, Settings: settings()}
	for name, change := range map[string]func(*model.Request){
		"system":      func(r *model.Request) { r.System = "b" },
		"fewer tools": func(r *model.Request) { r.Tools = tools[:1] },
		"other tools": func(r *model.Request) { r.Tools = append([]model.Tool(nil), tools...) },
		"no tools":    func(r *model.Request) { r.Tools = nil },
		"max tokens":  func(r *model.Request) { r.MaxTokens = 1 },
		"temperature": func(r *model.Request) { r.Temperature = nil },
		"top_p":       func(r *model.Request) { r.TopP = ptr(0.1) },
		"frequency":   func(r *model.Request) { r.FrequencyPenalty = ptr(0.1) },
		"presence":    func(r *model.Request) { r.PresencePenalty = ptr(0.1) },
		"seed":        func(r *model.Request) { r.Seed = ptr(int64(1)) },
		"stop":        func(r *model.Request) { r.Stop = []string{"x"} },
		"tool choice": func(r *model.Request) { r.ToolChoice = "" },
		"reasoning":   func(r *model.Request) { r.Reasoning = model.ReasoningLow },
		"provider":    func(r *model.Request) { r.ProviderTools = []model.ProviderTool{{Name: model.WebSearch}} },
		"output":      func(r *model.Request) { r.Output = []byte(`{}`) },
	} {
		other := base
		change(&other)
		h := newHead(&base, true)
		if !h.fits(&base, true) || h.fits(&other, true) || h.fits(&base, false) {
			t.Error(name)
		}
	}
	h := newHead(&base, true)
	*base.Temperature = 0.9 // the caller's own, to change between calls
	if h.fits(&base, true) {
		t.Error("a setting that was changed in place is not seen")
	}
}

func TestADeltaCostsNoAllocation(t *testing.T) {
	if raced.Enabled {
		t.Skip("the race detector allocates by itself")
	}
	const n = 2000
	overChat, overResponses := compatible(), stateless()
	for name, c := range map[string]struct {
		delta  string
		stream func(string) error
	}{
		"chat": {
			`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"w\u00f6rld"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n",
			func(sse string) error {
				_, err := overChat.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+"data: [DONE]\n\n")), ignore)
				return err
			},
		},
		"chat, with padding": {
			`data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"PAD"}` + "\n\n",
			func(sse string) error {
				_, err := overChat.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+"data: [DONE]\n\n")), ignore)
				return err
			},
		},
		"chat, the id and the name again": {
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":"abc"}}]},"finish_reason":null}]}` + "\n\n",
			func(sse string) error {
				_, err := overChat.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+"data: [DONE]\n\n")), ignore)
				return err
			},
		},
		"chat, reasoning": {
			`data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hmm"},"finish_reason":null}]}` + "\n\n",
			func(sse string) error {
				_, err := overChat.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+"data: [DONE]\n\n")), ignore)
				return err
			},
		},
		"chat, arguments": {
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abc"}}]},"finish_reason":null}]}` + "\n\n",
			func(sse string) error {
				_, err := overChat.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+"data: [DONE]\n\n")), ignore)
				return err
			},
		},
		"responses": {
			"event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"word","logprobs":[],"obfuscation":"x"}` + "\n\n",
			func(sse string) error {
				_, err := overResponses.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+events(event("response.completed", `"response":`+output(longItem))))), ignore)
				return err
			},
		},
		"responses, arguments": {
			`data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"abc"}` + "\n\n",
			func(sse string) error {
				begin := events(event("response.output_item.added", `"output_index":0,"item":{"type":"function_call","name":"x"}`))
				_, err := overResponses.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(begin+sse+events(event("response.completed", `"response":`+output(textItem))))), ignore)
				return err
			},
		},
		"responses, reasoning": {
			`data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"word"}` + "\n\n",
			func(sse string) error {
				_, err := overResponses.stream(t.Context(), nil, wire.NewEvents(strings.NewReader(sse+events(event("response.completed", `"response":`+output(longItem))))), ignore)
				return err
			},
		},
	} {
		cost := func(n int) float64 {
			var sse strings.Builder
			for i := range n {
				sse.WriteString(strings.Replace(c.delta, "PAD", "x"[:i%2], 1))
			}
			least := math.Inf(1)
			for range 20 { // with -race pools lose things by chance, which is no delta's cost
				least = min(least, testing.AllocsPerRun(1, func() {
					if err := c.stream(sse.String()); err != nil {
						t.Fatal(err)
					}
				}))
			}
			return least
		}
		if more := cost(2*n) - cost(n); more > 3 { // for more room
			t.Errorf("%s: %d further deltas cost %.0f allocations", name, n, more)
		}
		most := 15.0
		if strings.HasPrefix(name, "responses") { // its last event says all of it again
			most = 22
		}
		if all := cost(1); all > most {
			t.Errorf("%s: a small reply costs %.0f allocations", name, all)
		}
		if all := cost(n); all > 26 { // the room of the events that many more take, too
			t.Errorf("%s: a reply of %d deltas costs %.0f allocations", name, n, all)
		}
	}
}

// longItem says as much as any of the streams does.
var longItem = strings.Replace(textItem, `"ok"`, `"`+strings.Repeat("word ", 5000)+`"`, 1)

func ignore(model.StreamResult) error { return nil }

func BenchmarkChatStream(b *testing.B) {
	sse := strings.Repeat(events(delta(`{"content":"word "}`)), 1000) + events(finish("stop"), "[DONE]")
	m := compatible()
	b.SetBytes(int64(len(sse)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.stream(b.Context(), nil, wire.NewEvents(strings.NewReader(sse)), ignore); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkResponsesStream(b *testing.B) {
	sse := strings.Repeat(events(event("response.output_text.delta", `"item_id":"msg_1","output_index":0,"content_index":0,"delta":"word "`)), 1000) +
		events(event("response.completed", `"response":`+output(longItem)))
	m := stateless()
	b.SetBytes(int64(len(sse)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.stream(b.Context(), nil, wire.NewEvents(strings.NewReader(sse)), ignore); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAMessageIsEncodedInOnePiece(t *testing.T) {
	for _, msg := range []message.Message{
		message.User("a question of some length"),
		message.Assistant("Let me look.", message.ToolCall{ID: "call_1", Name: "read", Input: `{"path":"a.txt"}`}),
		message.New(message.RoleAssistant,
			message.Text{Text: "Hm.", Origin: message.Origin{Provider: responses, Extra: `{"#item":{"id":"msg_1","status":"completed"},"annotations":[]}`}},
			message.ToolCall{ID: "call_1", Name: "read", Input: `{"path":"a.txt"}`, Origin: message.Origin{Provider: responses, Extra: `{"id":"fc_1","status":"completed"}`}}),
		message.Results(message.ToolResult{Call: "call_1", Name: "read", Content: "the content"}),
	} {
		for name, encode := range map[string]func(message.Message) []byte{"chat": chatFormat{}.encode, "responses": responsesFormat{}.encode} {
			least := math.Inf(1)
			for range 20 {
				least = min(least, testing.AllocsPerRun(10, func() { encode(msg) }))
			}
			if least != 1 {
				t.Errorf("%s, %v: %.1f allocations, want 1", name, msg, least)
			}
		}
	}
}
