package chat

import (
	"errors"
	"net/http"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/serve/internal/web"
)

// Answer is a whole answer, or with Object "chat.completion.chunk" a bit of one.
type Answer struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"` // seconds since 1970
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is the one that there is.
type Choice struct {
	Index   int      `json:"index"`
	Message *Message `json:"message,omitempty"` // of a whole answer
	Delta   *Delta   `json:"delta,omitempty"`   // of a chunk
	Logs    *none    `json:"logprobs"`
	Finish  *string  `json:"finish_reason"`
}

// Message is what the assistant says. Reasoning has the name that front ends read.
type Message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Refusal   *none  `json:"refusal"`
	Reasoning string `json:"reasoning_content,omitempty"`
}

// Delta is more of it.
type Delta struct {
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	Reasoning string  `json:"reasoning_content,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"` // cached ones included
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	PromptOf   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionOf struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// UsageOf is what a run took.
func UsageOf(u model.Usage) *Usage {
	out := &Usage{Prompt: u.Input + u.CacheRead + u.CacheWrite, Completion: u.Output, Total: u.Total()}
	out.PromptOf.Cached, out.CompletionOf.Reasoning = u.CacheRead, u.Reasoning
	return out
}

// Model is an agent, as clients list it.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

// Problem is an error as clients read it.
type Problem struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// ProblemOf is what is told of an error. Its code is that of a ParamError, else the name of its class.
func ProblemOf(err error) Problem {
	p := Problem{Message: err.Error(), Type: "invalid_request_error", Code: web.ProblemOf(err).Class}
	switch status := statusOf(err); {
	case status == http.StatusUnauthorized:
		p.Type, p.Code = "authentication_error", "invalid_api_key"
	case status == http.StatusForbidden:
		p.Type = "permission_error"
	case errdefs.RateLimit.Is(err):
		p.Type, p.Code = "rate_limit_error", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		p.Type = "server_error"
	}
	var of *ParamError
	if errors.As(err, &of) {
		p.Param, p.Code = &of.Param, of.Code
	}
	return p
}

// RunError is what a run failed with, which its client did nothing about: a key that the model's provider refuses is not the client's.
type RunError struct{ Err error }

func (e *RunError) Error() string { return e.Err.Error() }
func (e *RunError) Unwrap() error { return e.Err }

// statusOf is the HTTP status of an error. Of what a run failed with, clients hear what may pass when they try again, and else that what is behind this server failed.
func statusOf(err error) int {
	if errors.As(err, new(*RunError)) && !errdefs.RateLimit.Is(err) && !errdefs.Timeout.Is(err) && !errdefs.NotAvailable.Is(err) {
		return http.StatusBadGateway
	}
	return web.Status(err)
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, _ *http.Request, err error) {
	status := statusOf(err)
	if h := w.Header(); (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && h.Get("X-Should-Retry") == "" {
		h.Set("Retry-After", "5")
	}
	web.Write(w, status, map[string]Problem{"error": ProblemOf(err)})
}
