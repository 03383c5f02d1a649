package plain

import (
	"strings"
	"testing"
)

const (
	family = "👩\u200d👩\u200d👧\u200d👦"
	want   = "می\u200cخواهم" // a Persian word
)

func TestWhatATerminalGets(t *testing.T) {
	for text, shown := range map[string]string{
		"a\tb\nc":                              "a\tb\nc",
		"\x1b[31mRED\x1b[0m \u009b1mB\u009b0m": "RED B",
		"\x1b]0;title\x07a\x1b]8;;x\x1b\\b":    "ab",
		"\x1b]0;no end\nof it":                 "]0;no end\nof it",
		"\x1b[":                                "[",
		"a\rb\x07\u0085c":                      "abc",
		family + " " + want:                    family + " " + want,
		"\u200da \u200cb\u200d\u200d\u200cc":   "a b\u200dc", // a second one says nothing
		"a\u202eb\u2066c\u200fd\u200be\ufefff": "abcdef",
		"1\u200d2":                             "12",
	} {
		if got := Text(text); got != shown {
			t.Errorf("%q: %q, want %q", text, got, shown)
		}
	}
	if got := EscapedLine(family + want + "\u200f\x1b[31m"); strings.ContainsAny(got, "\u200c\u200d\u200f\x1b") || !strings.Contains(got, `\u200d`) || !strings.Contains(got, `\u200f`) || !strings.Contains(got, `\x1b[31m`) {
		t.Errorf("what is approved is seen: %q", got)
	}
}

func TestOfWhatIsNoObjectNothingIsHidden(t *testing.T) {
	for input, want := range map[string]string{`{"a": 1, "b": "x"}`: "a: 1\nb: x", `{"a": 1} and more`: `{"a": 1} and more`, `{"a": 1`: `{"a": 1`, `{"a": 1}}`: `{"a": 1}}`} {
		if got := Members(input); got != want {
			t.Errorf("%q is shown as %q, want %q", input, got, want)
		}
	}
}

func TestWhatIsTypedIsWhatIsSaid(t *testing.T) {
	said := family + " rlm\u200f " + want + "\u202e\n\t."
	if got := Typed("\x1b\x00" + said + "\u009b\r\x7f"); got != said {
		t.Errorf("%q, want %q", got, said)
	}
}
