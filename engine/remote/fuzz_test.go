package remote

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/message"
)

// What an agent elsewhere sends is a message that can be kept, and given to any model: its files are such, and its bytes stay.
func FuzzSaid(f *testing.F) {
	for _, s := range []string{
		`[{"text":"a"},{"text":"b"},{"data":{"x":1}},{"raw":"AAA=","mediaType":"image/png","filename":"f"},{"url":"https://h/x","mediaType":"a/b"}]`,
		`[{"url":"http://"},{"url":"https:// "},{"url":"data:,x"},{"raw":""},{"raw":"AA==","mediaType":"/"},{"raw":"AA==","mediaType":"a/b; c=\r\nx"},{"url":"https://h","mediaType":"a b/c"}]`, `[{"text":"\ud800"},{"text":""}]`, `[{}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var parts []a2a.Part
		if a2a.V1.Unmarshal(b, &parts) != nil {
			return
		}
		m := message.New(message.RoleAssistant, said(parts)...)
		if err := m.CheckFiles(); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		first := m.AppendJSON(nil)
		var again message.Message
		if err := json.Unmarshal(first, &again); err != nil || !bytes.Equal(first, again.AppendJSON(nil)) {
			t.Fatalf("%q: %s, %v", b, first, err)
		}
	})
}
