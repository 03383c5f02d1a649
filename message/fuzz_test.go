package message_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// What was read is written, and that is read and written alike: bytes of a message stay. What can't be read says so with its class.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`null`, `{"role":"user"}`, `{"role":"user","parts":[{"type":"text","text":"hi \ud83d"}]}`,
		`{"role":"assistant","parts":[{"type":"reasoning","text":"r","signature":"s","provider":"p","extra":{"a":[1,2.50]}},{"type":"tool_call","id":"c","name":"n","input":{"b":1, "a":2}}]}`,
		`{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"n","input":"{\"half"}]}`,
		`{"role":"assistant","parts":[{"type":"provider_call","provider":"p","json":{"type":"x"},"call":"c","name":"n","sources":[{"url":"u","start":-1,"end":9223372036854775808}]},{"type":"opaque","provider":"p","json":"x"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call":"c","name":"n","content":"x","is_error":true,"files":[{"type":"file","mime":"image/png","data":"AAA="},{"data":"!"}]}]}`,
		`{"role":"user","parts":[{"type":"file","mime":"a/b","url":"https://h"},{"type":"file","provider":"p","id":"i"},{"type":"hologram"}],"parts":[]}`,
		`{"role":"user","parts":{}}`, `{"role":"user","parts":[{"type":"opaque","json":{"a":1,"a":` + "\"\xff\"" + `}}]}`, `{"role":"user"} x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message.Message
		if err := m.UnmarshalJSON(b); err != nil {
			if !errdefs.Validation.Is(err) {
				t.Fatalf("%q: %v has no class", b, err)
			}
			if !m.IsZero() {
				t.Fatalf("%q: half of it was read: %v", b, m)
			}
			return
		}
		if m.IsZero() {
			return // null
		}
		first := m.AppendJSON(nil)
		if !json.Valid(first) {
			t.Fatalf("%q is written as %q", b, first)
		}
		var again message.Message
		if err := again.UnmarshalJSON(first); err != nil {
			t.Fatalf("%q is written as %q: %v", b, first, err)
		}
		if second := again.AppendJSON(nil); !bytes.Equal(first, second) {
			t.Fatalf("the bytes moved:\n%s\n%s", first, second)
		}
		var parts message.Parts
		list, err := message.Parts(nil).MarshalJSON()
		for p := range m.Parts() {
			parts = append(parts, p)
		}
		if parts != nil {
			list, err = parts.MarshalJSON()
		}
		if err != nil || parts.UnmarshalJSON(list) != nil || len(parts) != m.Len() {
			t.Fatalf("parts outside of a message: %s, %v: %d of %d", list, err, len(parts), m.Len())
		}
	})
}
