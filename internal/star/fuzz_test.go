package star_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
)

// What a script reads as JSON is JSON, and what it is made of goes back to a board and comes again as it was.
func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{`null`, `{"a":[1,2.5,"x",true,null]}`, `1]`, `{}}`, `1 2`, `1e400`, `9223372036854775808`, `-0`, `1.0`, `{"a":1,"a":2}`, "\"\xff\"", `[[[[1]]]]`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := star.DecodeJSON(text)
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON, and is read as %v", text, v)
		}
		back, err := star.From(v)
		if err != nil {
			if !errdefs.Validation.Is(err) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := star.To(back)
		if err != nil {
			t.Fatalf("%q: %v comes back as %#v: %v", text, v, back, err)
		}
		if once, err := star.From(again); err != nil || !cmp.Equal(once, back) {
			t.Fatalf("%q: %#v, then %#v, %v", text, back, once, err)
		}
	})
}
