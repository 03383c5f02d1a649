package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/plain"
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
	text := "Run " + clip(escaped(q.Call.Name), 60) + "?\n" + a.bar(plain.Members(q.Call.Input), q.Call.Input)
	if q.Prompt != "" {
		text += "\nIt is asked because:\n" + a.bar(q.Prompt, q.Prompt)
	}
	if forTheSession(q) {
		text += "\nFor this session it would be:\n" + a.bar(forSession(rule), rule)
	}
	return text
}

// bar shows a text that a model wrote, so that nothing in it can look like a line of ours.
func (a *asker) bar(text, of string) string { return plain.Bar(text, of, a.width) }

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
