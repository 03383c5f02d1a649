package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/plain"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// How much of what is folded is shown, in lines, and how much is kept to be unfolded: so many of the last ones, of so many bytes each.
const (
	diffLines  = 20
	errorLines = 6
	keptFolds  = 20
	keptBytes  = 256 << 10
)

// Colours, as parameters of SGR.
const (
	faint  = "2"
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// teller makes lines of what happens: of entries as they are written, and of those of before.
type teller struct {
	width  int
	colour bool
	text   *markdown
	print  func(lines ...string)
	calls  map[[2]string]journal.Called // by run and id: made, and not over
	below  map[string]below             // runs of subagents
	folds  []fold                       // what can be unfolded, the last one last
	apart  bool                         // what is said may be no reply of a model: the answer is told at the run's end
}

// below is a run of a subagent.
type below struct {
	agent string
	depth int
}

// fold is what stands behind a line.
type fold struct{ head, body string }

func (t *teller) reset() {
	t.calls, t.below, t.folds = map[[2]string]journal.Called{}, map[string]below{}, nil
}

// style has a line in a colour.
func (t *teller) style(colour, line string) string {
	if !t.colour || line == "" {
		return line
	}
	return "\x1b[" + colour + "m" + line + "\x1b[0m"
}

// line prints a text of somebody's, or ours, broken where the terminal ends.
func (t *teller) line(colour, format string, args ...any) {
	for _, l := range wrap(plain.Text(fmt.Sprintf(format, args...)), t.width-1) {
		t.print(t.style(colour, l))
	}
}

// entry tells an entry. came says that the words of a reply were shown as they came.
func (t *teller) entry(e event.Event, came bool) {
	lead := t.whose(e)
	switch d := e.Data.(type) {
	case journal.Said:
		t.said(lead, e, d)
	case journal.ModelFinished:
		t.finished(lead, e, d, came)
	case journal.ToolStarted:
		t.calls[[2]string{e.Run, d.Call.ID}] = d.Call
	case journal.ToolFinished:
		t.result(lead, e, d)
	case journal.ToolJudged:
		t.judged(lead, e, d)
	case journal.Asked:
		t.asked(lead, d)
	case journal.Answered:
		t.line(faint, "%s  → %s", lead, answered(d))
	case journal.Compacted:
		if d.Error != "" {
			t.line(yellow, "%s! the transcript could not be compacted: %s", lead, plain.Line(d.Error))
		} else {
			t.line(cyan, "%s≈ compacted: %d tokens are some %d now, the last %d messages stay as they are · %s", lead, d.TokensBefore, d.TokensAfter, d.Preserved, millis(d.Millis))
		}
	case journal.Stopped:
		for _, text := range d.Errors {
			t.line(yellow, "%s! %s", lead, plain.Line(text))
		}
	case journal.CommandEnded:
		t.line(cyan, "%s○ the command %s in the background ended: %s %s", lead, plain.Line(d.ID), plain.Line(d.Reason), plain.Line(d.Signal))
	case journal.Board:
		t.apart = t.apart || lead == ""
	case journal.RunFinished:
		switch d.Status {
		case "completed":
		case "canceled": // why is a matter of programs
			t.line(yellow, "%s· canceled", lead)
		default:
			t.line(yellow, "%s· the run %s%s", lead, plain.Line(d.Status), because(d.Error))
		}
	case journal.Parked:
		if d.Cause != "awaiting_person" {
			t.line(yellow, "%s· interrupted%s", lead, because(d.Detail))
		}
	}
}

func because(why string) string {
	if why = plain.Clip(plain.Line(why), 300); why != "" {
		return ": " + why
	}
	return ""
}

// whose is what stands before the lines about an event that is not of the run itself: the name of the subagent, further to the right the deeper it is, or of the node.
func (t *teller) whose(e event.Event) string {
	if e.ParentRun == "" {
		if e.Key.Scope != "" {
			return "[" + plain.Line(e.Key.Scope) + "] "
		}
		return ""
	}
	b, ok := t.below[e.Run]
	if !ok { // of one that goes on only the session is known, which ends in the call
		b = below{e.Session[strings.LastIndexByte(e.Session, '/')+1:], t.below[e.ParentRun].depth + 1}
	}
	if d, ok := e.Data.(journal.RunStarted); ok {
		b.agent = d.Agent
	}
	t.below[e.Run] = b
	return strings.Repeat("  ", b.depth) + "[" + plain.Line(b.agent) + "] "
}

func (t *teller) said(lead string, e event.Event, d journal.Said) {
	switch {
	case d.Message.Role() == message.RoleAssistant: // a script's own words
		t.words(lead, d.Message.Text())
	case e.ParentRun != "":
		t.line(faint, "%s> %s", lead, plain.Clip(plain.Line(d.Message.Text()), 160))
	case d.By == "pawl" && e.Key.Op != "": // the loop's own word to the model
		t.line(faint, "%s· the model is told: %s", lead, plain.Clip(plain.Line(d.Message.Text()), 300))
	case e.Key.Op == "": // a prompt: steering is shown when it is heard
		t.user(d.Message, e.Seq)
	}
}

// user shows what a person said, with the number of its entry: that is what /fork takes.
func (t *teller) user(m message.Message, seq int64) {
	t.print("")
	for i, l := range strings.Split(strings.Trim(plain.Text(m.Text()), "\n"), "\n") {
		for j, part := range wrap(l, max(t.width-3, 10)) {
			if i+j == 0 {
				t.print(t.style(bold, "> "+part))
			} else {
				t.print(t.style(bold, "  "+part))
			}
		}
	}
	note := ""
	for f := range message.Of[message.File](m) {
		note += fmt.Sprintf(" · %s, %s", plain.Line(f.Name), plain.Line(f.MIME))
	}
	if seq > 0 {
		note = fmt.Sprintf(" · #%d", seq) + note
	}
	if note != "" {
		t.line(faint, "  %s", strings.TrimPrefix(note, " · "))
	}
	t.print("")
}

// finished shows a reply, as far as it was not shown as it came.
func (t *teller) finished(lead string, e event.Event, d journal.ModelFinished, came bool) {
	for _, m := range d.Heard {
		if lead == "" {
			t.user(m, 0)
		} else {
			t.line(faint, "%s> %s", lead, plain.Clip(plain.Line(m.Text()), 160))
		}
	}
	for c := range message.Of[message.ToolCall](d.Message) {
		t.calls[[2]string{e.Run, c.ID}] = journal.CalledOf(c)
	}
	if !came {
		for r := range message.Of[message.Reasoning](d.Message) {
			if strings.TrimSpace(r.Text) != "" && lead == "" {
				t.fold(faint, "✻ thought", r.Text)
			}
		}
		t.words(lead, d.Message.Text())
	}
	for p := range d.Message.Parts() {
		switch p := p.(type) {
		case message.ProviderCall:
			t.line(cyan, "%s● %s · %s", lead, plain.Line(p.Provider), summary(p.Name, p.Input, t.width-10))
		case message.Text:
			for _, c := range p.Citations {
				t.line(faint, "%s  [source] %s %s", lead, plain.Line(c.Title), plain.Line(c.URL))
			}
		}
	}
	if d.Partial {
		t.line(yellow, "%s· cut off: the rest was not waited for", lead)
	}
}

// words shows what a model said: as Markdown, or below a run, in short, as plain text.
func (t *teller) words(lead, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if lead == "" {
		t.print(t.text.lines(text)...)
		t.print("")
		return
	}
	lines := strings.Split(strings.TrimSpace(plain.Text(text)), "\n")
	first := lines
	if len(lines) > 4 {
		first = lines[:3]
	}
	for _, l := range first {
		t.line(faint, "%s%s", lead, l)
	}
	if len(lines) > len(first) {
		t.keep(fold{lead + "what it said", text})
		t.line(faint, "%s… %d more lines · Ctrl-O unfolds", lead, len(lines)-3)
	}
}

// result shows what a call came to: of a change the difference, of a failure its end, of everything else a line.
func (t *teller) result(lead string, e event.Event, d journal.ToolFinished) {
	key := [2]string{e.Run, d.Call}
	call, ok := t.calls[key]
	if !ok {
		call = journal.Called{ID: d.Call, Name: d.Name}
	}
	if delete(t.calls, key); d.Ask { // a question follows
		return
	}
	mark, colour := "✓", green
	if d.IsError {
		mark, colour = "✗", red
	}
	took := ""
	if d.Millis >= 100 {
		took = " · " + millis(d.Millis)
	}
	if d.Outcome != journal.OutcomeOK && d.Outcome != journal.OutcomeError {
		took += " · " + string(d.Outcome)
	}
	head, whole := inShort(call.Name, call.Input, t.width-len(lead)-len(took)-4)
	t.print(t.style(colour, fit(lead+mark+" "+head, t.width-2-len(took))) + t.style(faint, took))
	lines := strings.Split(strings.Trim(plain.Text(d.Content), "\n"), "\n")
	shown, above := lines, false // what is left out stands above what is shown
	switch {
	case d.IsError:
		shown, above = end(lines, errorLines), true
	case d.Name == "edit" || d.Name == "write":
		if len(lines) > diffLines+1 {
			shown = lines[:diffLines]
		}
	case d.Name == "read" || d.Name == "grep" || d.Name == "glob" || d.Name == "web_fetch": // for the model, not for people
		shown = nil
	default:
		shown, above = end(lines, 1), true
	}
	left := len(lines) - len(shown)
	more := func() {
		if len(shown) == 0 && d.Content != "" {
			t.line(faint, "%s    … %s · Ctrl-O unfolds", lead, plural(left, "line"))
		} else if left > 0 {
			t.line(faint, "%s    … %d more lines · Ctrl-O unfolds", lead, left)
		}
	}
	if above {
		more()
	}
	for _, l := range shown {
		if l = strings.ReplaceAll(l, "\t", "    "); strings.TrimSpace(l) == "" && len(shown) == 1 {
			continue
		}
		line := fit(l, t.width-6-len(lead))
		whole = whole && line == l
		t.print(lead + "    " + t.style(diffColour(d, l), line))
	}
	if !above {
		more()
	}
	if !whole || left > 0 {
		t.keep(fold{call.Name + " " + plain.Members(call.Input), d.Content})
	}
	if d.Warning != "" {
		t.line(yellow, "%s  ! %s", lead, plain.Line(d.Warning))
	}
	if d.Ends != "" {
		t.line(yellow, "%s  ! a hook ended the run: %s", lead, plain.Line(d.Ends))
	}
}

// end is the last lines of some: so many, and one more where that is all.
func end(lines []string, most int) []string {
	if len(lines) <= most+1 {
		return lines
	}
	return lines[len(lines)-most:]
}

// fit is the beginning of a line: most columns at most, but some in any case.
func fit(line string, most int) string {
	if most = max(most, 8); len(line) <= most || lipgloss.Width(line) <= most {
		return line
	}
	used := 0
	for i, r := range line {
		if used += columns(r); used >= most {
			return line[:i] + "…"
		}
	}
	return line
}

func diffColour(d journal.ToolFinished, line string) string {
	switch {
	case d.IsError:
		return faint
	case d.Name != "edit" && d.Name != "write":
		return faint
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return faint
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return faint
}

func (t *teller) judged(lead string, e event.Event, d journal.ToolJudged) {
	if !d.Refused() {
		return
	}
	key := [2]string{e.Run, d.Call}
	call, ok := t.calls[key]
	if !ok {
		call = journal.Called{Name: d.Name}
	}
	delete(t.calls, key)
	why := "denied"
	if d.Verdict == "invalid" {
		why = "not run"
	}
	t.line(red, "%s✗ %s", lead, summary(call.Name, call.Input, t.width-8))
	t.line(red, "%s    %s: %s", lead, why, plain.Clip(plain.Line(d.Reason), 400))
}

// asked shows a question whole: it may be longer than what stands at the bottom.
func (t *teller) asked(lead string, d journal.Asked) {
	if d.Call == nil {
		t.print("", t.style(yellow, lead+"? the agent asks:"))
		t.print(strings.Split(plain.Bar(d.Prompt, d.Prompt, t.width-1), "\n")...)
		return
	}
	ask := "run"
	if d.Unknown {
		ask = "it had begun, and how it ended is not known. Run it again:"
	}
	t.print("", t.style(yellow, fit(lead+"? "+ask+" "+plain.EscapedLine(d.Call.Name), t.width-2)))
	t.print(strings.Split(plain.Bar(plain.Members(d.Call.Input), d.Call.Input, t.width-1), "\n")...)
	if d.Prompt != "" {
		t.line(faint, "  it is asked because:")
		t.print(strings.Split(plain.Bar(d.Prompt, d.Prompt, t.width-1), "\n")...)
	}
}

// answered is an answer in words.
func answered(a journal.Answered) string {
	switch {
	case a.By == journal.ByDeadline:
		return "not answered in time"
	case a.By == journal.ByNobody:
		return "refused, as nobody is asked"
	case !a.Approved && a.Text != "":
		return "no: " + plain.Line(a.Text)
	case !a.Approved:
		return "no"
	case strings.TrimSpace(a.Text) != "":
		return plain.Line(a.Text)
	case a.Rule != "":
		return "yes, and for the session " + plain.Line(a.Rule)
	case a.Session:
		return "yes, and this very call for the session"
	case a.Input != "":
		return "yes, with another input: " + plain.Clip(plain.EscapedLine(a.Input), 200)
	}
	return "yes"
}

// fold prints a line that stands for a text.
func (t *teller) fold(colour, head, body string) {
	t.keep(fold{head, body})
	t.line(colour, "%s · Ctrl-O unfolds", head)
}

func (t *teller) keep(f fold) {
	if len(f.body) > keptBytes {
		f.body = f.body[:keptBytes] + "\n[the rest is in the journal: pawl sessions show]"
	}
	if t.folds = append(t.folds, f); len(t.folds) > keptFolds {
		t.folds = slices.Clone(t.folds[1:])
	}
}

// unfold prints the last text that is folded, and the one before it the next time.
func (t *teller) unfold() bool {
	if len(t.folds) == 0 {
		return false
	}
	f := t.folds[len(t.folds)-1]
	t.folds = t.folds[:len(t.folds)-1]
	t.print("")
	for l := range strings.SplitSeq(f.head, "\n") {
		t.line(cyan, "▾ %s", plain.Escaped(l))
	}
	for l := range strings.SplitSeq(strings.Trim(plain.Text(f.body), "\n"), "\n") {
		for _, part := range wrap(l, max(t.width-5, 10)) {
			t.print("    " + t.style(faint, part))
		}
	}
	t.print("")
	return true
}

// summary is a call in a line: of the tools that everybody knows what they are about, of others the input.
func summary(name, input string, most int) string {
	text, _ := inShort(name, input, most)
	return text
}

// inShort is summary, and reports whether that is all of the call.
func inShort(name, input string, most int) (text string, whole bool) {
	var in map[string]json.RawMessage
	about := input
	if json.Unmarshal([]byte(input), &in) == nil {
		for _, member := range []string{"command", "file_path", "pattern", "skill", "url", "question", "description"} {
			var text string
			if json.Unmarshal(in[member], &text) == nil && text != "" {
				about = text
				break
			}
		}
	}
	all := plain.EscapedLine(name + " " + about)
	text = fit(all, most)
	return text, text == all && (about == input || len(in) == 1)
}

// millis is a time, for people.
func millis(ms int64) string { return seconds(time.Duration(ms) * time.Millisecond) }

func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
