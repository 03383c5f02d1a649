package message_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

func TestPartsHaveTheJSONThatTheyHaveInAMessage(t *testing.T) {
	all := message.Parts{
		message.Text{Text: "hi"},
		message.File{MIME: "image/png", Data: "\x89PNG"},
		message.ToolCall{ID: "c", Name: "add", Input: `{"a":1}`},
		message.ToolResult{Call: "c", Content: "1", IsError: true},
	}
	for name, c := range map[string]struct {
		parts message.Parts
		json  string
	}{
		"nil":   {nil, `null`},
		"empty": {message.Parts{}, `[]`},
		"all": {all, `[{"type":"text","text":"hi"},{"type":"file","mime":"image/png","data":"iVBORw=="},` +
			`{"type":"tool_call","id":"c","name":"add","input":{"a":1}},{"type":"tool_result","call":"c","content":"1","is_error":true}]`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(c.parts)
			if err != nil || string(b) != c.json {
				t.Fatal(string(b), err)
			}
			back := message.Parts{message.Text{Text: "old"}}
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.parts, back); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := json.Marshal(message.Parts{nil}); !errors.Is(err, errdefs.Validation) {
		t.Error("a nil part:", err)
	}
	for _, bad := range []string{`{}`, `"x"`, `[{"type":"hologram"}]`, `[{"type":"file","mime":"a/b","data":"%"}]`} {
		kept := message.Parts{message.Text{Text: "old"}}
		if err := json.Unmarshal([]byte(bad), &kept); !errors.Is(err, errdefs.Validation) || len(kept) != 1 {
			t.Error(bad, err, kept)
		}
	}
}
