package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// asker puts a run's questions to the person at the terminal, one at a time: tasks in the background may ask too.
type asker struct {
	in     *os.File
	by     askuser.Interactor
	screen *screen
	dir    string // the project's
	width  int
	turn   chan struct{}
}

// attended reports whether a person is there who can be asked.
func (s streams) attended() bool { return terminal(s.in) && terminal(s.err) }

// newAsker is for streams that are attended.
func newAsker(s streams, screen *screen, dir string) *asker {
	in, out := s.in.(*os.File), s.err.(*os.File) // a terminal is a file
	width, _ := columns(out)
	if width < 20 {
		width = 80
	}
	return &asker{in: in, by: askuser.Terminal(in, s.err), screen: screen, dir: dir, width: width, turn: make(chan struct{}, 1)}
}

// errLater parks the run: its questions wait on record.
var errLater = errdefs.NotAvailable.Errorf("the question is left for later")

// AskUser asks until an answer is understood. The end of the input leaves the question for later; so does a terminal that is gone.
func (a *asker) AskUser(ctx context.Context, p engine.Prompt) (engine.Reply, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return engine.Reply{}, ctx.Err()
	}
	rule := ""
	if forTheSession(p.Asked) {
		rule = proposed(a.dir, *p.Call)
	}
	choices := choicesFor(p.Asked)
	text := a.question(p.Asked, rule) + "\n" + choices
	a.screen.hold()
	defer a.screen.release()
	forget(a.in) // what was typed before the question could be read is no answer to it
	for {
		said, err := a.by.Ask(ctx, askuser.Question{Kind: askuser.Input, Text: text})
		switch {
		case ctx.Err() != nil:
			return engine.Reply{}, ctx.Err()
		case err != nil, said.Declined:
			return engine.Reply{}, errLater
		}
		if reply, ok, err := understood(p.Asked, rule, said.Text); ok {
			return engine.Reply{Answered: reply}, err
		}
		text = "That is no answer. " + choices
	}
}

// choicesFor says how a question can be answered.
func choicesFor(q journal.Asked) string {
	switch {
	case q.Confirm:
		return "[y]es, [n]o, [n]o REASON, [l]ater?"
	case q.Call == nil:
		return "Your answer, in one line; an empty one is the default, if there is one; Ctrl-D is later."
	case !forTheSession(q):
		return "[y]es, [n]o, [n]o REASON (told to the model), [l]ater?"
	}
	return "[y]es, [n]o, [n]o REASON (told to the model), for this [s]ession, [l]ater?"
}

// forTheSession reports whether a call can be approved for the rest of the session, with an effect.
func forTheSession(q journal.Asked) bool { return q.Call != nil && !q.Unknown && !q.Once }

// understood makes an answer of a line; ok is false for one that is none of the choices, and for an empty one about a call: nothing runs because somebody leaned on a key.
func understood(q journal.Asked, rule, line string) (a journal.Answered, ok bool, err error) {
	a.By = "pawl"
	line = strings.TrimSpace(line)
	if q.Call == nil && !q.Confirm {
		a.Approved, a.Text = true, line
		if line == "" {
			a.Text = " " // the default, or no answer: "" would approve, which is a yes
		}
		return a, true, nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(strings.TrimRight(word, ",.:;!")) {
	case "n", "no":
		a.Text = rest
		return a, true, nil
	case "y", "yes":
		a.Approved = true
	case "s", "session":
		a.Approved, a.Session, a.Rule = true, true, rule
		if !forTheSession(q) {
			return a, false, nil
		}
	case "l", "later":
		err = errLater
	default:
		return a, false, nil
	}
	return a, rest == "", err
}

// question shows a call: what would run, why it is asked about, and what would be approved for the session; or what a tool asks.
func (a *asker) question(q journal.Asked, rule string) string {
	if q.Call == nil {
		return "The agent asks:\n" + a.bar(q.Prompt, q.Prompt)
	}
	text := "Run " + clip(escaped(q.Call.Name), 60) + "?\n" + a.bar(members(q.Call.Input), q.Call.Input)
	if q.Prompt != "" {
		text += "\nIt is asked because:\n" + a.bar(q.Prompt, q.Prompt)
	}
	if forTheSession(q) {
		text += "\nFor this session it would be:\n" + a.bar(forSession(rule), rule)
	}
	return text
}

// members are those of an object, each on a line, or below its name when its text has several.
func members(input string) string {
	dec := json.NewDecoder(strings.NewReader(input))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return input
	}
	var b strings.Builder
	for dec.More() {
		name, err := dec.Token()
		var raw json.RawMessage
		if err != nil || dec.Decode(&raw) != nil {
			return input
		}
		value := string(raw)
		if bytes.HasPrefix(raw, []byte{'"'}) {
			_ = json.Unmarshal(raw, &value) // it was decoded as JSON already
		}
		if strings.Contains(value, "\n") {
			value = "\n  " + strings.ReplaceAll(strings.TrimSuffix(value, "\n"), "\n", "\n  ")
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.ReplaceAll(fmt.Sprint(name), "\n", " "), value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// How much of a question is shown: its first lines and its last.
const (
	firstLines = 40
	lastLines  = 12
)

// bar shows a text that a model wrote behind a bar on each line, so that nothing in it can look like a line of ours: escaped, and broken where the terminal would
// break it. of is what the text was made of, whose length is said when not all is shown.
func (a *asker) bar(text, of string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for i, part := range wrapped(escaped(line), a.width-4) {
			lines = append(lines, []string{"  | ", "  : "}[min(i, 1)]+part)
		}
	}
	if n := len(lines) - firstLines - lastLines; n > 1 {
		note := fmt.Sprintf("[%d lines are not shown here; all of it has %d characters]", n, utf8.RuneCountInString(of))
		lines = slices.Concat(lines[:firstLines], []string{note}, lines[len(lines)-lastLines:])
	}
	return strings.Join(lines, "\n")
}

// wrapped breaks a line. What is not ASCII may take two columns.
func wrapped(line string, width int) (lines []string) {
	from, used := 0, 0
	for i, r := range line {
		w := 1
		if r > unicode.MaxASCII {
			w = 2
		}
		if used+w > width {
			lines, from, used = append(lines, line[from:i]), i, 0
		}
		used += w
	}
	return append(lines, line[from:])
}

// escapedLine is escaped in one line, for lists of what waits for a person.
func escapedLine(s string) string {
	blank := func(r rune) bool { return r == ' ' }
	return strings.Join(strings.FieldsFunc(escaped(strings.ReplaceAll(s, "\n", " ")), blank), " ")
}

// unseen reports whether nothing is shown for a character that counts as printable.
func unseen(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escaped shows what would steer a terminal, or could not be seen, as Go writes it: \x1b, \u202e.
func escaped(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) && !unseen(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// screen keeps what is written to a terminal while a question stands there, and writes it when it is answered.
type screen struct {
	mu   sync.Mutex
	held []func()
	asks bool

	status io.Writer // where the last line is shown; nil: nowhere
	stands string    // what stands there
	inLine bool      // something else does
}

// show has a text stand in the last line, in place of the one before, until something else is written; "" takes it away. Behind words that have no end yet, and below a question, there is no room.
func (s *screen) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asks || s.inLine || text == s.stands {
		return
	}
	_, _ = io.WriteString(s.status, clearLine+text)
	s.stands = text
}

// clearLine clears the line that the cursor is in.
const clearLine = "\r\x1b[2K"

// clear makes room for what is written. The caller has the lock.
func (s *screen) clear() {
	if s.stands != "" {
		_, _ = io.WriteString(s.status, clearLine)
		s.stands = ""
	}
}

// writer is w behind the screen.
func (s *screen) writer(w io.Writer) io.Writer { return &shown{s, w} }

type shown struct {
	screen *screen
	to     io.Writer
}

func (w *shown) Write(p []byte) (int, error) {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	if w.screen.asks {
		kept := bytes.Clone(p)
		w.screen.held = append(w.screen.held, func() { _, _ = w.write(kept) })
		return len(p), nil
	}
	return w.write(p)
}

// write needs the screen's lock.
func (w *shown) write(p []byte) (int, error) {
	w.screen.clear()
	if len(p) > 0 {
		w.screen.inLine = p[len(p)-1] != '\n'
	}
	return w.to.Write(p)
}

func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.asks = true
}

func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inLine = false
	for _, write := range s.held {
		write()
	}
	s.held, s.asks = nil, false
}
