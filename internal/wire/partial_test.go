package wire

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestWhatThereIsOfAValueSoFar(t *testing.T) {
	for text, want := range map[string]string{
		``: ``, `  `: ``, `{`: `{}`, `[`: `[]`, `"`: `""`, `"a`: `"a"`, `1`: ``, `1 `: `1`, `tru`: ``, `true`: ``, "true\n": `true`,
		`{"a`: `{}`, `{"a"`: `{}`, `{"a":`: `{}`, `{"a":"`: `{"a":""}`, `{"a":"b`: `{"a":"b"}`, `{"a":"b"`: `{"a":"b"}`, `{"a":"b",`: `{"a":"b"}`,
		`{"a":1`: `{}`, `{"a":12.`: `{}`, `{"a":12.5}`: `{"a":12.5}`, `{"a":12,"b":-1e`: `{"a":12}`, `{"a":[{"b":[`: `{"a":[{"b":[]}]}`,
		`[1`: `[]`, `[1,`: `[1]`, `[1,2`: `[1]`, `[1,2]`: `[1,2]`, `[nul`: `[]`, `[null`: `[]`, `[null]`: `[null]`, `[[],{}`: `[[],{}]`,
		`["a\`: `["a"]`, `["a\n`: `["a\n"]`, `["a\u00`: `["a"]`, `["a\u00e4`: `["a\u00e4"]`, `["\ud83d`: `[""]`, `["\ud83d\`: `[""]`, `["\ud83d\ude0`: `[""]`, `["\ud83d\ude00`: `["\ud83d\ude00"]`,
		`["\ud83dx`: `["\ud83dx"]`, `["\ud83d"`: `["\ud83d"]`, `["ä`: `["ä"]`, "[\"a\xc3": `["a"]`, "[\"a\xf0\x9f\x98": `["a"]`,
		`{"a":1,"a":"x`: `{"a":1,"a":"x"}`, ` { "a" : [ 1 , "b`: ` { "a" : [ 1 , "b"]}`,
	} {
		for _, step := range []int{1, 2, 1000} {
			var p Partial
			for rest := text; rest != ""; {
				n := min(step, len(rest))
				p.Write(rest[:n])
				rest = rest[n:]
			}
			got := string(p.Append(nil))
			if got != want || got != "" && !json.Valid([]byte(got)) {
				t.Errorf("%q in steps of %d: %q, want %q", text, step, got, want)
			}
		}
	}
}

func TestWhatIsNoJSONHasNothingToTell(t *testing.T) {
	for _, text := range []string{
		"```json\n{", `Here: {`, `{a`, `{,`, `{"a" 1`, `{"a":1 "b"`, `{"a":}`, `[}`, `[1}`, `{"a":1]`, `[1,]`, `{"a":1,}`, `]`, `[01,`, `[1.,`, `[truex,`, `[nul,`, `["\x`, `["\u00g`, "[\"a\n", `{} x`, `{}{`, `"a""`, `[-,`,
		strings.Repeat("[", maxDepth+1),
	} {
		var p Partial
		p.Write(text)
		if p.Write(` "more`) || len(p.Append(nil)) > 0 {
			t.Errorf("%.20q gives %q", text, p.Append(nil))
		}
	}
}

// whole is a value of every kind, with what is hard about each.
const whole = ` {"text": "a \"b\" \\ \u00e4 \ud83d\ude00 \ud83d! ä😀", "n": [0, -1.5e+3, 12, true, false, null], "": {}, "deep": [[[{"a": [{"b": "c"}]}]], []], "last": "x"} `

// grows reports whether b has all of a, or more.
func grows(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return true
	case string:
		b, ok := b.(string)
		return ok && strings.HasPrefix(b, a)
	case []any:
		b, ok := b.([]any)
		if !ok || len(b) < len(a) {
			return false
		}
		for i := range a {
			if i < len(a)-1 && !reflect.DeepEqual(a[i], b[i]) || !grows(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return false
		}
		for k := range a {
			if !grows(a[k], b[k]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func TestAPartialValueOnlyGrowsAndSaysWhenItDoes(t *testing.T) {
	var p Partial
	var last any
	for i := range len(whole) {
		more := p.Write(whole[i : i+1])
		text := p.Append(nil)
		if len(text) == 0 || strings.TrimSpace(string(text)) == "" {
			continue
		}
		var now any
		if err := json.Unmarshal(text, &now); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !grows(last, now) {
			t.Errorf("%v, and then %v", last, now)
		}
		if changed := !reflect.DeepEqual(last, now); changed != more {
			t.Errorf("after %q: changed %v, said %v", whole[:i+1], changed, more)
		}
		last = now
	}
	var want any
	if err := json.Unmarshal([]byte(whole), &want); err != nil || !reflect.DeepEqual(last, want) {
		t.Errorf("in the end %v, want %v (%v)", last, want, err)
	}
}

func TestWhatIsTakenBackWasNeverThere(t *testing.T) {
	var p, q Partial
	p.Write(`{"a": "one", "b`)
	p.Back(8)
	q.Write(`{"a": "one"`[:8])
	if got, want := string(p.Append(nil)), string(q.Append(nil)); got != want || p.Len() != 8 {
		t.Errorf("%q, want %q", got, want)
	}
	p.Back(0)
	if !p.Write(`[`) || string(p.Append(nil)) != "[]" {
		t.Errorf("%q", p.Append(nil))
	}
}

// Reading is linear: the bytes of a piece are looked at once, and nothing is allocated but room for them.
func TestReadingInPiecesCostsNothingBesideTheText(t *testing.T) {
	const n = 1 << 16
	p := Partial{text: make([]byte, 0, n+100), open: make([]byte, 0, 8)}
	least := math.Inf(1)
	for range 10 { // what the system does beside is by chance
		least = min(least, testing.AllocsPerRun(1, func() {
			p.Back(0)
			p.Write(`{"a":["`)
			for range n / 16 {
				p.Write(`0123456\n",1,"ab`)
			}
		}))
	}
	if least != 0 {
		t.Errorf("%v allocations", least)
	}
}

func FuzzPartial(f *testing.F) {
	f.Add(whole)
	f.Add("```json\n{}")
	f.Add(`[1, 2e5, "\ud800\udc`)
	f.Fuzz(func(t *testing.T, text string) {
		var p, q Partial
		for i := range len(text) {
			p.Write(text[i : i+1])
			if b := p.Append(nil); len(b) > 0 && strings.TrimLeft(string(b), " \t\r\n") != "" && !Valid(b) {
				t.Fatalf("%q gives %q", text[:i+1], b)
			}
		}
		q.Write(text)
		if a, b := string(p.Append(nil)), string(q.Append(nil)); a != b {
			t.Fatalf("in bytes %q, at once %q", a, b)
		}
		q.Write("\n")
		if Valid([]byte(text)) && strings.TrimSpace(string(q.Append(nil))) != strings.TrimSpace(text) {
			t.Fatalf("%q in the end gives %q", text, q.Append(nil))
		}
	})
}
