package journal_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/journal"
)

// A board that was read is written, and read again it is the same: checkpoints that anybody keeps are nothing else.
func FuzzBoard(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"channels":{"main":[{"role":"user","parts":[{"type":"text","text":"<hi>&\u2028"}]}],"b":[]},"vars":{"n":1,"f":1.0,"l":[null,{"a":"b"}]}}`,
		`{"channels":{"main":["{\"role\":\"user\"}", null]}}`, `{"vars":{"a":{"$int64":5},"b":{"$time":"2026-01-02T03:04:05Z"},"c":{"$json":null},"d":{"$$int64":1}}}`, `{"channels":{"a":null,"A":[{}]}}`, `{"vars":{"big":1e400}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s journal.Snapshot
		if json.Unmarshal(b, &s) != nil {
			return
		}
		first, err := json.Marshal(s)
		if err != nil {
			return // a message without a role has no place in a journal
		}
		var again journal.Snapshot
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%q is written as %q: %v", b, first, err)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("the bytes moved: %v\n%s\n%s", err, first, second)
		}
	})
}
