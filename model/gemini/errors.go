package gemini

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/httpapi"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// explain reads Google's error envelope, {"error": {code, message, status, details}}, which some front ends put in an array.
func explain(body []byte, e *model.Error) {
	if list := wire.Array(body); list.Next() {
		body = list.Value
		httpapi.Envelope(body, e)
	}
	failure := wire.Get(body, "error")
	if code := int(wire.Int(wire.Get(failure, "code"))); e.Status == 0 && code >= 400 {
		e.Kind = model.ClassOfStatus(code)
	}
	if class := classes[e.Code]; class != nil {
		e.Kind = class
	}
	for d := wire.Array(wire.Get(failure, "details")); d.Next(); {
		switch kind := wire.String(wire.Get(d.Value, "@type")); {
		case strings.HasSuffix(kind, "google.rpc.ErrorInfo"):
			if strings.HasPrefix(wire.String(wire.Get(d.Value, "reason")), "API_KEY_") { // invalid, blocked for this service, …: with status 400
				e.Kind = errdefs.Unauthorized
			}
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			if wait, err := time.ParseDuration(wire.String(wire.Get(d.Value, "retryDelay"))); err == nil && e.RetryAfter == 0 {
				e.RetryAfter = max(0, wait)
			}
		case strings.HasSuffix(kind, "google.rpc.QuotaFailure"):
			for v := wire.Array(wire.Get(d.Value, "violations")); v.Next(); {
				exceeded(wire.String(wire.Get(v.Value, "quotaId")), wire.String(wire.Get(v.Value, "quotaValue")), &e.Rate)
			}
		}
	}
}

// exceeded reads which limit was reached, such as GenerateRequestsPerMinutePerProjectPerModel-FreeTier. Those of a day are none of a minute.
func exceeded(id, limit string, r *model.Rate) {
	n, err := strconv.Atoi(limit)
	if err != nil || n <= 0 || !strings.Contains(id, "PerMinute") {
		return
	}
	q := &r.Requests
	if strings.Contains(id, "Tokens") {
		q = &r.Tokens
	}
	q.Limit, q.Spent = n, true
}

// classes has the canonical codes of Google's APIs, by which errors inside of a stream are told apart too.
var classes = map[string]*errdefs.Class{
	"RESOURCE_EXHAUSTED":  errdefs.RateLimit,
	"UNAVAILABLE":         errdefs.NotAvailable,
	"INTERNAL":            errdefs.NotAvailable,
	"UNKNOWN":             errdefs.NotAvailable,
	"CANCELLED":           errdefs.NotAvailable, // by their side: ours gives the context's error
	"DEADLINE_EXCEEDED":   errdefs.Timeout,
	"UNAUTHENTICATED":     errdefs.Unauthorized,
	"PERMISSION_DENIED":   errdefs.Unauthorized,
	"NOT_FOUND":           errdefs.NotFound,
	"INVALID_ARGUMENT":    errdefs.Validation,
	"FAILED_PRECONDITION": errdefs.Validation,
	"OUT_OF_RANGE":        errdefs.Validation,
}
