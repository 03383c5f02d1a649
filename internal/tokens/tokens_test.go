package tokens

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/message"
)

func TestTheEstimateCountsEveryPart(t *testing.T) {
	for name, c := range map[string]struct {
		m    message.Message
		want int
	}{
		"nothing":   {message.User(""), 4},
		"english":   {message.User(strings.Repeat("word", 100)), 104},
		"chinese":   {message.User(strings.Repeat("字", 100)), 104},
		"mixed":     {message.User("abcd字"), 6},
		"a call":    {message.Assistant("", message.ToolCall{ID: "c", Name: "bash", Input: `{"a":12}`}), 7},
		"a result":  {message.Results(message.ToolResult{Call: "c", Name: "bash", Content: "abcdefgh", Files: []message.File{{MIME: "image/png"}}}), 1606},
		"a file":    {message.New(message.RoleUser, message.File{MIME: "image/png"}), 1604},
		"reasoning": {message.New(message.RoleAssistant, message.Reasoning{Text: "hmmm"}, message.Opaque{JSON: `{"x":123}`}), 8},
	} {
		if got := Of(c.m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if got := In(message.NewHistory(message.User("abcd"), message.User("abcd"))); got != 10 {
		t.Error(got)
	}
}
