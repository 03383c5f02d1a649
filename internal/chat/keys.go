package chat

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// leaving is how long a first Ctrl-C waits for the second one that leaves.
const leaving = 3 * time.Second

// key does what a key says.
func (u *ui) key(k tea.KeyPressMsg) tea.Cmd {
	key := k.Keystroke()
	u.hint = ""
	switch {
	case u.ask.question != nil:
		if key == "ctrl+o" {
			u.tell.unfold()
			return nil
		}
		return u.dialogKey(key, k.Text)
	case u.pick != nil:
		return u.pickKey(key)
	}
	switch key {
	case "ctrl+c":
		return u.interrupt(true)
	case "esc":
		return u.interrupt(false)
	case "ctrl+d":
		if len(u.edit.text) == 0 {
			if u.run != nil && !u.run.other {
				u.hint = "a run is under way: Esc interrupts it, /quit ends it and leaves"
				return nil
			}
			u.end()
			return nil
		}
	case "ctrl+o":
		if !u.tell.unfold() {
			u.hint = "there is nothing to unfold"
		}
		return nil
	case "ctrl+l":
		return tea.ClearScreen
	case "enter", "kpenter":
		return u.enter()
	}
	u.edit.key(key, k.Text)
	return nil
}

// paste puts a text where what is typed goes. Nothing in it is a key.
func (u *ui) paste(text string) {
	switch {
	case u.pick != nil, u.ask.question != nil && (!u.ask.armed || u.ask.mode == choosing):
	default:
		u.edit.insert(text)
	}
}

// interrupt is what Esc and Ctrl-C say: to a run that it stops behind its step, and said again that it stops at once; to what is typed that it goes; and, Ctrl-C, to an empty line that the person leaves.
func (u *ui) interrupt(leaves bool) tea.Cmd {
	switch {
	case u.run != nil && !u.run.other:
		if u.run.stops++; u.run.stops == 1 {
			u.run.host.interrupt()
		} else {
			u.run.cancel()
		}
	case len(u.edit.text) > 0:
		u.edit.take()
	case u.run != nil && !leaves:
		u.hint = "the run is another process's: it is interrupted there"
	case !leaves:
	case u.busy != nil || time.Now().Before(u.gone):
		u.end()
	default:
		u.gone = time.Now().Add(leaving)
		u.hint = "Ctrl-C again leaves"
	}
	return nil
}

var commandName = regexp.MustCompile(`^/[a-z]+$`)

// enter sends what was typed, or does what a command says.
func (u *ui) enter() tea.Cmd {
	text := u.edit.String()
	if strings.TrimSpace(text) == "" {
		u.edit.set("")
		if u.unfinished && u.run == nil && u.rt != nil && u.busy == nil {
			return u.resume()
		}
		if u.elsewhere != "" && u.run == nil && u.busy == nil {
			u.tellElsewhere()
		}
		return nil
	}
	if u.rt == nil || u.busy != nil {
		u.hint = "a moment: " + u.busy.what
		return nil
	}
	if u.run != nil && u.session == "" {
		u.hint = "a moment: the run begins"
		return nil
	}
	u.edit.take()
	words := strings.Fields(text)
	if commandName.MatchString(words[0]) && !strings.HasPrefix(text, " ") {
		return u.command(words[0], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), words[0])))
	}
	return u.say(text)
}

// command is one of the program's own.
type command struct {
	name, args, does string
	busy             bool // it can be given while a run is under way
	do               func(u *ui, arg string) tea.Cmd
}

var commands []command

func init() { //nolint:gochecknoinits // help lists the commands, and is one
	commands = []command{
		{"/help", "", "this list", true, func(u *ui, _ string) tea.Cmd { u.help(); return nil }},
		{"/model", "[PROVIDER/NAME]", "the model, or another one from the next run on, in the same session", false, (*ui).setModel},
		{"/sessions", "", "the last sessions of this project, to pick one", false, (*ui).listSessions},
		{"/new", "", "a new session", false, (*ui).fresh},
		{"/fork", "[SEQ]", "goes on in a copy of this session: before a prompt (#12), which can be changed, or of all of it; this one stays as it is", false, (*ui).fork},
		{"/resume", "", "goes on with a run that was interrupted", false, func(u *ui, _ string) tea.Cmd {
			if u.elsewhere != "" {
				u.tellElsewhere()
				return nil
			}
			if !u.unfinished {
				u.tell.line(faint, "there is no unfinished run in this session")
				return nil
			}
			return u.resume()
		}},
		{"/cost", "", "what this session used, by model", true, func(u *ui, _ string) tea.Cmd { return u.cost() }},
		{"/quit", "", "leaves; what runs is canceled, and kept", true, func(u *ui, _ string) tea.Cmd { u.end(); return nil }},
	}
}

// command does what a command says.
func (u *ui) command(name, arg string) tea.Cmd {
	if name == "/exit" {
		name = "/quit"
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	switch {
	case i < 0:
		u.tell.line(red, "✗ there is no command %s: see /help. To say it to the model, begin with a space", plain.Line(name))
	case u.run != nil && !u.run.other && !commands[i].busy:
		u.tell.line(red, "✗ %s: not while a run is under way: Esc interrupts it", name)
	case arg != "" && commands[i].args == "":
		u.tell.line(red, "✗ %s takes nothing: see /help", name)
	default:
		if u.run != nil && !commands[i].busy { // it goes on where it is
			u.run.cancel()
			u.run = nil
		}
		return commands[i].do(u, arg)
	}
	return nil
}

func (u *ui) help() {
	u.tell.print("")
	for _, c := range commands {
		u.tell.line("", "  %-26s %s", c.name+" "+c.args, c.does)
	}
	for _, k := range [][2]string{
		{"Enter", "says it: to the run under way, before its next step, or as the next prompt"},
		{"Ctrl-J, Alt-Enter", "a new line"},
		{"Up, Down", "what was said before"},
		{"Esc, Ctrl-C", "interrupts the run behind its step; a second time at once"},
		{"Ctrl-C twice, Ctrl-D", "leaves, on an empty line"},
		{"Ctrl-O", "unfolds the last thing that is folded, then the one before"},
		{"@PATH", "attaches a file"},
	} {
		u.tell.line(faint, "  %-26s %s", k[0], k[1])
	}
	u.tell.print("")
}

func (u *ui) setModel(name string) tea.Cmd {
	if name == "" {
		u.tell.line(faint, "the model is %s; others: /model PROVIDER/NAME, see pawl models", plain.Line(u.model))
		return nil
	}
	cmd := u.wait("opening " + plain.Line(name))
	u.open(name)
	return cmd
}

// fresh begins a new session. The one before stays on record.
func (u *ui) fresh(string) tea.Cmd {
	u.tell.reset()
	u.session, u.spent, u.unfinished, u.elsewhere = "", journal.Spent{}, false, ""
	u.last, u.lastErr, u.seq, u.said = nil, nil, 0, nil
	u.tell.line(cyan, "· a new session")
	return nil
}

// fork goes on in a copy.
func (u *ui) fork(arg string) tea.Cmd {
	at := int64(0)
	if arg != "" {
		var err error
		if at, err = strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64); err != nil || at < 1 {
			u.tell.line(red, "✗ /fork %s: want the number of an entry, 1 or more, as it stands below what was said: #12", plain.Line(arg))
			return nil
		}
	}
	if u.session == "" {
		u.tell.line(red, "✗ /fork: nothing was said yet")
		return nil
	}
	ctx, store, session := u.ctx, u.Store, u.session
	u.do(func() tea.Msg {
		prompt := promptAt(ctx, store, session, at)
		if prompt != "" { // it is said anew
			at--
		}
		name, err := journal.Fork(ctx, store, session, at, "")
		if err != nil {
			return tellMsg{err: fmt.Errorf("/fork: %w", err)}
		}
		p, err := u.read(ctx, name)
		return loadedMsg{name, prompt, p, err}
	})
	return u.wait("forking")
}

// promptAt is the prompt that an entry of a session is; "" when it is something else.
func promptAt(ctx context.Context, store journal.Store, session string, at int64) string {
	if at > 1 {
		for e, err := range store.Read(ctx, session, at-1) {
			if d, ok := e.Data.(journal.Said); ok && err == nil && e.Seq == at && e.Key.Op == "" && d.Message.Role() == message.RoleUser {
				return plain.Typed(d.Message.Text())
			}
			break
		}
	}
	return ""
}

// picker is a list of sessions.
type picker struct {
	all []listed
	at  int
}

type pickMsg struct {
	all []listed
	err error
}

func (u *ui) listSessions(string) tea.Cmd {
	ctx, dir := u.ctx, u.rt.Dir()
	u.do(func() tea.Msg {
		all, err := u.sessions(ctx, dir)
		return pickMsg{all, err}
	})
	return u.wait("reading the sessions")
}

func (u *ui) picked(m pickMsg) {
	u.busy = nil
	switch {
	case m.err != nil:
		u.problem(m.err)
	case len(m.all) == 0:
		u.tell.line(faint, "there is no session of this project yet")
	case u.run == nil:
		u.pick = &picker{all: m.all}
	}
}

func (u *ui) pickKey(key string) tea.Cmd {
	p := u.pick
	switch key {
	case "up", "ctrl+p", "k":
		p.at = max(p.at-1, 0)
	case "down", "ctrl+n", "j":
		p.at = min(p.at+1, len(p.all)-1)
	case "esc", "ctrl+c", "q":
		u.pick = nil
	case "enter":
		u.pick = nil
		u.last, u.lastErr = nil, nil
		return u.load(p.all[p.at].session)
	}
	return nil
}

// Commands are those of a conversation, with what they take, as /help has them.
func Commands() (all []string) {
	for _, c := range commands {
		all = append(all, strings.TrimSpace(c.name+" "+c.args))
	}
	return all
}
