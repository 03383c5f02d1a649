package cassette_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// What a key still had at the time is heard by who records, and by nobody who replays: else a limiter would hold a test back.
func TestLimitsOfTheMomentAreNotReplayed(t *testing.T) {
	rate := model.Rate{Requests: model.Quota{Limit: 5, Spent: true, Reset: time.Hour}}
	for _, stream := range []bool{false, true} {
		m := live{say: func(req model.Request) ([]model.StreamResult, *model.Response, error) {
			if req.Messages.Last().Text() == "fail" {
				return nil, nil, &model.Error{Provider: "p", Kind: errdefs.RateLimit, Rate: rate}
			}
			return nil, &model.Response{Message: message.Assistant("x"), Rate: rate}, nil
		}}
		file := tape(t)
		r := record(t, m, file)
		said := func(m model.Model) (got [2]model.Rate) {
			take := func(p model.StreamResult) error { got[0] = p.Response.Rate; return nil }
			if !stream {
				resp, err := m.Complete(t.Context(), user("well"))
				if err != nil {
					t.Fatal(err)
				}
				_ = take(model.StreamResult{Response: resp})
			} else if err := m.CompleteStream(t.Context(), user("well"), take); err != nil {
				t.Fatal(err)
			}
			err := m.CompleteStream(t.Context(), user("fail"), func(model.StreamResult) error { return nil })
			var e *model.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			got[1] = e.Rate
			return got
		}
		if got := said(r); got != [2]model.Rate{rate, rate} {
			t.Errorf("who records is told %v", got)
		}
		closed(t, r)
		if got := said(open(t, file)); got != [2]model.Rate{} {
			t.Errorf("a replay says %v", got)
		}
	}
}

func TestHeadersOfTheMomentAreNotReplayed(t *testing.T) {
	file, c, end := recordHTTP(t, &server{answers: []answer{{200, http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "Anthropic-Ratelimit-Requests-Reset": {"2026-01-01T00:00:00Z"}, "X-Kept": {"yes"}}, "x"}}})
	ask := func(c *http.Client) http.Header {
		resp, err := c.Do(request(t, http.MethodGet, "https://example.com", ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.Header
	}
	if h := ask(c); h.Get("X-RateLimit-Remaining-Requests") != "0" {
		t.Error("who records is told", h)
	}
	end()
	if text := content(t, file); strings.Contains(text, "Ratelimit") || !strings.Contains(text, "X-Kept") {
		t.Error(text)
	}
	older := strings.Replace(content(t, file), `"X-Kept"`, `"X-Ratelimit-Limit-Requests": ["1"], "X-Kept"`, 1)
	if err := os.WriteFile(file, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	_, c = openHTTP(t, file)
	if h := ask(c); len(h) != 1 || h.Get("X-Kept") != "yes" {
		t.Error("a replay says", h)
	}
}
