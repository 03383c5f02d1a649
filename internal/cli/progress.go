package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/cli/waiting"
	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// progress shows a run to a person, as it happens. Text goes to where it is wanted, everything else to w.
type progress struct {
	w      io.Writer
	text   io.Writer // the model's words
	colour bool
	calls  map[[2]string]message.ToolCall // by run and id
	began  map[[2]string]time.Time        // the same: when they were started
	below  map[string]below               // runs of subagents
	lead   string                         // of the lines about the event that is shown: whose it is
	inText bool                           // the last thing written was text without a line end
	asks   bool                           // questions are asked here: they are not told beside that

	holdAnswer bool            // text is shown only once it is known not to be the answer
	held       strings.Builder // what was held back of the reply under way
	came       bool            // words of the reply under way came as they were said
	apart      bool            // what models say is shown beside the answer, which is told at the end
	answer     string          // the reply that is the answer, unless the run goes on behind it
}

// below is a run of a subagent.
type below struct {
	agent string
	depth int
}

func newProgress(w, text io.Writer, colour bool) *progress {
	return &progress{w: w, text: text, colour: colour, calls: map[[2]string]message.ToolCall{}, began: map[[2]string]time.Time{}, below: map[string]below{}}
}

func (p *progress) event(e event.Event) {
	p.lead = p.whose(e)
	defer func() { p.lead = "" }()
	switch d := e.Data.(type) {
	case nil:
		p.delta(e)
	case journal.Prepared:
		for _, name := range pawl.ActivatedSkills(d) {
			p.line("36", "◆ skill %s: the prompt activates it", clean(name))
		}
	case journal.Said:
		if d.Message.Role() == message.RoleAssistant { // a script's own words
			for text := range strings.Lines(strings.TrimSpace(d.Message.Text())) {
				p.line("2", "%s", strings.TrimRight(printable(text), "\n"))
			}
		}
	case journal.ModelFinished:
		for _, m := range d.Heard {
			p.line("36", "> %s", clip(clean(m.Text()), 160))
		}
		for c := range message.Of[message.ToolCall](d.Message) {
			p.calls[[2]string{e.Run, c.ID}] = c
		}
		if e.ParentRun != "" || e.Key.Scope != "" { // its words come whole: those of others come in between
			for text := range strings.Lines(strings.TrimSpace(d.Message.Text())) {
				p.line("2", "%s", strings.TrimRight(printable(text), "\n"))
			}
			return
		}
		if !p.came { // it was made in another process
			p.words(d.Message.Text())
		}
		p.came, p.answer = false, ""
		if p.holdAnswer && (len(d.Message.ToolCalls()) > 0 || d.Cut()) {
			p.say(p.held.String())
		} else if p.holdAnswer {
			p.answer = p.held.String()
		}
		p.held.Reset()
		p.endText()
	case journal.Board:
		p.apart = true
	case journal.ToolStarted:
		p.began[[2]string{e.Run, d.Call.ID}] = e.Time
		p.line("36", "● %s", summary(d.Call.Name, d.Call.Input))
	case journal.ToolFinished:
		if !d.Ask { // else the question follows
			p.result(d, p.took(e, d.Call))
		}
		if d.Warning != "" {
			p.line("33", "  warning: %s", clean(d.Warning))
		}
	case journal.ToolJudged:
		if d.Refused() {
			why := "denied"
			if d.Verdict == "invalid" {
				why = "not run"
			}
			if call, ok := p.calls[[2]string{e.Run, d.Call}]; ok {
				p.line("31", "✗ %s", summary(call.Name, call.Input))
				p.line("31", "  %s: %s", why, lastLine(d.Reason))
			} else { // one of a node's or a script's, which is not on record until it begins
				p.line("31", "✗ %s: %s", why, lastLine(d.Reason))
			}
		}
	case journal.Asked:
		if p.endText(); !p.asks {
			text := clean(d.Prompt)
			if d.Call != nil {
				text = strings.TrimSuffix(summary(d.Call.Name, d.Call.Input)+": "+text, ": ")
			}
			p.line("33", "? %s", text)
		}
	case journal.ModelFailed:
		p.came = false
		p.endText()
	case journal.Compacted:
		if d.Error != "" {
			p.line("33", "warning: the transcript could not be compacted: %s", clean(d.Error))
		} else {
			p.line("36", "≈ compacted: %d tokens are some %d now, the last %d messages stay as they are", d.TokensBefore, d.TokensAfter, d.Preserved)
		}
	case journal.Stopped:
		if e.ParentRun == "" && (d.Again != "" || d.Steered) { // it was not the answer
			p.say(p.answer)
			p.answer = ""
			p.endText()
		}
		for _, text := range d.Errors {
			p.line("33", "warning: %s", clean(text))
		}
	}
}

// took is how long a call took, by what is on record, if that is more than a moment.
func (p *progress) took(e event.Event, call string) string {
	at := [2]string{e.Run, call}
	began := p.began[at]
	delete(p.began, at)
	if d := e.Time.Sub(began); !began.IsZero() && d >= soon {
		return " (" + waiting.Span(d) + ")"
	}
	return ""
}

// result shows what a call came to: of a change the diff, of a failure its end, of everything else a line.
func (p *progress) result(d journal.ToolFinished, took string) {
	mark, colour, most := "✓", "32", 1
	switch {
	case d.IsError:
		mark, colour, most = "✗", "31", 6
	case d.Name == "edit" || d.Name == "write":
		most = 16
	}
	lines := strings.Split(strings.TrimSpace(printable(d.Content)), "\n")
	if n := len(lines) - most; n > 0 {
		lines = lines[n:]
	}
	for i, text := range lines {
		lead := "    "
		if i == 0 {
			lead = "  " + mark + " " + clean(d.Name) + took + ": "
		}
		p.line(colour, "%s%s", lead, clip(strings.ReplaceAll(text, "\t", "  "), 160))
	}
}

// whose is what stands before the lines about an event of a subagent's run: its name, further to the right the deeper it is. "" is the run itself.
func (p *progress) whose(e event.Event) string {
	if e.ParentRun == "" {
		if e.Key.Scope != "" { // of a node of a graph
			return "[" + clean(e.Key.Scope) + "] "
		}
		return ""
	}
	b, ok := p.below[e.Run]
	if !ok { // of one that goes on only the session is known, which ends in the call
		b = below{e.Session[strings.LastIndexByte(e.Session, '/')+1:], p.below[e.ParentRun].depth + 1}
	}
	if d, ok := e.Data.(journal.RunStarted); ok {
		b.agent = d.Agent
	}
	p.below[e.Run] = b
	return strings.Repeat("  ", b.depth) + "[" + clean(b.agent) + "] "
}

func (p *progress) delta(e event.Event) {
	switch e.Delta {
	case event.TextDelta:
		switch {
		case e.ParentRun != "" || e.Key.Scope != "": // they come whole
		default:
			p.came = true
			p.words(e.Text)
		}
	case event.Warning:
		p.line("33", "warning: %s", clean(e.Text))
	case event.Retry:
		if e.ParentRun == "" && e.Key.Scope == "" { // what came before counts no more
			p.came = false
			p.held.Reset()
		}
		text := clean(e.Text)
		if e.Wait >= soon {
			text += " (again in " + waiting.Span(e.Wait) + ")"
		}
		p.line("33", "retry: %s", text)
	case event.ReasoningDelta, event.ToolOutput: // too much for a summary; --json has it
	}
}

// words are some of the reply under way.
func (p *progress) words(text string) {
	if p.holdAnswer {
		p.held.WriteString(text)
	} else {
		p.say(text)
	}
}

func (p *progress) say(text string) {
	if text != "" {
		_, _ = io.WriteString(p.text, printable(text))
		p.inText = !strings.HasSuffix(text, "\n")
	}
}

// end says what the run came to, and how to go on; what waits for a person is said elsewhere.
func (p *progress) end(res *agent.Result, c common) {
	if res.Status != agent.StatusCompleted {
		p.say(p.held.String())
	}
	p.endText()
	if _, err := fmt.Fprintf(p.w, "%s · %s · %d tokens · cost %s · session %s\n", res.Status, counted(res.Steps, "step"), res.Usage.Total(), money(res.Cost), clean(res.ContextID)); err != nil {
		return
	}
	switch {
	case res.Status == agent.StatusCompleted, len(res.Pending) > 0:
	case res.Status == agent.StatusInterrupted:
		p.line("33", "go on with: %s", c.again(res.ContextID))
	default:
		p.line("33", "go on with: %s", c.next(res.ContextID))
	}
}

func (p *progress) endText() {
	if p.inText {
		fmt.Fprintln(p.text)
		p.inText = false
	}
}

func (p *progress) line(colour, format string, args ...any) {
	p.endText()
	text := fmt.Sprintf(format, args...)
	if p.colour {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(p.w, p.lead+text)
}

// summary is a call in one line.
func summary(name, input string) string { return clip(escapedLine(name+" "+input), 160) }

// lastLine is what a result comes to: its last line that says something.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return clip(clean(lines[len(lines)-1]), 160)
}

func clip(s string, most int) string { return plain.Clip(s, most) }

// clean makes text safe for one line of a terminal.
func clean(s string) string { return plain.Line(s) }

// printable takes out what would steer a terminal: a model's words must not move the cursor or change what was shown.
func printable(s string) string { return plain.Text(s) }

// escapedLine shows what would steer a terminal, in one line, for lists of what waits for a person.
func escapedLine(s string) string { return plain.EscapedLine(s) }

// escaped shows what would steer a terminal, or could not be seen.
func escaped(s string) string { return plain.Escaped(s) }

// counted is so many of something.
func counted(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
