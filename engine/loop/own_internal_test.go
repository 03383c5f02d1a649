package loop

import (
	"slices"
	"strconv"
	"testing"

	"github.com/pawl-dev/pawl/message"
)

// apartAs are the calls behind the first of the same id, as they are told apart.
func apartAs(n int) (calls []message.ToolCall) {
	for i := range n {
		calls = append(calls, message.ToolCall{ID: "a_3_" + strconv.Itoa(i+2), Name: "x", Input: `{}`})
	}
	return calls
}

func TestAReplyStaysTheSameMessageUnlessACallOfItCannot(t *testing.T) {
	call := func(id, input string) message.ToolCall { return message.ToolCall{ID: id, Name: "x", Input: input} }
	for name, tc := range map[string]struct {
		calls []message.ToolCall
		want  []message.ToolCall // nil: the message itself
	}{
		"two calls":           {[]message.ToolCall{call("a", `{}`), call("b", `{"a":1}`)}, nil},
		"no JSON":             {[]message.ToolCall{call("a", `{`)}, nil},
		"an id twice":         {[]message.ToolCall{call("a", `{}`), call("a", `{}`)}, []message.ToolCall{call("a", `{}`), call("a_3_2", `{}`)}},
		"an id ten times":     {slices.Repeat([]message.ToolCall{call("a", `{}`)}, 10), append([]message.ToolCall{call("a", `{}`)}, apartAs(9)...)},
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

func TestTellingACallApartCostsLittle(t *testing.T) {
	m := message.Assistant("text", message.ToolCall{Name: "x", Input: `{}`})  // without an id, as some providers have them
	if n := testing.AllocsPerRun(100, func() { own(nil, m, "", 3) }); n > 4 { // its id, the calls, the call, the message
		t.Errorf("%v allocations", n)
	}
}
