package event

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/journal"
)

// Subject names the event in a hierarchy that [Subject] has patterns for. It is built when it is asked for; a pattern needs none.
//
//	agent.run.RUN.start                run.started of attempt 1, resumed
//	agent.run.RUN.attempt              run.started of a further attempt
//	agent.run.RUN.end                  run.finished, parked, RunLeft
//	agent.run.RUN.step.ACTOR.start     model.started, tool.started, asked, command.started
//	agent.run.RUN.step.ACTOR.complete  the outcome of a step: any other entry with a Key
//	agent.run.RUN.step.ACTOR.error     model.failed; failed; tool.finished with another outcome than ok
//	agent.run.RUN.stream.ACTOR.delta   a delta with a Key
//	agent.run.RUN.note.TYPE            an entry or a delta without a Key: said, seeded, warning
//	agent.session.SESSION.note.TYPE    an event without a run: session.created
//
// ACTOR is the Key, always three parts: Scope.Op.ID, so that a pattern can ask for all tools or for all that a graph node does. TYPE
// is [Event.Type], with its dots. An id is one part, escaped as [Part] does it; an empty one is "-".
//
// A driver's stretch of a run, from the call that begins or resumes it until that call returns, has exactly one start and exactly one end,
// whatever the end is; the end comes last. So a run that was parked and resumed has two of each, which Type tells apart; a further attempt has
// neither; and only a process that dies leaves a start without its end. A step has at most one start and one complete over all stretches of its
// attempt. Errors may come before the complete, since a resumed run tries again; and what is given again from the record is told by nobody. A
// child's events are under its own run.
func (e Event) Subject() string {
	p := e.path()
	b := make([]byte, 0, 96)
	for part, ok := p.next(); ok; part, ok = p.next() {
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = appendPart(b, part)
	}
	return string(b)
}

// Part is an id as it stands in subjects and has to stand in patterns: one part, whatever is in it. Dots, stars, ">", "%", blanks, and what cannot be
// printed become %XX, byte by byte; "" becomes "-", and "-" becomes "%2D". Two ids never become the same part.
func Part(id string) string {
	for i := range len(id) {
		if c := id[i]; c < ' ' || c > '~' || reserved(rune(c)) {
			return string(appendPart(nil, id))
		}
	}
	if id == "" || id == "-" {
		return string(appendPart(nil, id))
	}
	return id
}

func reserved(r rune) bool { return r == '.' || r == '*' || r == '>' || r == '%' || r == ' ' }

func appendPart(b []byte, id string) []byte {
	const hex = "0123456789ABCDEF"
	switch id {
	case "":
		return append(b, '-')
	case "-":
		return append(b, "%2D"...)
	}
	for i, n := 0, 0; i < len(id); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(id[i:])
		if r == utf8.RuneError && n == 1 || reserved(r) || !unicode.IsPrint(r) {
			for _, c := range []byte(id[i : i+n]) {
				b = append(b, '%', hex[c>>4], hex[c&15])
			}
		} else {
			b = append(b, id[i:i+n]...)
		}
	}
	return b
}

// path is a subject before it is written: its parts as they are, without escapes. Patterns are compared with that, which costs nothing.
type path struct {
	parts [8]string
	n, at int
	kind  string // stands behind parts, split at its dots
	more  bool   // there is something left of kind
}

func (p *path) add(parts ...string) { p.n += copy(p.parts[p.n:], parts) }

func (p *path) note(kind string) {
	p.add("note")
	p.kind, p.more = kind, true
}

func (p *path) next() (part string, ok bool) {
	if p.at < p.n {
		p.at++
		return p.parts[p.at-1], true
	}
	if !p.more {
		return "", false
	}
	part, p.kind, p.more = strings.Cut(p.kind, ".")
	return part, true
}

// shapes are all subjects that path makes.
var shapes = []string{
	"agent.run.*.start", "agent.run.*.attempt", "agent.run.*.end", "agent.run.*.note.>",
	"agent.run.*.step.*.*.*.start", "agent.run.*.step.*.*.*.complete", "agent.run.*.step.*.*.*.error",
	"agent.run.*.stream.*.*.*.delta",
	"agent.session.*.note.>",
}

func (e *Event) path() (p path) {
	if e.Run == "" {
		p.add("agent", "session", e.Session)
		p.note(e.Type())
		return p
	}
	p.add("agent", "run", e.Run)
	switch d := e.Data.(type) {
	case journal.RunStarted:
		if d.Attempt > 1 {
			p.add("attempt")
		} else {
			p.add("start")
		}
		return p
	case journal.Resumed:
		p.add("start")
		return p
	case journal.RunFinished, journal.Parked:
		p.add("end")
		return p
	}
	switch {
	case e.Data == nil && e.Delta == RunLeft:
		p.add("end")
	case e.Key == (journal.Key{}):
		p.note(e.Type())
	case e.Data == nil:
		p.add("stream", e.Key.Scope, e.Key.Op, e.Key.ID, "delta")
	default:
		p.add("step", e.Key.Scope, e.Key.Op, e.Key.ID, progress(e.Data))
	}
	return p
}

// progress is how far a step is with an entry of its key.
func progress(d journal.Data) string {
	switch d := d.(type) {
	case journal.ModelStarted, journal.ToolStarted, journal.Asked, journal.CommandStarted:
		return "start"
	case journal.ModelFailed, journal.Failed:
		return "error"
	case journal.ToolFinished:
		if d.Outcome != journal.OutcomeOK {
			return "error"
		}
	}
	return "complete"
}
