package pawl

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
)

// What a server answered is any bytes: the part of it that a tool gives is one of its values, or there is an error, and nothing of the rest is in it.
func FuzzPick(f *testing.F) {
	for _, s := range [][2]string{{`{"data":{"items":[{"name":"x"}]}}`, "data.items[0].name"}, {`[1,2]`, "[1]"}, {`[1]`, "[18446744073709551616]"}, {`{"a":null}`, "a"}, {`{"a":1,"a":[2]}`, "a[0]"}, {`5`, ""}, {`{`, "a"}, {`{"a":{"b":` + "\"\xff\"" + `}}`, ".a.b"}, {`null`, "a"}, {`[]`, "[0]"}} {
		f.Add([]byte(s[0]), s[1])
	}
	f.Fuzz(func(t *testing.T, body []byte, where string) {
		got, err := pick(body, where)
		if err != nil {
			if errdefs.Of(err) == nil || got != nil {
				t.Fatalf("%q at %q: %v, %v", body, where, got, err)
			}
			return
		}
		path, err := pathOf(where)
		if err != nil || len(path) == 0 {
			return // all of it, as it came
		}
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%q is no JSON, and at %q is %v", body, where, got)
		}
		for _, step := range path {
			switch step := step.(type) {
			case string:
				v = v.(map[string]any)[step]
			case int:
				v = v.([]any)[step]
			}
		}
		if raw, is := got.(json.RawMessage); is {
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%q at %q: %s", body, where, raw)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(v) && got != "" {
			t.Fatalf("%q at %q: %v, want %v", body, where, got, v)
		}
	})
}
