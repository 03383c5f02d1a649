package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// Whatever a server says of limits and of when to come again, no number is below nothing.
func FuzzRate(f *testing.F) {
	for _, s := range [][2]string{{"60", "6m0s"}, {"-1", "2026-01-02T03:04:05Z"}, {"1e400", "NaN"}, {"0.5", "Wed, 21 Oct 2065 07:28:00 GMT"}, {"9223372036854775807", "-Inf"}, {"+7", "1h-1s"}, {"0x10", "9223372036854775807s"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, number, when string) {
		h := http.Header{}
		for _, name := range []string{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Requests-Remaining", "Retry-After-Ms"} {
			h.Set(name, number)
		}
		for _, name := range []string{"X-Ratelimit-Reset-Tokens", "Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Requests-Reset", "Retry-After"} {
			h.Set(name, when)
		}
		check := func() {
			now := time.Now()
			if wait := retryAfter(h, now); wait < 0 {
				t.Fatalf("%q %q: come again in %v", number, when, wait)
			}
			for _, began := range []time.Time{now, now.Add(-time.Hour), now.Add(time.Hour)} {
				r := rate(h, began)
				for _, q := range []model.Quota{r.Requests, r.Tokens} {
					if q.Limit < 0 || q.Remaining < 0 || q.Reset < 0 || q.Spent && q.Remaining > 0 {
						t.Fatalf("%q %q: %+v", number, when, q)
					}
				}
			}
		}
		check()
		h.Del("X-Ratelimit-Limit-Tokens")
		h.Del("X-Ratelimit-Remaining-Tokens")
		h.Del("X-Ratelimit-Reset-Tokens")
		h.Del("Retry-After-Ms")
		check()
	})
}

// Whatever a server answers instead of a reply: an error of a class, short, of text that can be kept, and without the key, wherever the server quotes it.
func FuzzFailure(f *testing.F) {
	const half = "sk-a-key"
	const key = half + "-of-ours"
	for _, s := range []string{`{"error":{"type":"invalid_request_error","message":"bad key KEY"},"request_id":"KEY"}`, `{"error":"KEY"}`, `<html>KEY</html>`, ``, `{"error":{"code":"KEY","message":"\ud800"}}`, "\xff\xfeKEY", `{"error":null,"message":"maximum context length"}`, `[{"error":{"message":"x"}}]`, `{"error":{"message":"\u004bEY sk-\u0061-key-of-ours"}}`} {
		f.Add(400, s)
		f.Add(529, s)
		f.Add(400, strings.Repeat("x", 295)+s)
	}
	f.Add(400, `{"error":"`+strings.Repeat("x", 16<<10-9)+`KEY"}`)
	f.Fuzz(func(t *testing.T, status int, said string) {
		if status < 300 || status > 599 || strings.Contains(said, half) {
			return
		}
		body := strings.ReplaceAll(said, "KEY", key)
		answer := trip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"X-Request-Id": {"r\xff"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		})
		a := New("p", "https://h", nil, []model.Option{model.WithKey(key), model.WithHTTPClient(&http.Client{Transport: answer})}, func(key string) (string, string) { return "Authorization", "Bearer " + key })
		_, err := a.Post(context.Background(), "/", Body{[]byte("{}")}, "application/json")
		if err == nil || errdefs.Of(err) == nil {
			t.Fatalf("%d %q: %v has no class", status, body, err)
		}
		if text := err.Error(); strings.Contains(text, half) || len(text) > 40<<10 || !utf8.ValidString(text) {
			t.Fatalf("%d %q: %q", status, body, text)
		}
		if e := a.InStream([]byte(body)); strings.Contains(e.Error(), half) || errdefs.Of(e) == nil {
			t.Fatalf("%q: %v", body, e)
		}
	})
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
