package trace

import (
	"encoding/json"
	"testing"
)

// A person who reads a trace sees all that a call said: what is taken for an object is one, with each of its members, in its order.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"x","b":[1, 2]}`, `{"a":1,"a":"\ud800"}`, `{"a":1} and more`, `{"a":1`, `[]`, `{"a":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		all, ok := members(input)
		if valid := json.Valid([]byte(input)); ok && !valid {
			t.Fatalf("%q is no JSON, and of it is shown only %q", input, all)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(input), &object); ok != (err == nil && object != nil) {
			t.Fatalf("%q: an object: %v, %v", input, ok, err)
		}
		names := map[string]bool{}
		for _, m := range all {
			names[m.name] = true
		}
		if ok && len(names) != len(object) {
			t.Fatalf("%q: %q of %q", input, all, object)
		}
	})
}

func TestOfACallThatIsNoObjectNothingIsHidden(t *testing.T) {
	for _, input := range []string{`{"a":1} and more`, `{"a":1`, `{"a":1}}`} {
		if got, ok := members(input); ok {
			t.Errorf("of %q is shown %q", input, got)
		}
	}
}
