package chat

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
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

// sayings are what was said to a run, the oldest first.
type sayings []told

type told struct {
	text  string
	at    time.Time // since when it is on record; zero: it is not yet
	shown bool      // above, before the reply under way
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

// begin has a run under way.
func (u *ui) begin(r run) (context.Context, *run) {
	ctx, cancel := context.WithCancel(u.ctx)
	r.host, r.cancel, r.put, r.began, r.since = newHost(u.send), cancel, map[string]int{}, time.Now(), time.Now()
	u.run, u.tell.apart = &r, false
	return ctx, u.run
}

// start runs something in the Runtime.
func (u *ui) start(prompt string, f func(context.Context, *pawl.Runtime, ...agent.RunOption) (*agent.Result, error)) tea.Cmd {
	ctx, r := u.begin(run{prompt: prompt, step: "starting"})
	opts := append(slices.Clip(u.Options), agent.WithEngineHost(r.host))
	rt := u.rt
	u.do(func() tea.Msg {
		defer r.cancel()
		res, err := f(ctx, rt, opts...)
		return doneMsg{res, err}
	})
	return u.animate()
}

// looking is how often it is looked whether another process drives the session still.
const looking = 300 * time.Millisecond

// watch shows what another process does in the session, until it has left that.
func (u *ui) watch() tea.Cmd {
	ctx, r := u.begin(run{other: true, step: "at work in another process"})
	session, seq := u.session, u.seq
	u.do(func() tea.Msg {
		defer r.cancel()
		following, stop := context.WithCancel(ctx)
		var alive sync.WaitGroup
		alive.Go(func() {
			defer stop()
			for u.Alive(following, session) {
				select {
				case <-following.Done():
					return
				case <-time.After(looking):
				}
			}
		})
		tell := func(entries iter.Seq2[journal.Entry, error]) (err error) {
			for e, err := range entries {
				if err != nil {
					return err
				}
				seq = e.Seq
				_ = r.host.Publish(ctx, event.Event{Entry: e}) // into a list
			}
			return nil
		}
		err := tell(journal.Follow(following, u.Store, session, seq))
		stop()
		if alive.Wait(); err == nil && ctx.Err() == nil {
			err = tell(u.Store.Read(ctx, session, seq)) // its last words
		}
		p, failed := u.read(ctx, session)
		return standsMsg{r, p, cmp.Or(err, failed), nil}
	})
	return u.animate()
}

// stands says how the session stands when a run is over that did not tell its end, or never began.
func (u *ui) stands(m standsMsg) tea.Cmd {
	switch {
	case m.run != u.run: // it was left
		return nil
	case u.run != nil:
		u.drain()
		u.ended()
	}
	u.run, u.waits = nil, waiting.Waits{Elsewhere: u.Elsewhere}
	if u.quit {
		return nil
	}
	if m.err != nil {
		u.problem(m.err)
		return nil
	}
	u.spent, u.unfinished = m.past.state.Spent, m.past.state.Run != "" && !m.past.alive
	if m.why != nil && !m.past.alive {
		u.problem(m.why)
	}
	if next := u.tellState(m.past); next != nil {
		return next
	}
	return u.late()
}

// late says what came too late for the run that is over.
func (u *ui) late() tea.Cmd {
	if len(u.notice) == 0 || u.quit {
		return nil
	}
	text := strings.Join(u.notice, "\n")
	u.notice = nil
	return u.say(text)
}

// steer says something to the run under way.
func (u *ui) steer(m message.Message) tea.Cmd {
	text, session := m.Text(), u.session
	u.said = append(u.said, told{text: text})
	ctx, store := u.ctx, u.Store
	u.do(func() tea.Msg {
		err := agent.Steer(ctx, store, session, m)
		return steeredMsg{text, time.Now(), err}
	})
	return nil
}

// steered has what came too late for a run be the next prompt.
func (u *ui) steered(m steeredMsg) tea.Cmd {
	if m.err == nil {
		u.said.recorded(m.text, m.at)
		return nil
	}
	u.said.heard(m.text)
	if !errdefs.Conflict.Is(m.err) {
		u.problem(m.err)
		return nil
	}
	if u.run != nil { // it is over in a moment
		u.notice = append(u.notice, m.text)
		return nil
	}
	return u.say(m.text)
}

// recorded says since when a text is on record.
func (all sayings) recorded(text string, at time.Time) {
	if i := slices.IndexFunc(all, func(s told) bool { return s.text == text && s.at.IsZero() }); i >= 0 {
		all[i].at = at
	}
}

// hears has the texts that a model call is about to hear, as they were on record before it began, and were not shown.
func (all sayings) hears(began time.Time) (texts []string) {
	for i := range all {
		if s := &all[i]; !s.shown && !s.at.IsZero() && !s.at.After(began) {
			s.shown, texts = true, append(texts, s.text)
		}
	}
	return texts
}

// heard says that a text was heard, and reports whether it was shown already.
func (all *sayings) heard(text string) (shown bool) {
	i := slices.IndexFunc(*all, func(s told) bool { return s.text == text })
	if i < 0 {
		return false
	}
	shown = (*all)[i].shown
	*all = slices.Delete(*all, i, i+1)
	return shown
}

// drain tells what the run has told since, and reports whether there was something.
func (u *ui) drain() bool {
	events := u.run.host.take()
	for _, e := range events {
		u.event(e)
	}
	return len(events) > 0
}

// event takes in what the run tells.
func (u *ui) event(e event.Event) {
	r := u.run
	own := e.ParentRun == "" && e.Key.Scope == ""
	u.waits.Event(e, time.Now())
	if e.Data == nil {
		u.delta(e, own)
		return
	}
	came, told := false, false
	switch d := e.Data.(type) {
	case journal.Said:
		if e.ParentRun == "" && e.Key.Op == "" {
			r.prompt = ""
		}
	case journal.RunStarted:
		if e.ParentRun == "" {
			u.session = e.Session
			r.doing("preparing")
		}
	case journal.Resumed:
		if e.ParentRun == "" {
			r.doing("preparing")
		}
	case journal.ModelStarted:
		if own { // what it hears stands before its reply, as in the transcript
			for _, text := range u.said.hears(e.Time) {
				u.tell.user(message.User(text), 0)
			}
		}
	case journal.ModelFinished:
		u.spent = u.spent.Plus(journal.SpentBy(d))
		if own {
			came = r.came
			u.ended()
			r.text = d.Message.Text()
			r.doing("preparing")
			d.Heard = slices.DeleteFunc(slices.Clone(d.Heard), func(m message.Message) bool { return u.said.heard(m.Text()) })
			e.Data = d
		}
	case journal.ModelFailed:
		if own {
			u.ended()
			r.doing("preparing")
		}
	case journal.ToolStarted:
		r.tools = append(r.tools, &call{run: e.Run, id: d.Call.ID, what: u.tell.whose(e) + summary(d.Call.Name, d.Call.Input, u.width-24), since: time.Now()})
	case journal.ToolFinished:
		r.tools = slices.DeleteFunc(r.tools, func(c *call) bool { return c.run == e.Run && c.id == d.Call })
	case journal.RunFinished:
		told = own && !r.other // by its result
	case journal.Asked:
		if r.put[d.ID]++; r.put[d.ID] <= 0 {
			told = true
		}
	case journal.Compacted:
		u.spent = u.spent.Plus(journal.SpentBy(journal.ModelFinished{Usage: d.Usage, CostMicros: d.CostMicros}))
		u.spent.Steps--
	}
	if e.Session == u.session {
		u.seq = max(u.seq, e.Seq)
	}
	if !told {
		u.tell.entry(e, came)
	}
}

func (r *run) doing(step string) { r.step, r.since = step, time.Now() }

// delta takes in what is not on record.
func (u *ui) delta(e event.Event, own bool) {
	r := u.run
	switch e.Delta {
	case event.TextDelta:
		if !own { // what others say comes whole
			return
		}
		u.thought()
		if r.came = true; r.step != "writing" {
			r.doing("writing")
		}
		if whole := r.reply.add(e.Text); strings.TrimSpace(whole) != "" {
			r.shown = 0
			u.tell.print(u.tell.text.lines(whole)...)
			u.tell.print("")
		}
	case event.ReasoningDelta:
		if !own {
			return
		}
		if r.think.Len() == 0 {
			r.thought = time.Now()
			r.doing("thinking")
		}
		if r.think.Len() < keptBytes {
			r.think.WriteString(e.Text)
		}
		r.came = true
	case event.ToolOutput:
		for _, c := range r.tools {
			if c.run == e.Run && c.id == e.Key.ID {
				if c.tail += plain.Text(e.Text); len(c.tail) > 4<<10 {
					c.tail = strings.ToValidUTF8(c.tail[len(c.tail)-2<<10:], "")
				}
			}
		}
	case event.Retry:
		if own {
			shown := r.came
			r.reply, r.came = stream{}, false
			r.think.Reset()
			if shown {
				u.tell.line(yellow, "↻ what came of this reply is void")
			}
		}
		u.tell.line(yellow, "↻ %s", plain.Line(e.Text))
	case event.Warning:
		u.tell.line(yellow, "! %s", plain.Line(e.Text))
	case event.RunLeft:
		u.tell.line(red, "! %s", plain.Line(e.Text))
	}
}

// thought folds what the model thought.
func (u *ui) thought() {
	r := u.run
	if r.think.Len() > 0 {
		u.tell.fold(faint, "✻ thought for "+seconds(time.Since(r.thought)), r.think.String())
		r.think.Reset()
	}
}

// ended prints what is left of a reply.
func (u *ui) ended() {
	r := u.run
	u.thought()
	r.shown = 0
	if rest := r.reply.end(); strings.TrimSpace(rest) != "" {
		u.tell.print(u.tell.text.lines(rest)...)
		u.tell.print("")
	}
	r.came = false
}

// done is the end of a stretch of a run.
func (u *ui) done(m doneMsg) tea.Cmd {
	u.drain()
	u.ended()
	r := u.run
	u.run, u.last, u.lastErr = nil, m.res, m.err
	u.waits = waiting.Waits{Elsewhere: u.Elsewhere}
	u.asked, u.ask = nil, dialog{}
	u.restore()
	if res := m.res; res != nil {
		u.session = res.ContextID
		u.unfinished = res.Status == agent.StatusInterrupted
		u.result(r, res)
	} else if m.err != nil && !u.quit {
		u.giveBack(r.prompt)
		if r.session(u) {
			return u.look(m.err)
		}
		u.problem(m.err)
	}
	return u.late()
}

// look says how the session stands, where a run could not begin.
func (u *ui) look(why error) tea.Cmd {
	ctx, session := u.ctx, u.session
	u.do(func() tea.Msg {
		p, err := u.read(ctx, session)
		return standsMsg{nil, p, err, why}
	})
	return nil
}

// session reports whether a run that could not begin may have left one that is unfinished.
func (r *run) session(u *ui) bool { return u.session != "" && r.step == "starting" }

// result says what a run came to.
func (u *ui) result(r *run, res *agent.Result) {
	if text := res.Text(); u.tell.apart && res.Status == agent.StatusCompleted && text != r.text {
		u.tell.words("", text)
	}
	spent := fmt.Sprintf("%s · %s · %s", seconds(time.Since(r.began)), tokens(res.Usage.Total()), money(res.Cost))
	switch {
	case res.Status == agent.StatusCompleted:
		u.tell.line(faint, "✓ %s", spent)
	case len(res.Pending) > 0:
		u.tell.line(yellow, "· it waits for an answer · Enter asks again, or say something else · %s", spent)
	case res.Status == agent.StatusInterrupted:
		u.tell.line(yellow, "· Enter goes on, or say something else · %s", spent)
	case res.Status == agent.StatusCanceled:
		u.tell.line(yellow, "· canceled: what was done is kept · %s", spent)
	case res.Err != nil:
		u.problem(res.Err)
	default:
		u.tell.line(yellow, "· the run %s · %s", plain.Line(string(res.Status)), spent)
	}
	u.unheard()
}

// unheard says what becomes of what no run has heard yet.
func (u *ui) unheard() {
	for _, s := range u.said {
		u.tell.line(yellow, "· not heard yet, the next run hears it: %s", plain.Clip(plain.Line(s.text), 160))
	}
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
