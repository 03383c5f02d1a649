package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
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

func TestWhatAModelThinksRunsAndKeepsHasToBeInItsPower(t *testing.T) {
	can := model.Capabilities{Name: "p/m", Provider: "p", Documents: true, Reasoning: []model.ReasoningLevel{model.ReasoningLow, model.ReasoningHigh}, ProviderTools: []string{model.WebSearch}}
	kept := func(f message.File) message.History {
		f.MIME = "application/pdf"
		return message.NewHistory(message.New(message.RoleUser, f))
	}
	for name, c := range map[string]struct {
		req  model.Request
		want string
	}{
		"a level":               {model.Request{Settings: model.Settings{Reasoning: model.ReasoningHigh}}, ""},
		"a level too many":      {model.Request{Settings: model.Settings{Reasoning: model.ReasoningMax}}, `reasoning "max" (of ["low" "high"])`},
		"a tool":                {model.Request{Settings: model.Settings{ProviderTools: []model.ProviderTool{{Name: model.WebSearch}}}}, ""},
		"a tool too many":       {model.Request{Settings: model.Settings{ProviderTools: []model.ProviderTool{{Name: model.CodeExecution}}}}, `a tool "code_execution" that it runs itself (of ["web_search"])`},
		"a file that it keeps":  {model.Request{Messages: kept(message.File{Provider: "p", ID: "f"})}, ""},
		"another's file":        {model.Request{Messages: kept(message.File{Provider: "q", ID: "f"})}, "a file that only q keeps (message 1)"},
		"another's, with bytes": {model.Request{Messages: kept(message.File{Provider: "q", ID: "f", Data: "x"})}, ""},
	} {
		err := can.Admit(c.req)
		if apart := can; strings.Contains(name, "file") { // the files' keeper has a name of its own
			apart.Provider, apart.Files = "wire", "p"
			if other := apart.Admit(c.req); fmt.Sprint(err) != fmt.Sprint(other) {
				t.Errorf("%s: %v, and where they are kept under another name: %v", name, err, other)
			}
		}
		if c.want == "" && err != nil || c.want != "" && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type uploads struct{ model.Model }

func (uploads) Upload(context.Context, message.File) (message.File, error) {
	return message.File{ID: "kept"}, nil
}
func (uploads) Discard(context.Context, message.File) error { return nil }

type around struct{ model.Model }

func (a around) Unwrap() model.Model { return a.Model }

func TestWhatAWrappedModelCanDoIsFound(t *testing.T) {
	m := model.Wrap(uploads{}, func(m model.Model) model.Model { return around{m} }, func(m model.Model) model.Model { return around{m} })
	u, ok := model.As[model.Uploader](m)
	if !ok {
		t.Fatal("it is under two wrappers")
	}
	if f, err := u.Upload(t.Context(), message.File{}); err != nil || f.ID != "kept" {
		t.Error(f, err)
	}
	if _, ok := model.As[model.Counter](m); ok {
		t.Error("none of them counts")
	}
	if _, ok := model.CapabilitiesOf(m); ok {
		t.Error("none of them says what it can do")
	}
}

func TestSettingsAreComparedAndCopiedWhole(t *testing.T) {
	full := func() model.Settings {
		return model.Settings{
			MaxTokens: 1, Temperature: ptr(0.5), TopP: ptr(0.5), TopK: ptr(1), Seed: ptr(int64(1)), Stop: []string{"a"}, ToolChoice: "t", Reasoning: model.ReasoningLow,
			ProviderTools: []model.ProviderTool{{Name: "w", Options: []byte(`{}`)}}, FrequencyPenalty: ptr(0.5), PresencePenalty: ptr(0.5),
		}
	}
	s := full()
	copied := s.Clone()
	if !s.Equal(full()) || !copied.Equal(s) {
		t.Fatal("they are equal")
	}
	changes := map[string]func(*model.Settings){
		"MaxTokens": func(s *model.Settings) { s.MaxTokens++ }, "Temperature": func(s *model.Settings) { *s.Temperature++ }, "TopP": func(s *model.Settings) { *s.TopP++ },
		"TopK": func(s *model.Settings) { *s.TopK++ }, "Seed": func(s *model.Settings) { *s.Seed++ }, "Stop": func(s *model.Settings) { s.Stop[0] = "b" },
		"ToolChoice": func(s *model.Settings) { s.ToolChoice = "" }, "Reasoning": func(s *model.Settings) { s.Reasoning = "" },
		"ProviderTools": func(s *model.Settings) { s.ProviderTools[0].Options[0] = 'x' }, "FrequencyPenalty": func(s *model.Settings) { *s.FrequencyPenalty++ },
		"PresencePenalty": func(s *model.Settings) { *s.PresencePenalty++ },
	}
	if n := reflect.TypeFor[model.Settings]().NumField(); n != len(changes) {
		t.Errorf("there are %d settings, and %d are tried", n, len(changes))
	}
	for name, change := range changes {
		s := full()
		copied := s.Clone()
		if change(&s); s.Equal(copied) || !copied.Equal(full()) {
			t.Errorf("%s is not compared, or not copied", name)
		}
	}
}
