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
