package openai

import (
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wire"
	"github.com/pawl-dev/pawl/model"
)

// kinds has the classes of OpenAI's error codes, for those that say more than the status or come without one.
var kinds = map[string]*errdefs.Class{
	"insufficient_quota":             errdefs.RateLimit, // its status says so, and the code tells it apart
	"rate_limit_exceeded":            errdefs.RateLimit,
	"invalid_api_key":                errdefs.Unauthorized,
	"model_not_found":                errdefs.NotFound,
	"content_filter":                 errdefs.Refused, // Azure, for a prompt that its filter stopped
	"content_policy_violation":       errdefs.Refused,
	"invalid_prompt":                 errdefs.Refused, // Responses: "limited access to this content for safety reasons"
	"bio_policy":                     errdefs.Refused,
	"misalignment_policy_violation":  errdefs.Refused,
	"image_content_policy_violation": errdefs.Refused,
	"data_residency_mismatch":        errdefs.Validation, // the project's region and the address don't go together
	"vector_store_timeout":           errdefs.Timeout,
	"invalid_request_error":          errdefs.Validation,
	"server_error":                   errdefs.NotAvailable,
	"overloaded":                     errdefs.NotAvailable,
	"overloaded_error":               errdefs.NotAvailable,
	"server_is_overloaded":           errdefs.NotAvailable,
}

// explain reads what an error body says beyond its envelope. Some servers give a status as a number where OpenAI has its code; inside
// of a stream, it is all there is.
func explain(body []byte, e *model.Error) {
	inner := wire.Get(body, "error")
	if wire.IsNull(inner) {
		inner = body
	}
	code := wire.Get(inner, "code")
	if n := wire.Int(code); n >= 400 && n < 600 {
		if e.Code == "" {
			e.Code = strconv.FormatInt(n, 10)
		}
		if e.Status == 0 {
			e.Kind = model.ClassOfStatus(int(n))
		}
	}
	word := wire.String(code)
	if word == "" {
		word = e.Code
	}
	kind, known := kinds[word]
	switch {
	case !known && aboutImage(word, e.Status):
		e.Kind = errdefs.Validation
	case !known, word == "invalid_request_error" && e.Status != 0: // the status says it better: 401, 404 and others share that word
	default:
		e.Kind = kind
	}
}

// aboutImage reports whether a code says what is wrong with an image of the request. Responses has more than a dozen of these, and gives
// them without a status: "image_too_large", "invalid_base64_image", "failed_to_download_image".
func aboutImage(code string, status int) bool {
	return strings.HasPrefix(code, "invalid_image") || status == 0 && strings.Contains(code, "image")
}
