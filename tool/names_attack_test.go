package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// somebodys is a tool that somebody else implements.
type somebodys struct{}

func (somebodys) Definition() tool.Definition {
	return tool.Definition{Tool: model.Tool{Name: "pay", Schema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"},"to":{"type":"object"}}}`)}}
}

func (somebodys) Execute(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Result{}, nil
}

// What a gate reads in an input is what the tool reads: no member hides behind another one of its name.
func TestAnInputHasOneReading(t *testing.T) {
	s, err := tool.NewSet(somebodys{})
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		`{"amount":5,"more":1}`:                  "",
		`{"Amount":5}`:                           `{"amount":5}`,
		`{"amount":5000,"amount":5}`:             "twice",
		`{"amount":5,"Amount":5000}`:             "the same",
		`{"amount":5000,"\u0061mount":5}`:        "twice",
		`{"more":1,"more":2}`:                    "twice",
		`{"to":{"iban":"a","iban":"b"}}`:         "twice",
		`{"to":{"all":[{"a":1},{"b":1,"b":2}]}}`: "twice",
		`{"to":` + strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200) + "}": "nested more than",
	} {
		got, err := s.Check(message.ToolCall{Name: "pay", Input: input})
		switch {
		case want == "" && (err != nil || got != input), strings.HasPrefix(want, "{") && got != want:
			t.Errorf("%s: got %s, %v", input, got, err)
		case want != "" && want[0] != '{' && (!errdefs.Validation.Is(err) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %s, %v, want %q", input, got, err, want)
		}
	}
}
