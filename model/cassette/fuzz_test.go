package cassette

import (
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/internal/wire"
)

// Whatever stands in a file: reading it gives exchanges that can be compared, or an error.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"cassette":1,"kind":"model"}{"exchange":1,"call":"stream","request":{"system":"s","messages":[{"role":"user","parts":[]}]},"stream":[{"text":{"|":["a","b"]}}],"response":{"message":{"role":"assistant","parts":[{"type":"text","text":"a"}]}}}` +
			`{"exchange":2,"call":"complete","request":{"after":{"exchange":1,"messages":1,"sha256":""},"system":"","messages":[null]},"error":{"provider":"","class":"timeout","retry_after":"1s"}}`,
		`{"cassette":1,"kind":"http"}{"exchange":1,"request":{"method":"GET","url":"x","body":{"json":[1]}},"response":{"status":200,"body":{"base64":"AA=="}}}`,
		`{"cassette":1,"kind":"http"}{"exchange":1,"request":{},"closed":true,"error":{"context":"canceled"}}`,
		`{"cassette":1,"kind":"model"}{"exchange":1,"call":"stream","request":null,"stopped":true}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, docs, err := parse(data, ofModel); err == nil {
			takes, err := exchanges(docs)
			for _, a := range takes {
				if d, _ := a.compare(a.(*recorded).asked); !d.none() {
					t.Errorf("it differs from itself: %v", d)
				}
				for _, b := range takes {
					d, _ := a.compare(b.(*recorded).asked)
					_ = d.String()
				}
			}
			if err != nil && takes != nil {
				t.Error("exchanges and an error")
			}
		}
		if _, docs, err := parse(data, ofHTTP); err == nil {
			takes, _ := exchangesHTTP(docs)
			for _, a := range takes {
				if d, _ := a.compare([]byte(a.(*takeHTTP).x.Request)); !d.none() {
					t.Errorf("it differs from itself: %v", d)
				}
			}
		}
	})
}

// What is written for people is JSON, and is read as what it was.
func FuzzReadable(f *testing.F) {
	for _, s := range []string{
		`"a\nb"`, `"\\n\n\\"`, `"\n"`, `{"|":["x\ny"],"||":1,"":{}}`, `[[],{},"\u000a",1.50,true,null]`, `{"a":{"b":[{"c":"x\n"}]},"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		raw, ok := wire.AppendCompact(nil, data)
		if !ok {
			return
		}
		raw = eachText(nil, raw, func(s string) string { return s })
		shown := appendReadable(nil, raw, 0)
		if !json.Valid(shown) && wire.Valid(shown) {
			return // nested deeper than encoding/json goes
		}
		again, err := appendPlain(nil, shown)
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s\n%s\n%s %v", raw, shown, again, err)
		}
	})
}
