package httpapi_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/model"
)

// began is when the clock of a bubble begins.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestWhatHeadersSayOfLimits(t *testing.T) {
	const ant, oai = "anthropic-ratelimit-", "x-ratelimit-"
	at := func(d time.Duration) string { return began.Add(d).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		header []string // name, value, …
		want   model.Rate
	}{
		"nothing": {},
		"Anthropic": {
			[]string{ant + "requests-limit", "50", ant + "requests-remaining", "49", ant + "requests-reset", at(2 * time.Second), ant + "tokens-limit", "480000", ant + "tokens-remaining", "470000", ant + "tokens-reset", at(time.Minute)},
			model.Rate{Requests: model.Quota{Limit: 50, Remaining: 49, Reset: 2 * time.Second}, Tokens: model.Quota{Limit: 480000, Remaining: 470000, Reset: time.Minute}},
		},
		"output is spent, and there is more of the whole": {
			[]string{ant + "tokens-limit", "480000", ant + "tokens-remaining", "400000", ant + "tokens-reset", at(time.Second), ant + "output-tokens-remaining", "0", ant + "output-tokens-reset", at(20 * time.Second)},
			model.Rate{Tokens: model.Quota{Limit: 480000, Spent: true, Reset: 20 * time.Second}},
		},
		"input and output alone": {
			[]string{ant + "input-tokens-limit", "400000", ant + "output-tokens-limit", "80000"},
			model.Rate{Tokens: model.Quota{Limit: 480000}},
		},
		"one of them alone is no sum": {[]string{ant + "input-tokens-limit", "400000"}, model.Rate{}},
		"OpenAI": {
			[]string{oai + "limit-requests", "60", oai + "remaining-requests", "0", oai + "reset-requests", "17ms", oai + "limit-tokens", "150000", oai + "remaining-tokens", "149984", oai + "reset-tokens", "6m0s"},
			model.Rate{Requests: model.Quota{Limit: 60, Spent: true, Reset: 17 * time.Millisecond}, Tokens: model.Quota{Limit: 150000, Remaining: 149984, Reset: 6 * time.Minute}},
		},
		"only what remains, as Azure has it": {
			[]string{oai + "remaining-requests", "99", oai + "remaining-tokens", "0"},
			model.Rate{Requests: model.Quota{Remaining: 99}, Tokens: model.Quota{Spent: true}},
		},
		"seconds":                  {[]string{oai + "remaining-tokens", "5", oai + "reset-tokens", "1.5"}, model.Rate{Tokens: model.Quota{Remaining: 5, Reset: 1500 * time.Millisecond}}},
		"a reset that is over":     {[]string{ant + "requests-remaining", "0", ant + "requests-reset", at(-time.Second)}, model.Rate{}},
		"of more than nothing":     {[]string{ant + "requests-limit", "9", ant + "requests-remaining", "7", ant + "requests-reset", at(-time.Second)}, model.Rate{Requests: model.Quota{Limit: 9}}},
		"negative":                 {[]string{oai + "limit-requests", "-5", oai + "remaining-requests", "-1", oai + "reset-requests", "-3s"}, model.Rate{}},
		"no numbers":               {[]string{oai + "limit-requests", "NaN", oai + "remaining-requests", "1e3", oai + "reset-requests", "NaN", oai + "limit-tokens", "Inf"}, model.Rate{}},
		"more than there is":       {[]string{oai + "limit-requests", strings.Repeat("9", 40), oai + "remaining-requests", "0", oai + "reset-requests", "1e300"}, model.Rate{Requests: model.Quota{Spent: true, Reset: math.MaxInt64}}},
		"a sum of more than it is": {[]string{ant + "input-tokens-limit", "9223372036854775807", ant + "output-tokens-limit", "9223372036854775807"}, model.Rate{}},
		"a thousand years":         {[]string{ant + "requests-remaining", "0", ant + "requests-reset", "3000-01-01T00:00:00Z"}, model.Rate{Requests: model.Quota{Spent: true, Reset: math.MaxInt64}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := http.Header{}
			for i := 0; i < len(c.header); i += 2 {
				h.Set(c.header[i], c.header[i+1])
			}
			if diff := cmp.Diff(c.want, httpapi.RateOf(&http.Response{Header: h})); diff != "" {
				t.Error(name, diff)
			}
		})
	}
}

// Headers come before the stream; what they say of a time is about the moment in which they came.
func TestAResetIsCountedFromTheHeadersOn(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Remaining-Tokens", "0")
		w.Header().Set("X-RateLimit-Reset-Tokens", r.Header.Get("Reset"))
	})
	for reset, want := range map[string]bool{"1ns": false, "1h": true} {
		resp, err := a.Do(t.Context(), http.MethodPost, "/x", httpapi.Content{}, http.Header{"Reset": {reset}})
		if err != nil {
			t.Fatal(err)
		}
		got := httpapi.RateOf(resp).Tokens
		httpapi.Finish(resp)
		if got.Spent != want || want && (got.Reset <= 50*time.Minute || got.Reset >= time.Hour) {
			t.Errorf("%s: %+v", reset, got)
		}
	}
}

func TestARefusalSaysTheLimitsToo(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("anthropic-ratelimit-requests-limit", "50")
		w.Header().Set("Retry-After", "1e300")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	_, err := a.Post(t.Context(), "/x", nil, "")
	var e *model.Error
	if !errors.As(err, &e) || e.Rate != (model.Rate{Requests: model.Quota{Limit: 50}}) || e.RetryAfter != math.MaxInt64 {
		t.Errorf("%#v", e)
	}
}

func TestLimitsThatNobodySaidCostNothing(t *testing.T) {
	resp := &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(""))}
	if n := testing.AllocsPerRun(100, func() { _ = httpapi.RateOf(resp) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
