package graph

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/journal"
)

// What a cache gave back is a change that a journal takes, and is kept and given back again as it is.
func FuzzKept(f *testing.F) {
	for _, k := range []kept{{journal.Board{}, time.Unix(1, 5).UTC()}, {journal.Board{Set: journal.Vars{"a": []any{1, 2.5, nil}}}, time.Unix(1<<32, 0).UTC()}} {
		b, err := k.write()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("2026-01-02T03:04:05+23:59\n{\"set\":{\"a\":{\"$int64\":1}}}"))
	f.Add([]byte("0001-01-01T00:00:00Z\n{}"))
	f.Add([]byte("2026-01-02T03:04:05Z\n{\"append\":{\"main\":[null]}}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := readKept(b)
		if err != nil {
			return
		}
		out, err := k.write()
		if err != nil {
			t.Fatalf("%q: %+v can't be written: %v", b, k, err)
		}
		again, err := readKept(out)
		if err != nil || !again.at.Equal(k.at) {
			t.Fatalf("%q: %q: %v", b, out, err)
		}
		if once, err := again.write(); err != nil || string(once) != string(out) {
			t.Fatalf("%q: %q, then %q, %v", b, out, once, err)
		}
	})
}

// A reply that is taken for JSON is JSON, and a var of it comes back from a journal as it is.
func FuzzReadJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.0,1e3,null]}`, `1]`, `1 2`, `9223372036854775808`, `1e999`, `-0`, `"\ud800"`, `{"a":1,"a":{}}`, `{"$int64":1}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := readJSON(text)
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON, and is read as %v", text, v)
		}
		b, err := journal.Vars{"v": v}.MarshalJSON()
		if err != nil {
			return // it nests too deeply
		}
		var back journal.Vars
		if err := back.UnmarshalJSON(b); err != nil || !cmp.Equal(back["v"], v) {
			t.Fatalf("%q: %#v, and from a journal %#v: %v", text, v, back["v"], err)
		}
	})
}
