package openai

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

func TestACountSaysWhatACallSaysOfWhatIsRead(t *testing.T) {
	req := everything(nil)
	req.Temperature, req.TopP = nil, nil
	req.Reasoning, req.ProviderTools = model.ReasoningLow, []model.ProviderTool{{Name: model.WebSearch}}
	s := &server{status: 200, body: responsesOK}
	m := NewResponses("gpt-5.1", s.option(), model.WithKey("k"))
	if _, err := m.Complete(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	s.body = `{"object":"response.input_tokens","input_tokens":321}`
	if n, err := m.CountTokens(t.Context(), req); err != nil || n != 321 {
		t.Fatalf("%d, %v", n, err)
	}
	if got := s.asked[1].URL.Path; got != "/v1/responses/input_tokens" {
		t.Error(got)
	}
	var called, counted map[string]any
	for i, into := range []*map[string]any{&called, &counted} {
		if err := json.Unmarshal(s.bodies[i], into); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"store", "include", "max_output_tokens"} { // nothing that is read
		if called[name] == nil {
			t.Errorf("a call says nothing of %s", name)
		}
		delete(called, name)
	}
	if diff := cmp.Diff(called, counted); diff != "" {
		t.Errorf("(-called +counted):\n%s", diff)
	}
}

func TestACountThatIsNoneIsAnError(t *testing.T) {
	s := &server{status: 200, body: `{"object":"response"}`}
	if _, err := NewResponses("m", s.option(), model.WithKey("k")).CountTokens(t.Context(), hi()); !errors.Is(err, errdefs.NotAvailable) {
		t.Error(err)
	}
}
