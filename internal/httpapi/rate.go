package httpapi

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/model"
)

// RateOf gives what a response that [API.Post] gave says of the key's limits, as of now: its headers are older than the end of its stream.
func RateOf(resp *http.Response) model.Rate {
	at := time.Now()
	if b, ok := resp.Body.(*bounded); ok {
		at = b.began
	}
	return rate(resp.Header, at)
}

// Names are in the form in which http.Header has them, so that looking costs nothing.
const (
	limitName, remainingName, resetName = "X-Ratelimit-Limit-", "X-Ratelimit-Remaining-", "X-Ratelimit-Reset-"

	requestsName, tokensName = "Anthropic-Ratelimit-Requests-", "Anthropic-Ratelimit-Tokens-" // #nosec G101: of headers
	inputName, outputName    = "Anthropic-Ratelimit-Input-Tokens-", "Anthropic-Ratelimit-Output-Tokens-"
)

// rate reads the headers of Anthropic, and those of OpenAI, which many others have, too. They came at the time began.
func rate(h http.Header, began time.Time) (r model.Rate) {
	now := time.Now()
	get := func(name string) string { // as h.Get, which looks first whether the name has its form
		if v := h[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	quota := func(limit, remaining, reset string) model.Quota {
		q := model.Quota{Limit: count(get(limit)), Remaining: count(get(remaining))}
		left := untilReset(get(reset), began, now)
		if left < 0 { // all of it is there again
			q.Remaining = 0
			return q
		}
		q.Spent = get(remaining) == "0"
		if q.Spent || q.Remaining > 0 {
			q.Reset = left
		}
		return q
	}
	r.Requests = quota(limitName+"Requests", remainingName+"Requests", resetName+"Requests")
	r.Tokens = quota(limitName+"Tokens", remainingName+"Tokens", resetName+"Tokens")
	if r != (model.Rate{}) {
		return r
	}
	r.Requests = quota(requestsName+"Limit", requestsName+"Remaining", requestsName+"Reset")
	r.Tokens = quota(tokensName+"Limit", tokensName+"Remaining", tokensName+"Reset")
	in, out := quota(inputName+"Limit", inputName+"Remaining", inputName+"Reset"), quota(outputName+"Limit", outputName+"Remaining", outputName+"Reset")
	if r.Tokens == (model.Quota{}) && in.Limit > 0 && out.Limit > 0 && in.Limit <= math.MaxInt-out.Limit { // their sum is what the provider says itself where it says it
		r.Tokens.Limit = in.Limit + out.Limit
	}
	for _, q := range []model.Quota{in, out} {
		if q.Spent {
			r.Tokens.Remaining, r.Tokens.Spent, r.Tokens.Reset = 0, true, max(r.Tokens.Reset, q.Reset)
		}
	}
	return r
}

// count reads a number of requests or tokens; 0 for what is none.
func count(v string) int {
	if v == "" { // an error would be made of it
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// untilReset reads a date (RFC 3339), a duration as Go writes it, or seconds, and gives what is left of it; below 0: it is over.
func untilReset(v string, began, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return since(max(0, d), began, now)
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return since(seconds(s), began, now)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return at.Sub(now)
	}
	return 0
}

// since is what is left of d.
func since(d time.Duration, began, now time.Time) time.Duration { return d - max(0, now.Sub(began)) }

// retryAfter reads Retry-After (seconds or a date) and OpenAI's retry-after-ms.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// seconds makes a time of a number that a server may have made up: what is none is 0, and what is too much is the longest there is.
func seconds(s float64) time.Duration {
	switch n := s * float64(time.Second); {
	case !(n > 0):
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return time.Duration(n)
	}
}
