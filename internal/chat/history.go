package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// How much of a session is shown when the conversation begins with it: entries that say something, and lines.
const (
	pastEntries = 150
	pastLines   = 400
)

// past is what there is of a session.
type past struct {
	entries []journal.Entry // the last that say something
	before  int             // how many there are before those
	said    []string        // prompts, for the editor
	state   journal.State
	pending []journal.Pending
	alive   bool // a process drives it
	unheard sayings
}

// read reads a session. One that is not there is empty.
func (u *ui) read(ctx context.Context, session string) (p past, err error) {
	log, err := journal.Open(ctx, u.Store, session)
	if err != nil {
		return p, err
	}
	p.state = log.State()
	for e, err := range u.Store.Read(ctx, session, 0) {
		if err != nil {
			return p, err
		}
		switch d := e.Data.(type) {
		case journal.SessionCreated, journal.RunStarted, journal.Resumed, journal.Seeded, journal.Prepared, journal.ModelStarted, journal.ModelFailed, journal.TaskStarted, journal.CommandStarted, journal.Timed, journal.Board, journal.Visited:
			continue
		case journal.Said:
			if e.Key.Op == "" && d.Message.Role() == message.RoleUser {
				p.said = append(p.said, plain.Typed(d.Message.Text()))
			}
			if e.Key.Op != "" && d.By != "pawl" && d.Message.Role() == message.RoleUser {
				p.unheard = append(p.unheard, told{text: d.Message.Text(), at: e.Time})
			}
		case journal.ModelFinished:
			for _, m := range d.Heard {
				p.unheard.heard(m.Text())
			}
		}
		if len(p.entries) >= 2*pastEntries {
			p.before += pastEntries
			p.entries = append(p.entries[:0], p.entries[pastEntries:]...)
		}
		p.entries = append(p.entries, e)
	}
	if n := len(p.entries) - pastEntries; n > 0 {
		p.before, p.entries = p.before+n, p.entries[n:]
	}
	if n := len(p.said) - maxHistory; n > 0 {
		p.said = p.said[n:]
	}
	if p.state.Run != "" {
		if p.alive = u.Alive(ctx, session); !p.alive {
			p.pending, err = agent.Pending(ctx, u.Store, session)
		}
	}
	return p, err
}

// load shows a session, and goes on with it.
func (u *ui) load(session string) tea.Cmd {
	ctx := u.ctx
	u.do(func() tea.Msg {
		p, err := u.read(ctx, session)
		return loadedMsg{session, "", p, err}
	})
	return u.wait("reading the session")
}

// loaded prints the last of what was said and done.
func (u *ui) loaded(m loadedMsg) tea.Cmd {
	u.busy = nil
	if m.err != nil {
		u.problem(m.err)
		return nil
	}
	p := m.past
	u.session, u.spent, u.unfinished, u.elsewhere = m.session, p.state.Spent, p.state.Run != "" && !p.alive, ""
	u.seq, u.said = p.state.Seq, p.unheard
	if u.unfinished && p.state.Dir != "" && p.state.Dir != u.rt.Dir() { // it would be done here, with what may be done here
		u.unfinished, u.elsewhere = false, p.state.Dir
	}
	u.tell.reset()
	u.edit.history = p.said
	u.giveBack(m.prompt)
	if p.state.Seq == 0 {
		u.tell.line(faint, "a new session: %s", plain.Line(m.session))
		return nil
	}
	printed := len(u.out)
	for _, e := range p.entries {
		u.tell.entry(event.Event{Entry: e}, false)
	}
	lines := slices.Clone(u.out[printed:])
	u.out = u.out[:printed]
	what := ""
	if p.before > 0 || len(lines) > pastLines {
		lines = lines[max(len(lines)-pastLines, 0):]
		what = " · the last of it; all: pawl sessions show"
	}
	u.tell.line(faint, "session %s%s", plain.Line(m.session), what)
	u.tell.print(lines...)
	return u.tellState(p)
}

// tellState says how a session stands, and what can be done, and shows what another process does there.
func (u *ui) tellState(p past) tea.Cmd {
	if dir := p.state.Dir; dir != "" && dir != u.rt.Dir() && u.elsewhere == "" && !p.alive {
		u.tell.line(yellow, "! its last run was in %s · what is said here is done in %s", plain.Line(dir), plain.Line(u.rt.Dir()))
	}
	if !p.alive {
		u.unheard()
	}
	switch {
	case p.alive && u.Wait:
		u.tell.line(yellow, "! another process is at work in this session: what is said here is the prompt of a run that waits for it")
	case p.alive:
		u.tell.line(yellow, "! another process is at work in this session: its run hears what is said here before its next step")
		return u.watch()
	case u.elsewhere != "":
		u.tellElsewhere()
	case len(p.pending) > 0:
		u.tell.line(yellow, "! its run waits for %s · Enter asks again, or say something else", plural(len(p.pending), "answer"))
	case u.unfinished:
		u.tell.line(yellow, "! its run was not finished · Enter goes on with it: nothing is done twice · or say something else")
	case p.state.Status == "" || p.state.Status == "completed":
	default:
		u.tell.line(faint, "· its last run: %s", plain.Line(p.state.Status))
	}
	return nil
}

// tellElsewhere says where an unfinished run can be gone on with.
func (u *ui) tellElsewhere() {
	u.tell.line(yellow, "! its run was not finished in %s, and this conversation is in %s · to go on with it leave, then pawl resume %s, or pawl chat --session %[3]s --dir there · or say something else, which closes it and is done here",
		plain.Line(u.elsewhere), plain.Line(u.rt.Dir()), plain.Line(u.session))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cost tells what a session took, by model, its tasks included.
func (u *ui) cost() tea.Cmd {
	ctx, session, store := u.ctx, u.session, u.Store
	if session == "" {
		u.tell.line(faint, "nothing was used yet")
		return nil
	}
	u.do(func() tea.Msg {
		lines, err := costs(ctx, store, session)
		return tellMsg{lines, err}
	})
	return nil
}

func costs(ctx context.Context, store journal.Store, session string) ([]string, error) {
	below, err := journal.Tasks(ctx, store, session)
	if err != nil {
		return nil, err
	}
	by, total := map[string]journal.Spent{}, journal.Spent{}
	add := func(name string, d journal.ModelFinished) {
		s := journal.SpentBy(d)
		name = cmp.Or(plain.Line(name), "a model")
		by[name], total = by[name].Plus(s), total.Plus(s)
	}
	for _, id := range append([]string{session}, below...) {
		for e, err := range store.Read(ctx, id, 0) {
			if err != nil && !errdefs.NotFound.Is(err) {
				return nil, err
			}
			switch d := e.Data.(type) {
			case journal.ModelFinished:
				add(d.Model, d)
			case journal.Compacted:
				if d.Usage != (model.Usage{}) {
					add(d.Model, journal.ModelFinished{Usage: d.Usage, CostMicros: d.CostMicros})
				}
			}
		}
	}
	if total.Steps == 0 {
		return []string{"nothing was used yet"}, nil
	}
	row := func(name string, s journal.Spent) string {
		return fmt.Sprintf("  %s\n    %s · %d tokens in · %d from a cache · %d out · %s", name, plural(s.Steps, "call"), s.Usage.Input+s.Usage.CacheWrite, s.Usage.CacheRead, s.Usage.Output, money(s.Cost()))
	}
	lines := []string{"this session, its tasks included:"}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, row(name, by[name]))
	}
	if len(by) > 1 {
		lines = append(lines, row("together", total))
	}
	return lines, nil
}

// money is a cost, for people.
func money(micros *int64) string {
	if micros == nil {
		return "cost unknown"
	}
	return fmt.Sprintf("$%.4f", float64(*micros)/1e6)
}

func tokens(n int) string {
	if n < 10_000 {
		return fmt.Sprintf("%d tokens", n)
	}
	return fmt.Sprintf("%.1fk tokens", float64(n)/1000)
}

// listed is a session to be picked.
type listed struct {
	session, status, first string
	updated                time.Time
}

// mostListed is how many sessions are shown to be picked from, and mostLooked how many are looked at for them.
const (
	mostListed = 20
	mostLooked = 500
)

// sessions are the last ones whose last run was in dir.
func (u *ui) sessions(ctx context.Context, dir string) (all []listed, err error) {
	looked := 0
	for info, err := range u.Store.Sessions(ctx, journal.Query{Dir: dir}) {
		if err != nil {
			return nil, err
		}
		if looked++; looked > mostLooked || len(all) == mostListed {
			break
		}
		l := listed{session: info.Session, status: cmp.Or(info.Status, "forked"), updated: info.Updated}
		if l.status == "running" && !u.Alive(ctx, info.Session) {
			l.status = "unfinished"
		}
		if talked, err := u.first(ctx, &l); err != nil {
			return nil, err
		} else if talked {
			all = append(all, l)
		}
	}
	return all, nil
}

// first finds a session's first prompt, and whether it is one that people talk in: no task's.
func (u *ui) first(ctx context.Context, l *listed) (talked bool, err error) {
	for e, err := range u.Store.Read(ctx, l.session, 0) {
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil: // one that can't be read does not hide the others
			return false, nil
		}
		switch d := e.Data.(type) {
		case journal.SessionCreated:
			if d.TaskOf != "" {
				return false, nil
			}
		case journal.RunStarted:
			if d.ParentRun != "" {
				return false, nil
			}
			talked = true
		case journal.Said:
			l.first = plain.Line(d.Message.Text())
			return talked, nil
		}
	}
	return talked, nil
}

// attached are the files that a text names as @PATH: those that are there. Anything else behind an @ is text.
func attached(text string) (files []string) {
	for word := range strings.FieldsSeq(text) {
		if path, ok := strings.CutPrefix(word, "@"); ok && path != "" && !slices.Contains(files, path) && regular(path) {
			files = append(files, path)
		}
	}
	return files
}
