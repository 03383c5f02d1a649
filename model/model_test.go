package model_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

func ptr[T any](v T) *T { return &v }

func TestWhatAModelCannotDoIsSaidAllAtOnce(t *testing.T) {
	req := model.Request{
		Messages: message.NewHistory(
			message.New(message.RoleUser, message.File{MIME: "image/png"}, message.Text{Text: "x"}),
			message.Assistant("", message.ToolCall{ID: "c", Name: "shot"}),
			message.Results(message.ToolResult{Call: "c", Name: "shot", Files: []message.File{{MIME: "audio/wav"}}}),
		),
		Tools:    []model.Tool{{Name: "t"}},
		Settings: model.Settings{MaxTokens: 5, TopK: ptr(3), Seed: ptr(int64(1)), Stop: []string{"x"}, FrequencyPenalty: ptr(0.5), PresencePenalty: ptr(0.0)},
		Output:   []byte(`{}`),
	}
	err := model.Capabilities{Name: "p/m"}.Admit(req)
	if !errdefs.Validation.Is(err) {
		t.Fatal(err)
	}
	for _, want := range []string{"p/m", "tools", "output schema", "top_k", "seed", "stop sequences", "output limit", "frequency_penalty", "presence_penalty", `"image/png" (message 1)`, `"audio/wav" (result of shot, message 3)`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	all := model.Capabilities{Tools: true, Images: true, Documents: true, Audio: true, Schema: true, TopK: true, Seed: true, Stop: true, MaxTokens: true, Penalties: true}
	if err := all.Admit(req); err != nil {
		t.Error(err)
	}
	odd := model.Request{Messages: message.NewHistory(message.New(message.RoleUser, message.File{MIME: "application/x-thing"}))}
	if err := all.Admit(odd); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
	if err := (model.Capabilities{}).Admit(model.Request{Messages: message.NewHistory(message.User("hi"))}); err != nil {
		t.Error("plain text needs nothing:", err)
	}
}

func TestAProvidersErrorHasItsClassItsCauseAndOneLine(t *testing.T) {
	e := &model.Error{Provider: "p", Kind: errdefs.RateLimit, Status: 429, Code: "slow", Message: "later", RequestID: "r1", Err: io.ErrUnexpectedEOF}
	wrapped := errors.Join(errors.New("x"), e)
	if !errors.Is(wrapped, errdefs.RateLimit) || errors.Is(wrapped, errdefs.Timeout) || !errors.Is(wrapped, io.ErrUnexpectedEOF) || errdefs.Of(wrapped) != errdefs.RateLimit {
		t.Error("class or cause")
	}
	if got := e.Error(); got != "p: HTTP 429: slow: later: unexpected EOF (request r1)" {
		t.Error(got)
	}
}

func TestStatusesHaveClasses(t *testing.T) {
	for status, want := range map[int]*errdefs.Class{
		400: errdefs.Validation, 401: errdefs.Unauthorized, 402: errdefs.Unauthorized, 403: errdefs.Unauthorized, 404: errdefs.NotFound, 408: errdefs.Timeout,
		409: errdefs.Conflict, 413: errdefs.Overflow, 422: errdefs.Validation, 429: errdefs.RateLimit, 500: errdefs.NotAvailable, 503: errdefs.NotAvailable,
		504: errdefs.Timeout, 529: errdefs.NotAvailable,
	} {
		if got := model.ClassOfStatus(status); got != want {
			t.Errorf("%d is %v, want %v", status, got, want)
		}
	}
}

func TestUsageAddsUp(t *testing.T) {
	u := model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}
	if got := u.Add(u); got != (model.Usage{Input: 2, Output: 4, CacheRead: 6, CacheWrite: 8, Reasoning: 2}) || got.Total() != 20 {
		t.Error(got, got.Total())
	}
}

func TestTheAttemptTravelsInTheContext(t *testing.T) {
	if n := model.Attempt(t.Context()); n != 0 {
		t.Error(n)
	}
	if n := model.Attempt(model.WithAttempt(t.Context(), 2)); n != 2 {
		t.Error(n)
	}
}
