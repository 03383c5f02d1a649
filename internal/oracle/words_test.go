package oracle

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cassettes"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// words are what a vendor may say in one place, and what it means to us. A word that is empty here is kept as it is.
type words struct {
	vendor         vendor
	module, folder string // where the SDK has the type
	name           string // of the type whose constants are all of them
	answer         string // a whole answer with %s for the word
	stops          map[string]model.StopReason
	classes        map[string]*errdefs.Class
}

var vocabulary = []words{
	{
		vendor: anthropicSDK, module: "github.com/anthropics/anthropic-sdk-go", name: "StopReason",
		answer: `{"id":"m","type":"message","role":"assistant","model":"x","content":[],"stop_reason":%q,"usage":{}}`,
		stops: map[string]model.StopReason{
			"end_turn": model.StopEnd, "max_tokens": model.StopLength, "stop_sequence": model.StopSequence, "tool_use": model.StopTools,
			"pause_turn": model.StopPause, "refusal": model.StopRefusal, "model_context_window_exceeded": model.StopWindow,
		},
	},
	{
		vendor: anthropicSDK, module: "github.com/anthropics/anthropic-sdk-go", folder: "shared", name: "ErrorType",
		answer: `{"type":"error","error":{"type":%q,"message":"m"}}`,
		classes: map[string]*errdefs.Class{
			"invalid_request_error": errdefs.Validation, "authentication_error": errdefs.Unauthorized, "permission_error": errdefs.Unauthorized,
			"not_found_error": errdefs.NotFound, "rate_limit_error": errdefs.RateLimit, "timeout_error": errdefs.Timeout,
			"overloaded_error": errdefs.NotAvailable, "api_error": errdefs.NotAvailable, "billing_error": errdefs.Unauthorized,
		},
	},
	{
		vendor: responsesSDK, module: "github.com/openai/openai-go/v3", folder: "responses", name: "ResponseErrorCode",
		answer: `{"id":"r","object":"response","status":"failed","error":{"code":%q,"message":"m"},"output":[]}`,
		classes: map[string]*errdefs.Class{
			"server_error": errdefs.NotAvailable, "rate_limit_exceeded": errdefs.RateLimit, "vector_store_timeout": errdefs.Timeout,
			"invalid_prompt": errdefs.Refused, "bio_policy": errdefs.Refused, "misalignment_policy_violation": errdefs.Refused,
			"image_content_policy_violation": errdefs.Refused, "data_residency_mismatch": errdefs.Validation,
			"invalid_image": errdefs.Validation, "invalid_image_format": errdefs.Validation, "invalid_base64_image": errdefs.Validation,
			"invalid_image_url": errdefs.Validation, "image_too_large": errdefs.Validation, "image_too_small": errdefs.Validation,
			"image_parse_error": errdefs.Validation, "invalid_image_mode": errdefs.Validation, "image_file_too_large": errdefs.Validation,
			"unsupported_image_media_type": errdefs.Validation, "empty_image_file": errdefs.Validation,
			"failed_to_download_image": errdefs.Validation, "image_file_not_found": errdefs.Validation,
		},
	},
	{
		vendor: responsesSDK, module: "github.com/openai/openai-go/v3", folder: "responses", name: "ResponseStatus",
		answer: `{"id":"r","object":"response","status":%q,"output":[]}`,
		stops:  map[string]model.StopReason{"completed": model.StopEnd, "incomplete": ""},
		classes: map[string]*errdefs.Class{
			"failed": errdefs.NotAvailable, "in_progress": errdefs.NotAvailable, "cancelled": errdefs.NotAvailable, "queued": errdefs.NotAvailable,
		},
	},
	{
		vendor: geminiSDK, module: "google.golang.org/genai", name: "FinishReason",
		answer: `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]},"finishReason":%q}]}`,
		stops: map[string]model.StopReason{
			"STOP": model.StopEnd, "MAX_TOKENS": model.StopLength, "CONTINUATION": model.StopLength,
			"SAFETY": model.StopFilter, "RECITATION": model.StopFilter, "LANGUAGE": model.StopFilter, "BLOCKLIST": model.StopFilter,
			"PROHIBITED_CONTENT": model.StopFilter, "SPII": model.StopFilter, "IMAGE_SAFETY": model.StopFilter,
			"IMAGE_PROHIBITED_CONTENT": model.StopFilter, "IMAGE_RECITATION": model.StopFilter,
			"MALFORMED_FUNCTION_CALL": model.StopBadCall, "UNEXPECTED_TOOL_CALL": model.StopBadCall,
			"OTHER": "", "TOO_MANY_TOOL_CALLS": "", "NO_IMAGE": "", "IMAGE_OTHER": "",
		},
		classes: map[string]*errdefs.Class{"FINISH_REASON_UNSPECIFIED": errdefs.NotAvailable}, // it is not finished
	},
	{
		vendor: geminiSDK, module: "google.golang.org/genai", name: "BlockedReason",
		answer: `{"promptFeedback":{"blockReason":%q}}`,
		stops: map[string]model.StopReason{
			"BLOCKED_REASON_UNSPECIFIED": model.StopFilter, "SAFETY": model.StopFilter, "OTHER": model.StopFilter, "BLOCKLIST": model.StopFilter,
			"PROHIBITED_CONTENT": model.StopFilter, "IMAGE_SAFETY": model.StopFilter, "MODEL_ARMOR": model.StopFilter, "JAILBREAK": model.StopFilter,
		},
	},
}

// Every word that a vendor's SDK has a constant for is understood, or known to be kept as it is. A new one fails the test until somebody
// has said what it means.
func TestEveryWordOfAVendorHasAMeaning(t *testing.T) {
	for _, w := range vocabulary {
		t.Run(w.vendor.name+"/"+w.name, func(t *testing.T) {
			all := constants(t, w)
			if n := len(w.stops) + len(w.classes); n != len(all) {
				t.Errorf("the SDK has %d words, the table %d: %q", len(all), n, all)
			}
			for _, word := range all {
				stop, isStop := w.stops[word]
				class := w.classes[word]
				if !isStop && class == nil {
					t.Errorf("nobody has said what %q means", word)
					continue
				}
				if stop == "" {
					stop = model.StopReason(word)
				}
				s := serve(t, cassettes.Exchange{Status: http.StatusOK, ContentType: "application/json", ResponseBody: fmt.Appendf(nil, w.answer, word)})
				m := w.vendor.ours(w.vendor.model, model.WithHTTPClient(s.client()), model.WithKey("test-key"))
				r, err := m.Complete(t.Context(), model.Request{Messages: message.NewHistory(message.User("Hi"))})
				switch {
				case isStop && (err != nil || r.Stop != stop):
					t.Errorf("%q: %+v, %v, want the stop reason %q", word, r, err, stop)
				case !isStop && !errors.Is(err, class):
					t.Errorf("%q: %v, want an error of class %v", word, err, class)
				}
			}
		})
	}
}

// constants reads the SDK's source for the values of a type's constants.
func constants(t *testing.T, w words) (values []string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", w.module).Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), w.folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == w.name {
				for _, v := range spec.Values {
					if lit, ok := v.(*ast.BasicLit); ok {
						word, _ := strconv.Unquote(lit.Value)
						values = append(values, word)
					}
				}
			}
			return true
		})
	}
	return values
}
