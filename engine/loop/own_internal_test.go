package loop

import (
	"testing"

	"github.com/pawl-dev/pawl/message"
)

func TestAReplyStaysTheSameMessageUnlessACallOfItCannot(t *testing.T) {
	call := func(id, input string) message.ToolCall { return message.ToolCall{ID: id, Name: "x", Input: input} }
	for name, tc := range map[string]struct {
		calls []message.ToolCall
		want  []message.ToolCall // nil: the message itself
	}{
		"two calls":           {[]message.ToolCall{call("a", `{}`), call("b", `{"a":1}`)}, nil},
		"no JSON":             {[]message.ToolCall{call("a", `{`)}, nil},
		"an id twice":         {[]message.ToolCall{call("a", `{}`), call("a", `{}`)}, []message.ToolCall{call("a", `{}`), call("a_3_2", `{}`)}},
		"no id":               {[]message.ToolCall{call("", `{}`)}, []message.ToolCall{call("call_3_1", `{}`)}},
		"a stroke in an id":   {[]message.ToolCall{call("a/b", `{}`)}, []message.ToolCall{call("a_b", `{}`)}},
		"an input with space": {[]message.ToolCall{call("a", `{ }`)}, []message.ToolCall{call("a", `{}`)}},
	} {
		m := message.Assistant("text", tc.calls...)
		got := own(nil, m, "", 3)
		if tc.want == nil {
			if got != m {
				t.Errorf("%s: it is another message: %v", name, got)
			}
			continue
		}
		for i, c := range got.ToolCalls() {
			if c.ID != tc.want[i].ID || c.Input != tc.want[i].Input {
				t.Errorf("%s: call %d is %v, want %v", name, i, c, tc.want[i])
			}
		}
	}
}
