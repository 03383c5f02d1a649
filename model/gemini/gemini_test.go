package gemini

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func TestWithoutAKeyNothingIsCalled(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "")
	t.Setenv("GOOGLE_API_KEY", "")
	req := model.Request{Messages: message.NewHistory(message.User("Hi"))}
	refuse := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("a call was made")
		return nil, errors.New("no")
	})}
	m := New("gemini-2.5-flash", model.WithHTTPClient(refuse))
	_, err := m.Complete(t.Context(), req)
	streamed := m.CompleteStream(t.Context(), req, nil)
	for _, err := range []error{err, streamed} {
		if !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "GEMINI_API_KEY") || !strings.Contains(err.Error(), "GOOGLE_API_KEY") {
			t.Errorf("got %v", err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestKeysAndPaths(t *testing.T) {
	for name, c := range map[string]struct {
		model, gemini, google string
		opts                  []model.Option
		key, path             string
	}{
		"GEMINI_API_KEY first":  {"gemini-2.5-flash", "one", "two", nil, "one", "/models/gemini-2.5-flash:generateContent"},
		"GOOGLE_API_KEY then":   {"tunedModels/my model", "", "two", nil, "two", "/tunedModels/my%20model:generateContent"},
		"the option above both": {"models/gemini-2.5-flash", "one", "two", []model.Option{model.WithKey("three")}, "three", "/models/gemini-2.5-flash:generateContent"},
		"no key elsewhere":      {"x", "", "", nil, "", "/models/x:generateContent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GEMINI_API_KEY", c.gemini)
			t.Setenv("GOOGLE_API_KEY", c.google)
			var key, path string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				key, path = r.Header.Get("X-Goog-Api-Key"), r.URL.EscapedPath()
				_, _ = w.Write([]byte(stop))
			}))
			defer s.Close()
			m := New(c.model, append(c.opts, model.WithBaseURL(s.URL+"/"))...)
			if _, err := m.Complete(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hi"))}); err != nil {
				t.Fatal(err)
			}
			if key != c.key || path != c.path {
				t.Errorf("key %q, path %q", key, path)
			}
		})
	}
}
