package load

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/upstream"
)

// Task is what a system is made for.
type Task struct {
	Workload Workload
	Upstream string // base URL, without "/v1"
	Image    string // what a session's prompt begins with; "": nothing
	Result   string // what the tool gives back; "": its argument
	Dir      string // for what a system keeps in files; it is empty
	OnTool   func() // is called by the tool, before it returns; may be nil

	wrong atomic.Pointer[string] // an argument that the model did not say
}

// Call is the tool: it gives back what it is given, and notes what it can't have been given.
func (t *Task) Call(argument string) string {
	if !upstream.Argument(argument) {
		wrong := argument
		t.wrong.Store(&wrong)
	}
	if t.OnTool != nil {
		t.OnTool()
	}
	if t.Result != "" {
		return t.Result
	}
	return argument
}

// System runs sessions. Safe for concurrent use. One with connections of its own has a method CloseIdle(), which closes those that nobody uses, as is done with those of
// [http.DefaultTransport] before what sessions retain is measured.
type System interface {
	// Open begins a session, one of any number.
	Open(number int) Session
	// Close ends the system.
	Close() error
}

// Session is a conversation, which the caller keeps to see what it retains. One prompt is what it is asked.
type Session interface {
	// Ask gives the answer in words and how many calls of the tool came before it. said is told each piece of text as it comes. A session that reads no answers gives no text.
	Ask(ctx context.Context, prompt string, said func(text string)) (answer Answer, err error)
}

// Answer is what a prompt came to.
type Answer struct {
	Text   string
	Calls  int  // of the tool
	Unread bool // the system throws replies away: there is nothing to check
	Last   bool // the caller of this system can only hear the text of the last turn, and that is what has to come
}

// check says what is wrong with an answer. heard is how many bytes of text came as pieces.
func (w Workload) check(a Answer, heard int64, want string) error {
	if a.Unread {
		return nil
	}
	said := int64(len(want))
	if !a.Last {
		said += int64((w.Asks.Turns - 1) * upstream.Preface)
	}
	switch {
	case a.Calls != w.Asks.Calls():
		return fmt.Errorf("the tool was called %d times, want %d", a.Calls, w.Asks.Calls())
	case w.Asks.Stamp && len(a.Text) != len(want), !w.Asks.Stamp && a.Text != want:
		return fmt.Errorf("the answer is %.60q (%d bytes), want %.60q (%d bytes)", a.Text, len(a.Text), want, len(want))
	case heard != said:
		return fmt.Errorf("%d bytes of text came as pieces, want %d", heard, said)
	}
	return nil
}

// ear is who listens to a session.
type ear struct {
	heard  int64 // bytes
	stamps bool
	late   []time.Duration // from when the upstream sent a piece to here
}

func (e *ear) hear(text string) {
	e.heard += int64(len(text))
	if !e.stamps || len(text) != upstream.PieceSize {
		return
	}
	digits := strings.TrimSuffix(text, " ")
	if sent, err := strconv.ParseInt(digits, 10, 64); err == nil {
		e.late = append(e.late, time.Duration(time.Now().UnixNano()-sent))
	}
}
