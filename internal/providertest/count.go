package providertest

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// counts checks that a request whose tokens are counted says what the call would, and fails as it would.
func (p Provider) counts(t *testing.T) {
	if p.lacks("count") {
		if _, ok := model.As[model.Counter](p.New()); ok {
			t.Error("the model is a model.Counter")
		}
		p.skip(t, "count")
	}
	answer := p.fixture(t, "count.json")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, http.StatusOK, answer) })
	count, ok := model.As[model.Counter](p.model(s))
	if !ok {
		t.Fatal("the model is no model.Counter")
	}
	req := model.Request{System: "Be brief.", Tools: tools, Messages: toolRound(), Output: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}
	n, err := count.CountTokens(t.Context(), req)
	if err != nil || n != 42 {
		t.Fatalf("%d, %v, want 42", n, err)
	}
	want, _ := p.ask(t, req)
	got := p.read(t, s.seen()[0])
	got.MaxTokens = want.MaxTokens // which is no matter of what goes in
	equal(t, "what is counted", want, got)

	if _, err := count.CountTokens(t.Context(), model.Request{System: "Be brief."}); !errors.Is(err, errdefs.Validation) {
		t.Errorf("nothing to say: got %v, want an error of class validation", err)
	}
	_, err = count.CountTokens(t.Context(), model.Request{Messages: message.NewHistory(message.New(message.RoleUser, message.File{MIME: "application/x-odd", Data: "x"}))})
	if !errors.Is(err, errdefs.Validation) {
		t.Errorf("a file of an unknown type: got %v, want an error of class validation", err)
	}
	if n := len(s.seen()); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	for _, c := range failures {
		if c.retryAfter != "" || p.lacks(c.name) {
			continue
		}
		body := p.fixture(t, c.name+".json")
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ call) { whole(w, c.status, body) })
		count, _ := model.As[model.Counter](p.model(s))
		_, err := count.CountTokens(t.Context(), hi())
		c.check(t, p, err)
	}
}
