package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
)

// pressed makes keys of a text: what is between < and > is the name of one.
func pressed(typed string, each func(key, text string)) {
	for typed != "" {
		if typed[0] == '<' {
			if name, rest, ok := strings.Cut(typed[1:], ">"); ok && name != "" {
				each(name, "")
				typed = rest
				continue
			}
		}
		_, n := utf8.DecodeRuneInString(typed)
		each(typed[:n], typed[:n])
		typed = typed[n:]
	}
}

// Whatever is typed and pasted: the cursor stands in the text, each of its characters is on one line of the screen, once, and no control is among them.
func FuzzEditor(f *testing.F) {
	for _, s := range []string{"a<left>b<ctrl+j>c<up><up><down>", "日本<alt+left><ctrl+k><ctrl+w>\x1b[31m", "one two<ctrl+u><delete><backspace><tab>", "\xff\u200d\u202e<home><end><alt+f>", "x<ctrl+j><ctrl+j>y<up><ctrl+a><ctrl+d>"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, typed string, width int) {
		if width < 1 || width > 200 || len(typed) > 100 {
			return
		}
		var e editor
		e.history = []string{"before", "two\nlines"}
		pressed(typed, func(key, text string) {
			e.key(key, text)
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("%q: the cursor is at %d of %d, behind %q", typed, e.at, len(e.text), key)
			}
			at := 0
			for i, r := range e.layout(width) {
				if r.from < at || r.to < r.from || r.to > len(e.text) || i > 0 && r.from > at+1 {
					t.Fatalf("%q: line %d of %q is %+v, behind %d", typed, i, e.String(), r, at)
				}
				at = r.to
			}
		})
		if text := e.String(); plain.Typed(text) != text || strings.ContainsRune(text, '\r') {
			t.Fatalf("%q: %q", typed, text)
		}
	})
}

// Whatever is typed at a question: what runs then is the call as it was, or an object that the person wrote; and before anybody could read the question nothing answers it.
func FuzzQuestion(f *testing.F) {
	for _, s := range []string{"y", "n<enter>", "nbecause<enter>", "e<ctrl+u>null<enter>", "e<enter>", "l", "<esc>", "a", "r", "e<esc>y", "e<ctrl+k>5<enter>", "<ctrl+o>", "n<esc>e<enter>"} {
		f.Add(s, `{"command":"rm -rf x","n":[1,"\u202e"]}`)
	}
	f.Add("e<enter>", `{"a":`)
	f.Fuzz(func(t *testing.T, typed, input string) {
		for _, armed := range []bool{false, true} {
			u := newUI(context.Background(), Config{})
			u.resize(80, 24)
			h := newHost(nil)
			u.run = &run{host: h, put: map[string]int{}}
			q := &question{Prompt: engine.Prompt{Asked: journal.Asked{ID: "c", Call: &journal.Called{ID: "c", Name: "bash", Input: input}}}, host: h, reply: make(chan answer, 1)}
			u.question(q)
			u.ask.armed, u.ask.at = armed, time.Now()
			over := false
			pressed(typed, func(key, text string) {
				if over {
					return
				}
				u.dialogKey(key, text)
				u.View()
				select {
				case a := <-q.reply:
					over = true
					if !armed && a.err == nil {
						t.Fatalf("%q answered before the question could be read", typed)
					}
					if a.Input == "" {
						return
					}
					var object map[string]json.RawMessage
					if err := json.Unmarshal([]byte(a.Input), &object); err != nil || object == nil || !a.Approved {
						t.Fatalf("%q: %q is to run: %v", typed, a.Input, err)
					}
				default:
				}
			})
		}
		said := editable(input)
		if !json.Valid([]byte(input)) {
			return
		}
		var was, is bytes.Buffer
		if json.Compact(&was, []byte(input)) != nil || json.Compact(&is, []byte(said)) != nil {
			t.Fatalf("%q is to be edited as %q", input, said)
		}
		var a, b any
		if json.Unmarshal(was.Bytes(), &a) == nil && json.Unmarshal([]byte(plain.Typed(said)), &b) == nil {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if !bytes.Equal(x, y) {
				t.Fatalf("%q is to be edited as %q, which is another one", input, said)
			}
		} else if utf8.ValidString(input) {
			t.Fatalf("%q is to be edited as %q, which can't be read", input, said)
		}
	})
}

func TestACallIsEditedAsAnObject(t *testing.T) {
	for input, want := range map[string]string{"{\"a\":1}\r\n": "{\n  \"a\": 1\n}", "{\"a\":\"\u202e\"}": "{\n  \"a\": \"\\u202e\"\n}"} {
		if got := editable(input); got != want {
			t.Errorf("%q is to be edited as %q, want %q", input, got, want)
		}
	}
	u := newUI(context.Background(), Config{})
	u.run = &run{host: newHost(nil), put: map[string]int{}}
	q := &question{Prompt: engine.Prompt{Asked: journal.Asked{ID: "c", Call: &journal.Called{ID: "c", Name: "bash", Input: `{}`}}}, host: u.run.host, reply: make(chan answer, 1)}
	u.question(q)
	u.ask.armed = true
	pressed("e<ctrl+a><ctrl+k>null<enter>", func(key, text string) { u.dialogKey(key, text) })
	if len(q.reply) > 0 || u.ask.wrong == "" {
		t.Errorf("null is to run, as %q", u.ask.wrong)
	}
}
