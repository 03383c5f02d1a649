package chat

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/cli/waiting"
	"github.com/pawl-dev/pawl/internal/plain"
)

// mostOpen is the largest open block, in bytes, that is rendered as Markdown while it grows; of a larger one, and of code, the last lines are shown as they are.
const mostOpen = 4 << 10

// View is what stands at the bottom: what still changes, what goes on, what can be typed, and what it is about.
func (u *ui) View() tea.View {
	if u.quit && u.run == nil {
		u.high = height{}
		return tea.NewView("")
	}
	var lines []string
	room := max(u.height-6, 3) // for all but the editor and the status
	if u.run != nil && u.pick == nil {
		lines = append(lines, u.replyLines(max(room-len(u.run.tools)-3, 2))...)
	}
	lines = append(lines, u.activity()...)
	if n := len(lines) - room; n > 0 {
		lines = lines[n:]
	}
	var cursor *tea.Cursor
	switch {
	case u.pick != nil:
		lines = append(lines, u.pickLines(room)...)
	case u.ask.question != nil:
		if u.ask.wrong != "" {
			lines = append(lines, u.tell.style(red, fit(plain.Line(u.ask.wrong), u.width-1)))
		}
		for _, l := range wrap(plain.Text(u.choices()), u.width-1) {
			lines = append(lines, u.tell.style(yellow, l))
		}
		if u.ask.mode != choosing && u.ask.armed {
			lines, cursor = u.typed(lines)
		}
	default:
		lines, cursor = u.typed(lines)
	}
	lines = append(lines, u.status())
	u.high = u.high.with(len(lines), time.Now())
	v := tea.NewView(strings.Join(lines, "\n"))
	v.Cursor = cursor
	return v
}

// height is how many lines stand at the bottom, and when that was made.
type height struct {
	lines int
	at    time.Time
}

// drawn is how long it takes, at most, until what was made stands there: three frames.
const drawn = 100 * time.Millisecond

// with is the height once there is a view of so many lines. One that was higher may stand there still.
func (h height) with(lines int, now time.Time) height {
	if lines < h.lines && now.Sub(h.at) < drawn {
		return h
	}
	return height{lines, now}
}

// replyLines shows the end of the reply under way: most lines at most.
func (u *ui) replyLines(most int) []string {
	r := u.run
	rest := r.reply.rest()
	var lines []string
	switch {
	case strings.TrimSpace(rest) == "":
		if r.think.Len() > 0 {
			text := r.think.String()
			tail := wrap(plain.Line(strings.ToValidUTF8(text[max(0, len(text)-400):], "")), u.width-3)
			for _, l := range tail[max(len(tail)-2, 0):] {
				lines = append(lines, "  "+u.tell.style(faint, l))
			}
		}
		return lines
	case len(rest) <= mostOpen && r.reply.fence == "":
		if r.shown != len(rest) || r.width != u.width {
			r.lines, r.shown, r.width = u.tell.text.lines(rest), len(rest), u.width
		}
		lines = r.lines
	default:
		from := max(0, len(rest)-most*u.width)
		lines = wrap(plain.Text(strings.ToValidUTF8(rest[from:], "")), u.width-3)
		for i, l := range lines {
			lines[i] = "  " + l
		}
	}
	return lines[max(len(lines)-most, 0):]
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// activity says what goes on, since when, and what was said and not heard yet.
func (u *ui) activity() (lines []string) {
	now := time.Now()
	turn := string(spinner[int(now.UnixMilli()/int64(frame/time.Millisecond))%len(spinner)])
	row := func(colour, text string) {
		lines = append(lines, u.tell.style(colour, fit(text, u.width-1)))
	}
	var waits []string
	for _, w := range u.waits.All() {
		if w.Kind != waiting.Tool && (!w.Below || w.Kind != waiting.Model) { // tools have their rows, and subagents are the work of one
			waits = append(waits, plain.Line(w.Text(now)))
		}
	}
	r := u.run
	if u.busy != nil {
		row(cyan, strings.Join(append([]string{turn + " " + u.busy.what, waiting.Span(now.Sub(u.busy.since))}, waits...), " · "))
	}
	if r == nil {
		return lines
	}
	for _, c := range r.tools {
		row(cyan, turn+" "+c.what+" · "+seconds(now.Sub(c.since)))
		if tail := strings.Split(strings.TrimRight(c.tail, "\n"), "\n"); now.Sub(c.since) > time.Second && c.tail != "" {
			for _, l := range tail[max(len(tail)-3, 0):] {
				row(faint, "    "+strings.ReplaceAll(l, "\t", "  "))
			}
		}
	}
	for _, s := range u.said {
		if !s.shown {
			row(yellow, "» "+plain.Line(s.text)+" · heard before the next step")
		}
	}
	if r.prompt != "" && now.Sub(r.began) > time.Second {
		row(yellow, "» "+plain.Line(r.prompt)+" · as soon as it can begin")
	}
	step := ""
	switch {
	case u.ask.question != nil:
		step = "waits for your answer"
		if n := len(u.asked); n > 1 {
			step += fmt.Sprintf(" · %d more", n-1)
		}
		turn = "?"
	case len(waits) > 0:
		step = strings.Join(waits, " · ")
	case len(r.tools) > 0:
		step = "at work"
	default:
		step = r.step + " · " + seconds(now.Sub(r.since))
	}
	switch {
	case r.other && len(r.tools) > 0:
		step += " in another process"
	case r.other:
	case u.ask.question != nil: // what Esc does then stands below
	case r.stops == 0:
		step += " · Esc interrupts"
	case r.stops == 1:
		step += " · stops behind this step · Esc stops it at once"
	default:
		step += " · is being stopped"
	}
	row(cyan, turn+" "+step)
	return lines
}

// typed adds the editor.
func (u *ui) typed(lines []string) ([]string, *tea.Cursor) {
	text, x, y := u.edit.show(u.width-3, max(min(8, u.height/3), 1))
	cursor := tea.NewCursor(min(x+2, u.width-1), len(lines)+y)
	cursor.Blink = false
	for i, l := range text {
		mark := "  "
		if i == 0 {
			mark = u.tell.style(bold, "> ")
		}
		lines = append(lines, mark+l)
	}
	return lines, cursor
}

// status is the last line.
func (u *ui) status() string {
	text := u.hint
	if text == "" {
		var parts []string
		if u.unfinished && u.run == nil {
			parts = append(parts, "unfinished: Enter goes on")
		}
		if u.model != "" {
			parts = append(parts, plain.Line(u.model))
		}
		if u.session != "" {
			parts = append(parts, plain.Line(u.session))
		}
		if u.spent.Steps > 0 {
			parts = append(parts, tokens(u.spent.Usage.Total()), money(u.spent.Cost()))
		}
		text = strings.Join(parts, " · ")
	}
	return u.tell.style(faint, fit(text, u.width-1))
}

// pickLines show the sessions that can be picked.
func (u *ui) pickLines(room int) (lines []string) {
	p := u.pick
	most := max(room-1, 1)
	from := min(max(p.at-most+1, 0), max(len(p.all)-most, 0))
	for i := from; i < min(from+most, len(p.all)); i++ {
		s := p.all[i]
		text := fmt.Sprintf("%s  %-11s %s  %s", s.updated.Local().Format("01-02 15:04"), plain.Line(s.status), plain.Line(s.session), s.first)
		text = fit(text, u.width-3)
		if i == p.at {
			lines = append(lines, u.tell.style(bold, "> "+text))
		} else {
			lines = append(lines, "  "+text)
		}
	}
	return append(lines, u.tell.style(faint, "Up, Down choose · Enter opens · Esc leaves"))
}
