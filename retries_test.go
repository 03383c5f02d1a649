//go:build unix

package pawl_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

// A model of the settings is asked again, as often as they say; one that the program gives stays as it is.
func TestARuntimeAsksModelsOfItsSettingsAgain(t *testing.T) {
	if c, err := net.Dial("tcp", "127.0.0.1:11434"); err == nil {
		_ = c.Close()
		t.Skip("something listens where Ollama would: the test needs a model that is not there")
	}
	given, err := pawl.OpenModel("ollama/x")
	if err != nil {
		t.Fatal(err)
	}
	var tasks model.Model = scripted.New(scripted.Turn{Calls: []scripted.Call{{Name: "task", Input: `{"agent":"far","prompt":"go"}`}}}, scripted.Text("It failed."))
	for name, c := range map[string]struct {
		model    model.Model
		settings string
		want     int
	}{
		"of the settings":           {nil, `{"model": "ollama/x", "retries": 1}`, 1},
		"of the settings, not once": {nil, `{"model": "ollama/x", "retries": 0}`, 0},
		"a value":                   {given, `{}`, 0},
		"of a subagent":             {tasks, `{"retries": 1}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := world(t, together(map[string]string{".agents/settings.json": c.settings}, agentFile("far", "is far", "model: ollama/x\n")))
			rt := serve(t, dir, c.model)
			n, last := 0, error(nil)
			for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: "Hi"}) {
				if e.Delta == event.Retry {
					n++
				}
				last = err
			}
			if n != c.want || (c.model != tasks) != errdefs.NotAvailable.Is(last) {
				t.Errorf("%d retries, want %d: %v", n, c.want, last)
			}
		})
	}
}

// A conversation asks the models again that it opens itself; what it is given as a value stays as it is.
func TestAConversationAsksModelsThatItOpensAgain(t *testing.T) {
	path := packOf(t, plain)
	calls, failures := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls <= failures {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer s.Close()
	given, err := pawl.OpenModel("openai/gpt-x", model.WithBaseURL(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	named := pawl.WithModelName("gpt-x", model.WithBaseURL(s.URL))
	for name, c := range map[string]struct {
		opts     []pawl.Option
		failures int
		calls    int
		well     bool
	}{
		"by name":                 {[]pawl.Option{named}, 2, 3, true},
		"by name, once":           {[]pawl.Option{named, pawl.WithRetries(1)}, 2, 2, false},
		"by name, and not at all": {[]pawl.Option{named, pawl.WithRetries(0)}, 2, 1, false},
		"a value":                 {[]pawl.Option{pawl.WithModel(given)}, 2, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			calls, failures = 0, c.failures
			conv, err := pawl.Open(path, "chat", c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			defer conv.Close() //nolint:errcheck // nothing is open
			resp, err := conv.Send(context.Background(), "Hi")
			if calls != c.calls || (err == nil) != c.well {
				t.Errorf("%d calls, want %d: %v, %v", calls, c.calls, resp, err)
			}
		})
	}
	for _, n := range []int{-1, 101} {
		if _, err := pawl.Open(path, "chat", named, pawl.WithRetries(n)); !errdefs.Validation.Is(err) {
			t.Error(n, err)
		}
	}
}
