package eval

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// An answer that is taken for JSON is JSON, fits itself in any spelling of its white space, and is found again by every path that leads into it.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b c":null}]}`, `1]`, `{}}`, `[1] [2]`, `{"a":1,"a":2}`, `1e999`, `[0.1,1e2,100]`, "\"\xff\"", ` "x" `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parse(text)
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%q is no JSON, and is read as %v", text, v)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		same, err := parse(string(b))
		if err != nil || !fits(v, same, false) || !fits(same, v, true) {
			t.Fatalf("%q does not fit itself: %s, %v", text, b, err)
		}
		var walk func(v any, path string)
		walk = func(v any, path string) {
			steps, err := pathOf(path)
			if got := valueAt(same, steps); err != nil || !fits(got, v, false) {
				t.Fatalf("%q: at %s is %v, want %v; %v", text, path, got, v, err)
			}
			switch v := v.(type) {
			case map[string]any:
				for name, below := range v {
					walk(below, strings.TrimPrefix(path+"."+strconv.Quote(name), "."))
				}
			case []any:
				for i, below := range v {
					walk(below, path+"["+strconv.Itoa(i)+"]")
					walk(below, path+"["+strconv.Itoa(i-len(v))+"]")
				}
			}
		}
		if strings.Count(text, "[")+strings.Count(text, "{") < 12 {
			walk(v, "")
		}
	})
}

// A path that is understood is one that can be said in quotes, with the same meaning.
func FuzzPath(f *testing.F) {
	for _, s := range []string{`items[0].name`, `"odd \" name"[-1]`, `a."b.c"`, `[0`, `a..b`, `a[+1]`, `a[99999999999999999999]`, ` a `, `"\x"`, `.a`, `a.`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := pathOf(text)
		if err != nil {
			return
		}
		var said strings.Builder
		for i, s := range steps {
			switch {
			case s.indexed:
				said.WriteString("[" + strconv.Itoa(s.element) + "]")
			case i > 0:
				said.WriteString("." + strconv.Quote(s.member))
			default:
				said.WriteString(strconv.Quote(s.member))
			}
		}
		again, err := pathOf(said.String())
		if err != nil || len(again) != len(steps) {
			t.Fatalf("%q: %v, said as %s: %v, %v", text, steps, &said, again, err)
		}
		for i := range steps {
			if again[i] != steps[i] {
				t.Fatalf("%q: %v, said as %s: %v", text, steps, &said, again)
			}
		}
	})
}
