package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
)

// settle is how long no key has to come before the first one answers: what was typed before the question could be read is no answer to it.
const settle = 400 * time.Millisecond

// dialog is the question that stands at the bottom.
type dialog struct {
	question *question // nil: none
	armed    bool      // keys answer
	at       time.Time // of the last key that came too early
	mode     mode
	rule     string // for the session
	draft    string // what stood in the editor
	wrong    string // with the last try
}

// mode is what the editor is for.
type mode int

const (
	choosing  mode = iota // nothing: keys choose
	writing               // an answer in words
	reasoning             // why not
	editing               // the call's input
)

// question takes in one more.
func (u *ui) question(q *question) tea.Cmd {
	if u.run == nil || u.run.host != q.host || u.quit {
		q.reply <- answer{err: errLater}
		return nil
	}
	u.drain()
	if u.run.put[q.ID]--; u.run.put[q.ID] < 0 { // what is asked stands above the answer: its entry may be told later, or was of before
		u.tell.asked("", q.Asked)
	}
	u.asked = append(u.asked, q)
	if u.ask.question != nil {
		return nil
	}
	return u.next()
}

// next puts the question that waits longest.
func (u *ui) next() tea.Cmd {
	draft := u.ask.draft
	if u.ask.question == nil {
		draft = u.edit.String()
	}
	if len(u.asked) == 0 {
		u.restore()
		return nil
	}
	q := u.asked[0]
	u.edit.set("")
	u.ask = dialog{question: q, draft: draft, at: time.Now()}
	switch {
	case q.Call != nil && forTheSession(q.Asked) && u.Rule != nil:
		u.ask.rule = u.Rule(*q.Call)
	case q.Call == nil && !q.Confirm:
		u.ask.mode = writing
	}
	return arming(q)
}

func arming(q *question) tea.Cmd {
	return tea.Tick(settle, func(time.Time) tea.Msg { return armMsg{q} })
}

// arm lets keys answer, when none came for a while.
func (d *dialog) arm(q *question) tea.Cmd {
	switch {
	case d.question != q || d.armed:
		return nil
	case time.Since(d.at) < settle-10*time.Millisecond:
		return arming(q)
	}
	d.armed = true
	return nil
}

// restore gives the editor back what stood in it.
func (u *ui) restore() {
	if u.ask.question != nil {
		u.edit.set(u.ask.draft)
	}
	u.ask = dialog{}
}

// unask takes a question away that nobody waits for any more.
func (u *ui) unask(q *question) tea.Cmd {
	if i := slices.Index(u.asked, q); i >= 0 {
		u.asked = slices.Delete(u.asked, i, i+1)
	}
	if u.ask.question == q {
		return u.next()
	}
	return nil
}

// answer answers the question at the bottom.
func (u *ui) answer(a journal.Answered, err error) tea.Cmd {
	q := u.ask.question
	a.By = "pawl"
	q.reply <- answer{a, err}
	return u.unask(q)
}

// forTheSession reports whether a call can be approved for the rest of the session, with an effect.
func forTheSession(q journal.Asked) bool { return q.Call != nil && !q.Unknown && !q.Once }

// choices say how the question can be answered.
func (u *ui) choices() string {
	d := &u.ask
	switch {
	case !d.armed:
		return "…"
	case d.mode == writing:
		return "Enter answers, an empty line is the default, if there is one · Esc leaves it for later"
	case d.mode == reasoning:
		return "why not? The model is told · Enter refuses · Esc goes back"
	case d.mode == editing:
		return "the input that it is to run with · Enter runs it · Ctrl-J is a new line · Esc goes back"
	}
	all := []string{"[y]es"}
	if forTheSession(d.question.Asked) {
		all = append(all, "[a] this very call for the session")
		if d.rule != "" {
			all = append(all, "[r] for the session "+plain.EscapedLine(d.rule))
		}
	}
	all = append(all, "[n]o")
	if d.question.Call != nil && !d.question.Unknown {
		all = append(all, "[e]dit")
	}
	return strings.Join(append(all, "[l]ater"), " · ")
}

// dialogKey does what a key says while a question stands there.
func (u *ui) dialogKey(key, text string) tea.Cmd {
	d := &u.ask
	if key == "esc" || key == "ctrl+c" {
		if d.mode == reasoning || d.mode == editing {
			d.mode, d.wrong = choosing, ""
			u.edit.set("")
			return nil
		}
		return u.answer(journal.Answered{}, errLater)
	}
	if !d.armed {
		d.at = time.Now()
		return nil
	}
	if d.mode == choosing {
		return u.choose(strings.ToLower(text))
	}
	if key != "enter" {
		u.edit.key(key, text)
		return nil
	}
	said := u.edit.String()
	switch d.mode {
	case writing:
		if strings.TrimSpace(said) == "" {
			said = " " // the default, or no answer: "" would approve, which is a yes
		}
		return u.answer(journal.Answered{Approved: true, Text: said}, nil)
	case reasoning:
		return u.answer(journal.Answered{Text: strings.TrimSpace(said)}, nil)
	}
	var input map[string]json.RawMessage
	switch err := json.Unmarshal([]byte(said), &input); {
	case err != nil:
		d.wrong = "that is no JSON object: " + err.Error()
		return nil
	case input == nil:
		d.wrong = "that is no JSON object: null"
		return nil
	}
	return u.answer(journal.Answered{Approved: true, Input: said}, nil)
}

// choose answers by one letter.
func (u *ui) choose(letter string) tea.Cmd {
	d := &u.ask
	q := d.question.Asked
	switch letter {
	case "y":
		return u.answer(journal.Answered{Approved: true}, nil)
	case "a":
		if forTheSession(q) {
			return u.answer(journal.Answered{Approved: true, Session: true}, nil)
		}
	case "r":
		if d.rule != "" {
			return u.answer(journal.Answered{Approved: true, Session: true, Rule: d.rule}, nil)
		}
	case "n":
		d.mode = reasoning
	case "e":
		if q.Call != nil && !q.Unknown {
			d.mode = editing
			u.edit.set(editable(q.Call.Input))
		}
	case "l":
		return u.answer(journal.Answered{}, errLater)
	}
	return nil
}

// editable is JSON as people read it, with what can't be seen as an escape, so that it comes back as it was.
func editable(input string) string {
	var indented bytes.Buffer
	if json.Indent(&indented, bytes.TrimSpace([]byte(input)), "", "  ") != nil { // which keeps what stands behind the value
		return plain.Text(input)
	}
	var b strings.Builder
	for _, r := range indented.String() {
		switch {
		case plain.Shown(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// regular reports whether there is a file.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
