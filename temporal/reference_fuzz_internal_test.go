package temporal

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// What stands in a workflow's history is a service's word: an outcome is that of the entry which it names, and there is none where there is no such entry.
func FuzzReference(f *testing.F) {
	for _, s := range []string{`{"seq":2}`, `{}`, `{"seq":-1}`, `{"seq":9223372036854775807}`, `{"seq":-9223372036854775808}`, `{"seq":1,"error":{"class":"x"},"behind":["a"]}`, `[`, `null`, `{"run":"r","attempt":1,"upto":5}`, `{"run":"x","attempt":-1}`} {
		f.Add([]byte(s), "json/plain")
	}
	f.Add([]byte{1}, "binary/null")
	store := journal.Memory()
	for i, d := range []journal.Data{journal.RunStarted{Agent: "a", Attempt: 1}, journal.Said{Message: message.User("Hi.")}, journal.Said{Message: message.User("Ho.")}} {
		e := journal.Entry{Session: "s", Seq: int64(i + 1), Run: "r", Key: journal.Key{Op: "said", ID: string(rune('a' + i))}, Data: d}
		if err := store.Append(f.Context(), "s", int64(i), e); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, encoding string) {
		r := references{converter.GetDefaultDataConverter(), store, "s", new(ahead)}
		p := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)}, Data: data}
		for range 2 { // the second time of what was read ahead
			var o outcome
			err := r.FromPayload(p, &o)
			switch {
			case err == nil && o.Seq != 0 && (o.Seq < 1 || o.Seq > 3 || o.key.ID != string(rune('a'+o.Seq-1)) || o.data == nil):
				t.Fatalf("%q: %+v", data, o)
			case err != nil && o.Seq != 0 && o.data == nil && !errdefs.NotFound.Is(err) && encoding == "json/plain":
				t.Fatalf("%q: %v", data, err)
			}
			var rec record
			if err := r.FromPayload(p, &rec); err == nil && (rec.at.Run != "r" || rec.at.Attempt != 1) {
				t.Fatalf("%q: %+v", data, rec)
			}
		}
	})
}
