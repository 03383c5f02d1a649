package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// reply is what one fixture means. Zero fields with a check of their own are not compared.
type reply struct {
	name  string
	text  *string
	stop  []model.StopReason // any of them
	usage *model.Usage
	calls []message.ToolCall
	more  func(t *testing.T, p Provider, got *model.Response)
}

func text(s string) *string { return &s }

var replies = []reply{
	{name: "text", text: text("Hello, wörld 👋! <b>&amp;</b>"), stop: []model.StopReason{model.StopEnd}, usage: &model.Usage{Input: 10, Output: 5}},
	{name: "calls", text: text("Let me look."), stop: []model.StopReason{model.StopTools}, calls: []message.ToolCall{
		{ID: "call_1", Name: "read", Input: `{"file_path":"go.mod"}`},
		{ID: "call_2", Name: "bash", Input: `{"command":"echo \"hi\"","timeout":5}`},
	}},
	{name: "reasoning", text: text("4"), stop: []model.StopReason{model.StopEnd}, more: wantReasoning},
	{name: "length", text: text("The answer is"), stop: []model.StopReason{model.StopLength}},
	{name: "half_call", stop: []model.StopReason{model.StopLength}, calls: []message.ToolCall{{ID: "call_1", Name: "read", Input: `{"file_path":"go.m`}}},
	{name: "empty", text: text(""), stop: []model.StopReason{model.StopEnd}, more: wantNothing},
	{name: "empty_length", text: text(""), stop: []model.StopReason{model.StopLength}, more: wantNothing},
	{name: "refusal", stop: []model.StopReason{model.StopRefusal}, more: wantRefusal},
	{name: "filter", stop: []model.StopReason{model.StopFilter}},
	{name: "stop_sequence", text: text("one, two"), stop: []model.StopReason{model.StopSequence, model.StopEnd}},
	{name: "pause", stop: []model.StopReason{model.StopPause}, more: wantOpaque},
	{name: "cache", usage: &model.Usage{Input: 7, CacheRead: 100, CacheWrite: 50, Output: 3}},
	{name: "unknown_block", text: text("ok"), stop: []model.StopReason{model.StopEnd}, more: wantHologram},
	{name: "provider_tools", text: text("Go 1.26; 42."), stop: []model.StopReason{model.StopEnd}, more: wantProviderTools},
	{name: "citations", text: text("Größe 👋: Go 1.26 is out. More later."), stop: []model.StopReason{model.StopEnd}, more: wantCitation},
}

func (p Provider) replies(t *testing.T) {
	for _, want := range replies {
		t.Run(want.name, func(t *testing.T) {
			p.skip(t, want.name)
			whole := p.complete(t, want.name)
			want.check(t, p, whole)
			sse := p.fixture(t, want.name+".sse")
			for _, v := range variants {
				t.Run(v.name, func(t *testing.T) {
					p.skip(t, v.lacks)
					got := p.play(t, v.cut(sse))
					if want.name == "text" && got.deltas < 4 {
						t.Errorf("it came in %d deltas: the fixture has four at least, and each has to be passed on by itself", got.deltas)
					}
					p.same(t, whole, got.final)
				})
			}
			t.Run("as JSON to a request for a stream", func(t *testing.T) { p.same(t, whole, p.jsonToStream(t, want.name)) })
		})
	}
}

// complete gives the Response that a whole reply is decoded to.
func (p Provider) complete(t *testing.T, name string) *model.Response {
	t.Helper()
	body := p.fixture(t, name+".json")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, http.StatusOK, body) })
	got, err := p.model(s).Complete(t.Context(), hi())
	if err != nil {
		t.Fatalf("Complete: %v", err)
	}
	return got
}

// play gives the Response of a stream that arrives in pieces.
func (p Provider) play(t *testing.T, pieces [][]byte) *heard {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { stream(w, pieces) })
	got, err := listen(t.Context(), t, p.model(s), hi())
	if err != nil {
		t.Fatalf("CompleteStream: %v", err)
	}
	return got
}

func (p Provider) jsonToStream(t *testing.T, name string) *model.Response {
	t.Helper()
	body := p.fixture(t, name+".json")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, http.StatusOK, body) })
	var final *model.Response
	err := p.model(s).CompleteStream(t.Context(), hi(), func(r model.StreamResult) error {
		if r.Final {
			final = r.Response
		}
		return nil
	})
	if err != nil || final == nil {
		t.Fatalf("CompleteStream: response %v, %v", final, err)
	}
	return final
}

// heard is what a stream's handler got.
type heard struct {
	text, reasoning strings.Builder
	deltas          int
	final           *model.Response
}

// listen streams and holds the calls of the handler to its rules: pieces first, one Final at the end that has all of them.
func listen(ctx context.Context, t *testing.T, m model.Model, req model.Request) (*heard, error) {
	t.Helper()
	var h heard
	err := m.CompleteStream(ctx, req, func(r model.StreamResult) error {
		switch {
		case h.final != nil:
			t.Error("a piece after Final")
		case r.Final && r.Response == nil:
			t.Error("Final without a Response")
		case r.Final:
			h.final = r.Response
		case r.Text == "" && r.Reasoning == "":
			t.Error("an empty piece")
		}
		if r.Text != "" {
			h.deltas++
		}
		h.text.WriteString(r.Text)
		h.reasoning.WriteString(r.Reasoning)
		return nil
	})
	if err != nil {
		if h.final != nil {
			t.Errorf("an error after Final: %v", err)
		}
		return &h, err
	}
	if h.final == nil {
		t.Fatal("no Final and no error")
	}
	if got := h.final.Message.Text(); h.text.String() != got {
		t.Errorf("the pieces make %q, the response says %q", h.text.String(), got)
	}
	var reasoning strings.Builder
	for r := range message.Of[message.Reasoning](h.final.Message) {
		reasoning.WriteString(r.Text)
	}
	if h.reasoning.String() != reasoning.String() {
		t.Errorf("the pieces of reasoning make %q, the response says %q", h.reasoning.String(), reasoning.String())
	}
	return &h, nil
}

func (want reply) check(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	if got.Message.Role() != message.RoleAssistant {
		t.Errorf("role %q", got.Message.Role())
	}
	if got.Model != "test-model" {
		t.Errorf("model %q, want test-model", got.Model)
	}
	if want.text != nil && got.Message.Text() != *want.text {
		t.Errorf("text %q, want %q", got.Message.Text(), *want.text)
	}
	if len(want.stop) > 0 && !slices.Contains(want.stop, got.Stop) {
		t.Errorf("stop %q, want %q", got.Stop, want.stop)
	}
	if want.usage != nil {
		p.wantUsage(t, *want.usage, got.Usage)
	}
	p.wantCalls(t, want.calls, got.Message.ToolCalls())
	for c := range message.Of[message.Reasoning](got.Message) {
		if c.Provider != p.Name {
			t.Errorf("reasoning has the provider %q", c.Provider)
		}
	}
	for o := range message.Of[message.Opaque](got.Message) {
		if o.Provider != p.Name || !compact(o.JSON) {
			t.Errorf("opaque of %q is not compact JSON: %s", o.Provider, o.JSON)
		}
	}
	if want.more != nil {
		want.more(t, p, got)
	}
}

func (p Provider) wantUsage(t *testing.T, want, got model.Usage) {
	t.Helper()
	if p.lacks("cache_read") {
		want.CacheRead = 0
	}
	if p.lacks("cache_write") {
		want.CacheWrite = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func (p Provider) wantCalls(t *testing.T, want, got []message.ToolCall) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d calls, want %d: %v", len(got), len(want), got)
	}
	ids := map[string]bool{}
	for i, g := range got {
		if g.ID == "" || ids[g.ID] {
			t.Errorf("call %d: the id %q is empty or not its own", i, g.ID)
		}
		ids[g.ID] = true
		if !p.lacks("call_ids") && g.ID != want[i].ID {
			t.Errorf("call %d: id %q, want %q", i, g.ID, want[i].ID)
		}
		if g.Name != want[i].Name || g.Input != want[i].Input {
			t.Errorf("call %d: %s %s, want %s %s", i, g.Name, g.Input, want[i].Name, want[i].Input)
		}
	}
}

// same compares two Responses to the same content.
func (p Provider) same(t *testing.T, want, got *model.Response) {
	t.Helper()
	parts := cmp.Transformer("parts", func(m message.Message) []message.Part {
		out := slices.Collect(m.Parts())
		if p.lacks("call_ids") {
			for i, part := range out {
				if c, ok := part.(message.ToolCall); ok {
					c.ID = "any"
					out[i] = c
				}
			}
		}
		return out
	})
	if diff := cmp.Diff(want, got, parts); diff != "" {
		t.Errorf("the whole reply and the stream differ (-whole +stream):\n%s", diff)
	}
}

func wantReasoning(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	var said, signature string
	for r := range message.Of[message.Reasoning](got.Message) {
		said += r.Text
		signature += r.Signature
	}
	if said != "Think: 2+2" {
		t.Errorf("reasoning %q", said)
	}
	if !p.lacks("signature") && signature != "c2lnbmF0dXJl" && !strings.Contains(extras(got.Message), "c2lnbmF0dXJl") {
		t.Errorf("signature %q", signature)
	}
	want := model.Usage{Input: got.Usage.Input, Output: 20, Reasoning: 12}
	if p.lacks("reasoning_tokens") {
		want.Reasoning = 0
	}
	p.wantUsage(t, want, got.Usage)
}

// extras joins what a provider attached to the parts of m: some keep a signature there.
func extras(m message.Message) (out string) {
	for part := range m.Parts() {
		switch part := part.(type) {
		case message.Text:
			out += part.Extra
		case message.ToolCall:
			out += part.Extra
		case message.Reasoning:
			out += part.Extra
		}
	}
	return out
}

func wantNothing(t *testing.T, _ Provider, got *model.Response) {
	t.Helper()
	if got.Message.Len() != 0 {
		t.Errorf("%d parts", got.Message.Len())
	}
}

func wantRefusal(t *testing.T, _ Provider, got *model.Response) {
	t.Helper()
	const said = "I can't help with that."
	if got.Reason != said && got.Message.Text() != said {
		t.Errorf("reason %q, text %q", got.Reason, got.Message.Text())
	}
}

func wantOpaque(t *testing.T, _ Provider, got *model.Response) {
	t.Helper()
	for range message.Of[message.Opaque](got.Message) {
		return
	}
	t.Error("no opaque part")
}

// wantHologram checks that a block from the future survives, and goes back as it came.
func wantHologram(t *testing.T, p Provider, got *model.Response) {
	t.Helper()
	const want = `{"type":"holo_gram","data":{"x":1}}`
	var found bool
	for o := range message.Of[message.Opaque](got.Message) {
		found = found || equalJSON(o.JSON, want)
	}
	if !found {
		t.Fatal("the unknown block is gone")
	}
	seen, _ := p.ask(t, model.Request{Messages: message.NewHistory(message.User("Hi"), got.Message, message.User("Go on"))})
	for _, m := range seen.Messages {
		for _, part := range m.Parts {
			if part.Kind == "opaque" && equalJSON(part.Data, want) {
				return
			}
		}
	}
	t.Errorf("the unknown block was not sent back: %+v", seen.Messages)
}

func compact(s string) bool {
	var b bytes.Buffer
	return json.Compact(&b, []byte(s)) == nil && b.String() == s
}

func equalJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}
