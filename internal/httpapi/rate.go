package httpapi

import (
	"math"
	"net/http"
	"strconv"
	"strings"
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

// limits are what headers say of a key, by what is limited.
type limits struct{ requests, tokens, input, output limit }

// limit is how much of something there is, how much of that is left, and when all of it is there again: as headers say it, "" where they don't.
type limit struct{ all, left, reset string }

// take notes what a header says. What a name is that is none of these says nothing.
func (l *limits) take(what, field, value string) {
	var of *limit
	switch what {
	case "Requests":
		of = &l.requests
	case "Tokens":
		of = &l.tokens
	case "Input-Tokens":
		of = &l.input
	case "Output-Tokens":
		of = &l.output
	default:
		return
	}
	switch field {
	case "Limit":
		of.all = value
	case "Remaining":
		of.left = value
	case "Reset":
		of.reset = value
	}
}

// rate reads the headers of Anthropic, and those of OpenAI, which many others have, too. They came at the time began. It goes over the headers once, since a name costs more to be looked up than to be passed over, and many servers say nothing of limits.
func rate(h http.Header, began time.Time) (r model.Rate) {
	var shared, own limits
	for name, values := range h { // which has names in one form
		if len(values) == 0 {
			continue
		}
		if name, ok := strings.CutPrefix(name, "X-Ratelimit-"); ok {
			field, what, _ := strings.Cut(name, "-")
			shared.take(what, field, values[0])
		} else if name, ok := strings.CutPrefix(name, "Anthropic-Ratelimit-"); ok {
			i := max(strings.LastIndexByte(name, '-'), 0)
			own.take(name[:i], name[min(i+1, len(name)):], values[0])
		}
	}
	if shared == (limits{}) && own == (limits{}) {
		return r
	}
	now := time.Now()
	r.Requests, r.Tokens = shared.requests.quota(began, now), shared.tokens.quota(began, now)
	if r != (model.Rate{}) {
		return r
	}
	r.Requests, r.Tokens = own.requests.quota(began, now), own.tokens.quota(began, now)
	in, out := own.input.quota(began, now), own.output.quota(began, now)
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

// quota is what l says as of now.
func (l *limit) quota(began, now time.Time) model.Quota {
	q := model.Quota{Limit: count(l.all), Remaining: count(l.left)}
	left := untilReset(l.reset, began, now)
	if left < 0 { // all of it is there again
		q.Remaining = 0
		return q
	}
	q.Spent = l.left == "0"
	if q.Spent || q.Remaining > 0 {
		q.Reset = left
	}
	return q
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
