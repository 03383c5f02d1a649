package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
)

// asked answers with a short reply and keeps the requests.
type asked struct{ got []*http.Request }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.got = append(a.got, r)
	return canned("data: {\"type\":\"message_stop\"}\n\n").RoundTrip(r)
}

func ask(t *testing.T, opts ...model.Option) ([]*http.Request, error) {
	var a asked
	m := anthropic.New("claude-sonnet-4-5", append(opts, model.WithHTTPClient(&http.Client{Transport: &a}))...)
	err := m.CompleteStream(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hi"))}, func(model.StreamResult) error { return nil })
	return a.got, err
}

func TestTheProvidersOwnServerIsNotCalledWithoutAKey(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	got, err := ask(t)
	var e *model.Error
	if !errors.As(err, &e) || !errors.Is(err, errdefs.Unauthorized) || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") || len(got) != 0 {
		t.Errorf("%d calls, %v", len(got), err)
	}
}

func TestCallsGoWhereAndAsTheOptionsSay(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-env")
	for name, c := range map[string]struct {
		opts            []model.Option
		url, key, other string
	}{
		"by default":                {nil, "https://api.anthropic.com/v1/messages", "from-env", ""},
		"an option's key wins":      {[]model.Option{model.WithKey("own")}, "https://api.anthropic.com/v1/messages", "own", ""},
		"another server":            {[]model.Option{model.WithBaseURL("http://localhost:8080/anthropic/")}, "http://localhost:8080/anthropic/v1/messages", "from-env", ""},
		"a version is not repeated": {[]model.Option{model.WithBaseURL("http://localhost:8080/v1/")}, "http://localhost:8080/v1/messages", "from-env", ""},
		"further headers":           {[]model.Option{model.WithHeader("anthropic-beta", "context-1m-2025-08-07")}, "https://api.anthropic.com/v1/messages", "from-env", "context-1m-2025-08-07"},
	} {
		got, err := ask(t, c.opts...)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %d calls, %v", name, len(got), err)
			continue
		}
		h := got[0].Header
		if got[0].URL.String() != c.url || h.Get("X-Api-Key") != c.key || h.Get("Anthropic-Beta") != c.other || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Accept") != "text/event-stream" {
			t.Errorf("%s: %s %v", name, got[0].URL, h)
		}
	}
}

func TestAnotherServerMayNeedNoKey(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	got, err := ask(t, model.WithBaseURL("http://localhost:8080"))
	if err != nil || len(got) != 1 || got[0].Header.Get("X-Api-Key") != "" {
		t.Errorf("%d calls, %v", len(got), err)
	}
	got, err = ask(t, model.WithHeader("Authorization", "Bearer token"))
	if err != nil || len(got) != 1 {
		t.Errorf("a header instead of a key: %d calls, %v", len(got), err)
	}
}
