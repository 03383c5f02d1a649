package permit

import (
	"encoding/json"
	"testing"
)

// What is read of an input is what encoding/json reads, for it is what the tool reads.
func TestMembersAreReadAsEncodingJSONReadsThem(t *testing.T) {
	names := []string{"path", "a\"b", "é", "x", "", "p\ufffd"}
	for _, input := range []string{
		`{"path":"a.txt"}`, `{"pa\u0074h":"a.txt"}`, `{"path":"\u002fetc\/passwd"}`, `{"path":"a","path":"b"}`, `{"path":"a","path":3}`, `{"path":"a","pat\u0068":"b"}`,
		`{"a\"b":"c","x":"y"}`, `{"é":"\u00e9\ud83d\ude00","x":""}`, "{\"x\":\"\xff\"}", "{\"p\xff\":\"\\ud800\"}", ` { "x" : "y" , "path" : ["z"] } `, `{"":"empty"}`,
		`{"path":"a"`, `{"path":"a"} x`, `["path"]`, `null`, ``, `"path"`, `{"x":{"path":"a"}}`, `{"x":1e999,"path":"a"}`, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"path":"last"}`,
	} {
		var want map[string]any
		_ = json.Unmarshal([]byte(input), &want)
		var room [8]member
		in := members(input, room[:0])
		seen := map[string]bool{}
		for _, m := range in {
			seen[m.name] = true
		}
		if len(seen) != len(want) {
			t.Errorf("%s: %d members, want %d", input, len(seen), len(want))
		}
		for _, name := range names {
			said, _ := want[name].(string)
			if got := text(in, "none", name); got != said {
				t.Errorf("%s: %q is %q, want %q", input, name, got, said)
			}
			if _, there := want[name]; there != seen[name] {
				t.Errorf("%s: that there is %q is %v, want %v", input, name, seen[name], there)
			}
		}
	}
}

// A tool may take the first of two members of one name: no rule is blind to it.
func TestPathsOfAMemberThatIsThereTwiceAreBothReached(t *testing.T) {
	w, err := NewWorld("/work", "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	deny, err := w.Parse("Read(//etc/**)", "test")
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]Match{
		`{"path":"/etc/passwd","path":"a.txt"}`:    Yes,
		`{"paths":["a.txt","/etc/p\u0061sswd"]}`:   Yes,
		`{"paths":["a.txt",3,["/etc/passwd"]]}`:    No,
		`{"path":"a.txt","note":"of /etc/passwd"}`: No,
	} {
		if got := deny.Binds(w.Read("other", input, true)); got != want {
			t.Errorf("%s: the rule says %v, want %v", input, got, want)
		}
	}
}
