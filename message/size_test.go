package message_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pawl-dev/pawl/message"
)

// A program has many messages in memory: those that are like most take little beside their parts.
func TestAMessageTakes96BytesBesideItsParts(t *testing.T) {
	text, call := message.Part(message.Text{Text: "a"}), message.Part(message.ToolCall{ID: "c"})
	for name, parts := range map[string][]message.Part{"no part": nil, "one part": {text}, "two parts": {text, call}} {
		const n = 10_000
		all := make([]message.Message, n)
		encoded := []byte("x")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range all {
			all[i] = message.New(message.RoleAssistant, parts...)
			all[i].Encoded(nil, func(message.Message) []byte { return encoded })
		}
		runtime.ReadMemStats(&after)
		if each := float64(after.TotalAlloc-before.TotalAlloc) / n; each > 97 {
			t.Errorf("%s, encoded once: %.0f bytes", name, each)
		}
		runtime.KeepAlive(all)
	}
}

func TestAMessageHasItsRoleAndPartsWhateverTheyAre(t *testing.T) {
	for _, role := range []message.Role{"", message.RoleUser, message.RoleAssistant, message.RoleTool, "system", "narrator"} {
		for n := range 20 {
			var parts []message.Part
			for i := range n {
				parts = append(parts, message.Text{Text: fmt.Sprint(i)})
			}
			m := message.New(role, parts...)
			if m.Role() != role || m.Len() != n {
				t.Fatalf("%d parts of %q: %d of %q", n, role, m.Len(), m.Role())
			}
			for i := range n {
				if p, ok := m.Part(i).(message.Text); !ok || p.Text != fmt.Sprint(i) {
					t.Fatalf("part %d of %d of %q is %v", i, n, role, m.Part(i))
				}
			}
		}
	}
}

func TestAMessageRemembersItsBytesInEachFormat(t *testing.T) {
	m := message.User("a")
	for round := range 3 {
		for format := range 4 {
			got := string(m.Encoded(format, func(message.Message) []byte {
				if round > 0 {
					t.Errorf("format %d is encoded again", format)
				}
				return []byte(fmt.Sprint("as ", format))
			}))
			if got != fmt.Sprint("as ", format) {
				t.Errorf("format %d: %q", format, got)
			}
		}
	}
}
