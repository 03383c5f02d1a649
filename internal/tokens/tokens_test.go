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

func TestAMessageIsLookedAtOnce(t *testing.T) {
	m := message.User(strings.Repeat("word", 100))
	h := message.NewHistory(m, message.Message{}, message.User("abcd"))
	if first, second := In(h), In(h); first != 104+4+5 || second != first {
		t.Errorf("%d and %d", first, second)
	}
	seen := m.Encoded(estimated{}, func(message.Message) []byte { t.Error("it remembers nothing"); return nil })
	if len(seen) == 0 {
		t.Error("it remembers nothing")
	}
	if n := testing.AllocsPerRun(100, func() { In(h) }); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}
