package resilience_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/model/gemini"
	"github.com/pawl-dev/pawl/model/openai"
	"github.com/pawl-dev/pawl/model/resilience"
)

// wired is a provider's model whose server answers with what it is told, and keeps what it was asked.
type wired struct {
	model.Model
	name string
	t    *testing.T
	dir  string
	play string // the fixture; "" is out of order
	last string
}

func overTheWire(t *testing.T) (all []*wired) {
	add := func(name, dir string, open func(opts ...model.Option) model.Model) {
		w := &wired{name: name, t: t, dir: dir}
		s := httptest.NewServer(w)
		t.Cleanup(func() { s.Close(); httpapi.CloseIdle() })
		w.Model = open(model.WithBaseURL(s.URL), model.WithKey("k"))
		all = append(all, w)
	}
	add("anthropic", "anthropic/testdata", func(opts ...model.Option) model.Model { return anthropic.New("claude-sonnet-4-5", opts...) })
	add("chat", "openai/testdata/chat", func(opts ...model.Option) model.Model { return openai.New("gpt-x", opts...) })
	add("responses", "openai/testdata/responses", func(opts ...model.Option) model.Model { return openai.NewResponses("gpt-x", opts...) })
	add("gemini", "gemini/testdata", func(opts ...model.Option) model.Model { return gemini.New("gemini-x", opts...) })
	return all
}

// signature is what a provider alone understands.
func (w *wired) signature() string { return "c2lnbmF0dXJl" + w.name }

func (w *wired) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.last = string(body)
	if w.play == "" {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	reply, err := os.ReadFile(filepath.Join("..", w.dir, w.play+".json"))
	if err != nil {
		w.t.Error(err)
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(rw, strings.ReplaceAll(string(reply), "c2lnbmF0dXJl", w.signature()))
}

func (w *wired) says(play string, h message.History) message.Message {
	w.t.Helper()
	w.play = play
	resp, err := w.Complete(w.t.Context(), model.Request{Messages: h})
	if err != nil {
		w.t.Fatal(w.name, err)
	}
	return resp.Message
}

// A transcript that one provider made, with thoughts that only it understands and with calls, goes on with every other one, and back.
func TestATranscriptGoesOnWithAnotherProvider(t *testing.T) {
	all := overTheWire(t)
	for i, a := range all {
		for k, b := range all {
			if i == k {
				continue
			}
			h := message.NewHistory(message.User("What is 2+2?"))
			h = h.Append(a.says("calls", h))
			var results []message.ToolResult
			for _, c := range h.Last().ToolCalls() {
				results = append(results, message.ToolResult{Call: c.ID, Name: c.Name, Content: "a result of a tool"})
			}
			if len(results) == 0 {
				t.Fatal(a.name, "called nothing")
			}
			h = h.Append(message.Results(results...))
			h = h.Append(a.says("reasoning", h)).Append(message.User("And what is it doubled?"))

			m := resilience.Fallback(resilience.FallbackPolicy{}, a, b)
			a.play, b.play = "", "reasoning"
			resp, err := m.Complete(t.Context(), model.Request{Messages: h})
			if err != nil || resp.By != nameIn(b) {
				t.Fatalf("%s, then %s: %+v, %v", a.name, b.name, resp, err)
			}
			if !strings.Contains(a.last, a.signature()) {
				t.Errorf("%s has to get its thoughts back: %s", a.name, a.last)
			}
			for _, want := range []string{"What is 2+2?", "a result of a tool", "And what is it doubled?"} {
				if strings.Count(b.last, want) == 0 {
					t.Errorf("%s, then %s: no %q in %s", a.name, b.name, want, b.last)
				}
			}
			if strings.Contains(b.last, a.signature()) || strings.Contains(b.last, "Think: 2+2") {
				t.Errorf("%s was told what %s thought: %s", b.name, a.name, b.last)
			}
			h = h.Append(resp.Message).Append(message.User("Thanks."))
			a.play = "text"
			if resp, err = m.Complete(t.Context(), model.Request{Messages: h}); err != nil || resp.By != nameIn(a) {
				t.Fatalf("and back to %s: %+v, %v", a.name, resp, err)
			}
			if !strings.Contains(a.last, a.signature()) || strings.Contains(a.last, b.signature()) {
				t.Errorf("back at %s it has its own thoughts, and not those of %s: %s", a.name, b.name, a.last)
			}
		}
	}
}

func nameIn(w *wired) string {
	c, _ := model.CapabilitiesOf(w.Model)
	return c.Name
}

func (w *wired) Capabilities() model.Capabilities {
	c, _ := model.CapabilitiesOf(w.Model)
	return c
}
