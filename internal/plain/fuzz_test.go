package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Whatever others wrote: what is shown steers no terminal, and is what it would be shown as once more.
func FuzzText(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\x1b\x1b[31m[31m", "\u009b1m", "\x1b]0;t\x07x", "e\u200d\u200d\x1b[m\u200d", "\u202eabc", "\xff\x9b1m", "a\r\nb\tc\u2028", "\x1b]8;;u\x1b\\x", "👩\u200d👩"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Text(s), Line(s)} {
			for _, r := range got {
				if unicode.IsControl(r) && r != '\n' && r != '\t' {
					t.Fatalf("%q: %q", s, got)
				}
			}
			if !utf8.ValidString(got) || Text(got) != got {
				t.Fatalf("%q: %q, and once more %q", s, got, Text(got))
			}
		}
		if got := Line(s); strings.ContainsAny(got, "\n\t") {
			t.Fatalf("%q: %q is not one line", s, got)
		}
		for _, got := range []string{Escaped(s), EscapedLine(s)} {
			for _, r := range got {
				if !unicode.IsPrint(r) || unseen(r) {
					t.Fatalf("%q: %q", s, got)
				}
			}
		}
		if utf8.ValidString(s) {
			if typed := Typed(s); Text(typed) == "" && Text(s) != "" || strings.ContainsRune(typed, '\x1b') {
				t.Fatalf("%q: typed %q", s, typed)
			}
		}
		if c := Clip(s, 5); utf8.RuneCountInString(c) > 5 || len(s) <= 5 && c != s || !strings.HasPrefix(s, strings.TrimSuffix(c, "…")) {
			t.Fatalf("%q: clipped %q", s, c)
		}
	})
}

// A person who is asked sees all of what a call says: only an object, whole, is shown by its members.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"x\ny","b":[1, 2]}`, `{"a":1,"a":2}`, `{"a":1} and more`, `{"a":1`, `[]`, `{"a\nb":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		got := Members(input)
		if !json.Valid([]byte(input)) || !strings.HasPrefix(strings.TrimLeft(input, " \t\r\n"), "{") {
			if got != input {
				t.Fatalf("%q is no object, and is shown as %q", input, got)
			}
			return
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(input), &object); err != nil {
			return // it nests too deeply
		}
		for name, v := range object {
			if text, ok := v.(string); ok && !strings.Contains(text, "\n") && !strings.Contains(got, text) {
				t.Fatalf("%q: the value of %q is not in %q", input, name, got)
			}
		}
	})
}
