package chat

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/internal/cli/waiting"
	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// ui is what stands at the bottom of the terminal, and what goes on above it. Everything but work and send is the event loop's alone.
type ui struct {
	Config
	ctx  context.Context
	send func(tea.Msg)
	stop func()         // ends ctx
	work sync.WaitGroup // what was begun and uses the Runtime

	rt     *pawl.Runtime
	model  string // its name
	failed error  // why the conversation can't go on

	tell          teller
	width, height int
	out           []string // lines that are to be printed
	printing      bool
	high          height // of the view
	quit          bool

	edit   editor
	busy   *busy         // what goes on; nil: nothing
	waits  waiting.Waits // what is waited for besides
	run    *run          // the run under way; nil: none
	asked  []*question
	ask    dialog
	pick   *picker
	gone   time.Time // until then another Ctrl-C leaves
	hint   string
	notice []string // prompts that wait to be said: the run that was to hear them ended
	said   sayings  // to a run, and not heard yet, as far as it is known
	seq    int64    // of the session: what is on record up to here was shown

	unfinished bool   // the session has a run that can be gone on with
	elsewhere  string // the directory of the session's unfinished run, which is another one's, and is not gone on with here; else ""
	spent      journal.Spent
	last       *agent.Result
	lastErr    error
	session    string
}

// busy is what a person waits for.
type busy struct {
	what  string
	since time.Time
}

// run is a stretch of a run.
type run struct {
	host    *host
	other   bool   // another process drives it: what it does is told by the journal
	prompt  string // what it was begun with, until that is on record
	cancel  context.CancelFunc
	stops   int // how often it was asked to stop
	began   time.Time
	reply   stream
	lines   []string // of the open block, as it was rendered last
	shown   int      // at this length
	width   int      // and width
	came    bool     // something of the reply under way was shown, or waits in the stream
	think   strings.Builder
	thought time.Time
	step    string // what it does
	since   time.Time
	tools   []*call
	put     map[string]int // by the ids of questions: how often their entries were told of, less how often they were put
	text    string         // the last reply, as far as it is known
}

// call is a tool that is at work.
type call struct {
	run, id, what string
	since         time.Time
	tail          string // of its output
}

func newUI(ctx context.Context, c Config) *ui {
	u := &ui{Config: c, ctx: ctx, width: 80, height: 24, session: c.Session}
	u.tell = teller{colour: c.Colour, print: func(lines ...string) { u.out = append(u.out, lines...) }}
	u.waits.Elsewhere = c.Elsewhere
	u.tell.reset()
	u.resize(80, 24)
	return u
}

type (
	openedMsg struct {
		rt   *pawl.Runtime
		name string
		err  error
	}
	loadedMsg struct {
		session string
		prompt  string // to be changed, and said
		past    past
		err     error
	}
	doneMsg struct {
		res *agent.Result
		err error
	}
	standsMsg struct { // how the session stands, behind a run that told of no end
		run  *run // that was watched; nil: none, one could not begin
		past past
		err  error
		why  error // it could not
	}
	steeredMsg struct {
		text string
		at   time.Time
		err  error
	}
	madeMsg struct { // a message of what was typed
		text    string
		message message.Message
		alive   bool // another process drives the session
		err     error
	}
	tellMsg struct { // lines of a command's
		lines []string
		err   error
	}
	printedMsg struct{}
	frameMsg   struct{}
	armMsg     struct{ question *question }
	startsMsg  struct { // an MCP server starts, or has
		server string
		begun  bool
	}
)

// Init opens the project and reads the session.
func (u *ui) Init() tea.Cmd {
	u.busy = &busy{"opening the project", time.Now()}
	u.open("")
	return u.animate()
}

// do does something that may take its time outside of the event loop.
func (u *ui) do(f func() tea.Msg) {
	u.work.Add(1)
	go func() {
		defer u.work.Done()
		u.send(f())
	}()
}

// open makes the Runtime for another model.
func (u *ui) open(model string) {
	ctx, before := u.ctx, u.rt
	u.do(func() tea.Msg {
		rt, name, err := u.Open(ctx, model, func(server string, begun bool) { u.send(startsMsg{server, begun}) })
		if err == nil && before != nil {
			_ = before.Close() // what it says is of commands in the background, which are on record
		}
		return openedMsg{rt, name, err}
	})
}

func (u *ui) animate() tea.Cmd {
	return tea.Tick(frame, func(time.Time) tea.Msg { return frameMsg{} })
}

// Update takes in what happened.
func (u *ui) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := u.update(msg)
	return u, tea.Batch(cmd, u.flush())
}

func (u *ui) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		u.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		return u.key(msg)
	case tea.PasteMsg:
		u.paste(msg.Content)
	case openedMsg:
		return u.opened(msg)
	case loadedMsg:
		return u.loaded(msg)
	case eventsMsg:
		if u.run != nil && u.run.host == msg.host && u.drain() {
			return tea.Tick(tick, func(time.Time) tea.Msg { return msg })
		}
	case doneMsg:
		return u.done(msg)
	case standsMsg:
		return u.stands(msg)
	case madeMsg:
		return u.made(msg)
	case steeredMsg:
		return u.steered(msg)
	case askMsg:
		return u.question(msg.question)
	case goneMsg:
		return u.unask(msg.question)
	case armMsg:
		return u.ask.arm(msg.question)
	case tellMsg:
		u.busy = nil
		for _, l := range msg.lines {
			u.tell.line("", "%s", l)
		}
		if msg.err != nil {
			u.problem(msg.err)
		}
	case pickMsg:
		u.picked(msg)
	case startsMsg:
		if msg.begun {
			u.waits.End(waiting.Start, msg.server)
		} else {
			u.waits.Begin(waiting.Start, msg.server, time.Now())
		}
	case printedMsg:
		u.printing = false
	case frameMsg:
		if u.busy != nil || u.run != nil {
			return u.animate()
		}
	case endMsg:
		u.end()
	}
	return nil
}

// resize makes everything anew that goes by the width. What is printed stays as it is: it is the terminal's.
func (u *ui) resize(width, height int) {
	u.width, u.height = max(width, 10), max(height, 4)
	u.tell.width, u.tell.text = u.width, newMarkdown(u.width, u.Colour)
	u.edit.rows = nil
}

// flush prints what waits, one piece after the other and each no higher than the space above the view: what is higher would push the view into what was printed.
func (u *ui) flush() tea.Cmd {
	if u.printing {
		return nil
	}
	if len(u.out) == 0 {
		if u.quit && u.run == nil && u.busy == nil {
			return tea.Quit
		}
		return nil
	}
	n := min(max(u.height-u.high.lines-1, 1), len(u.out))
	text := strings.Join(u.out[:n], "\n")
	if text == "" {
		text = " " // nothing at all would not be printed
	}
	u.printing, u.out = true, slices.Delete(u.out, 0, n)
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}

// opened begins the conversation, or goes on with another model.
func (u *ui) opened(m openedMsg) tea.Cmd {
	u.busy = nil
	first := u.rt == nil
	switch {
	case m.err != nil && first:
		if u.failed = m.err; u.quit { // it was not waited for
			u.failed = context.Canceled
		}
		u.quit = true
		return nil
	case m.err != nil:
		u.problem(m.err)
		return nil
	}
	u.rt, u.model = m.rt, m.name
	if !first {
		u.tell.line(cyan, "· the model is %s from here on", plain.Line(u.model))
		return nil
	}
	u.tell.line(faint, "pawl chat · %s · %s · /help", plain.Line(u.model), plain.Line(u.rt.Dir()))
	if u.Here != "" {
		u.tell.line(yellow, "! the unfinished run of session %s works in %s: this conversation is there, not in %s", plain.Line(u.session), plain.Line(u.rt.Dir()), plain.Line(u.Here))
	}
	if u.session != "" {
		return u.load(u.session)
	}
	return nil
}

// wait shows what a person waits for.
func (u *ui) wait(what string) tea.Cmd {
	idle := u.busy == nil && u.run == nil
	u.busy = &busy{what, time.Now()}
	if idle {
		return u.animate()
	}
	return nil
}

// problem tells an error.
func (u *ui) problem(err error) {
	u.tell.line(red, "✗ %s", plain.Clip(plain.Text(strings.TrimSpace(err.Error())), 2000))
}

// say makes a message of a text, with the files that it names, and sends it.
func (u *ui) say(text string) tea.Cmd {
	ctx, session, idle := u.ctx, u.session, u.run == nil
	u.do(func() tea.Msg {
		m, err := u.Message(text, attached(text))
		return madeMsg{text, m, err == nil && idle && session != "" && u.Alive(ctx, session), err}
	})
	return nil
}

// made sends a message: to the run under way, or as the prompt of another one.
func (u *ui) made(m madeMsg) tea.Cmd {
	switch {
	case m.err != nil:
		u.problem(m.err)
		u.giveBack(m.text) // to be mended
		return nil
	case u.quit || u.rt == nil:
		return nil
	case u.run != nil:
		return u.steer(m.message)
	case m.alive && !u.Wait:
		watching := u.watch()
		return tea.Batch(watching, u.steer(m.message))
	}
	u.unfinished, u.elsewhere = false, ""
	return u.start(m.message.Text(), func(ctx context.Context, rt *pawl.Runtime, opts ...agent.RunOption) (*agent.Result, error) {
		return rt.Run(ctx, pawl.Request{Request: agent.Request{Message: m.message}, SessionID: u.session}, opts...)
	})
}

// giveBack has a text in the input line again, if there is none.
func (u *ui) giveBack(text string) {
	if len(u.edit.text) == 0 {
		u.edit.set(text)
	}
}

// resume goes on with the session's unfinished run.
func (u *ui) resume() tea.Cmd {
	session := u.session
	u.unfinished = false
	u.tell.line(cyan, "· goes on")
	return u.start("", func(ctx context.Context, rt *pawl.Runtime, opts ...agent.RunOption) (*agent.Result, error) {
		return rt.Resume(ctx, session, opts...)
	})
}

// end leaves as soon as what runs has ended.
func (u *ui) end() {
	u.quit = true
	u.stop()
	for _, q := range u.asked {
		q.reply <- answer{err: errLater}
	}
	u.asked = nil
}
