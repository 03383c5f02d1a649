package chat

import (
	"strings"
	"testing"
)

func TestWhatIsTypedGoesOutAsItWasTyped(t *testing.T) {
	const typed = "fam👨\u200d👩 rlm\u200f می\u200cخواهم"
	var e editor
	e.insert(typed + "\x1b")
	if got := e.take(); got != typed {
		t.Errorf("%q, want %q", got, typed)
	}
	e.insert(typed)
	if lines, x, _ := e.show(40, 1); strings.ContainsAny(lines[0], "\u200d\u200f") || x != 3+4+1+3+1+7 {
		t.Errorf("%q at %d: more steers the terminal than is counted", lines, x)
	}
}

func TestTheEditor(t *testing.T) {
	for _, c := range []struct{ keys, want string }{
		{"a b c left backspace", "a|c"},
		{"o n e space t w o alt+b X", "one X|two"},
		{"o n e space t w o ctrl+w", "one |"},
		{"a b ctrl+j c d up home ctrl+k", "|\ncd"},
		{"a b ctrl+j c d ctrl+u backspace", "ab|"},
		{"漢 字 left delete", "漢|"},
		{"h i TAKE n e w up", "hi|"},
		{"h i TAKE n e w up down", "new|"},
	} {
		var e editor
		e.show(20, 5)
		for key := range strings.FieldsSeq(c.keys) {
			switch {
			case key == "TAKE":
				e.take()
			case key == "space":
				e.key("space", " ")
			case len([]rune(key)) == 1:
				e.key(key, key)
			default:
				e.key(key, "")
			}
		}
		if got := string(e.text[:e.at]) + "|" + string(e.text[e.at:]); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestALongTextIsShownAroundTheCursor(t *testing.T) {
	var e editor
	e.insert(strings.Repeat("漢", 25) + "\nlast\x1b[2J\u009b")
	lines, x, y := e.show(10, 3)
	if strings.Join(lines, "|") != "漢漢漢漢漢|漢漢漢漢漢|last[2J" || x != 7 || y != 2 {
		t.Errorf("%q %d %d", lines, x, y)
	}
	for range 3 {
		e.key("up", "")
	}
	if lines, x, y = e.show(10, 3); len(lines) != 3 || y < 0 || y > 2 || x > 10 {
		t.Errorf("%q %d %d", lines, x, y)
	}
}
