package chat

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Config is what a conversation is made of. In, Out, Store, Open and Message are needed.
type Config struct {
	In, Out *os.File // a terminal
	Colour  bool
	Store   journal.Store
	Session string // to go on with, or the name of a new one; "" is a new one named after its first run

	// Open makes the Runtime for a model by its name, "" for that of the command line, and says what the model is called. It is called in a goroutine of its own, once at a time; when it gives
	// another Runtime the one before is closed. It, and the Runtime, tell starts of MCP servers: of each twice, and the second time that it has begun.
	Open func(ctx context.Context, model string, starts func(server string, begun bool)) (rt *pawl.Runtime, name string, err error)
	// Message makes what a person says of text and files that exist.
	Message func(text string, files []string) (message.Message, error)
	// Rule is the permission rule that covers a call and its like, "" when there is none.
	Rule func(journal.Called) string
	// Options are those of every run.
	Options []agent.RunOption
	// Elsewhere is who does the work of runs, if it is not this process.
	Elsewhere string
	// Here is the person's own project, where the conversation is opened in another one, that of its session's unfinished run; else "".
	Here string
	// Wait says that the Options have a run wait for a session that another process drives. Without it what a person says there is heard by the run under way.
	Wait bool
	// Alive reports whether a process drives a session.
	Alive func(ctx context.Context, session string) bool
}

// Left is how a conversation was left.
type Left struct {
	Session string        // "" when nothing was said
	Result  *agent.Result // of the last run; nil: there was none, or it could not begin
	Err     error         // its error
}

// Run talks until the person leaves, or ctx ends: then the run under way is canceled, and waited for. An error is one of the terminal, or of the first Open.
func Run(ctx context.Context, c Config) (Left, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := newUI(ctx, c)
	u.stop = func() { cancel(errLeft) }
	out := &frames{File: c.Out, first: func() { u.send(printedMsg{}) }}
	u.printing = true // until there is a frame
	p := tea.NewProgram(u, tea.WithInput(c.In), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFPS(30))
	u.send = p.Send
	stop := context.AfterFunc(ctx, func() { p.Send(endMsg{}) })
	defer stop()
	_, err := p.Run()
	cancel(errLeft)
	u.work.Wait()
	if u.rt != nil {
		_ = u.rt.Close()
	}
	if err == nil {
		err = u.failed
	}
	return Left{u.session, u.last, u.lastErr}, err
}

var errLeft = errors.New("the conversation is left")

// frames is the terminal. It tells when the first frame stands there: what is printed above one that was never drawn is written over by it.
type frames struct {
	*os.File
	first func()
	once  sync.Once
}

// The first frame, and nothing before it, has pasted text marked.
var marksPastes = []byte("\x1b[?2004h")

func (f *frames) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if bytes.Contains(p, marksPastes) {
		f.once.Do(func() { go f.first() }) // who writes holds the screen, and whom it is told may wait for that
	}
	return n, err
}

// endMsg says that the program is to end.
type endMsg struct{}

// tick is how often what comes is shown, and frame how often what moves by itself moves.
const (
	tick  = 40 * time.Millisecond
	frame = 120 * time.Millisecond
)
