package trace

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// scribe writes one session, entry by entry. It holds the calls of the step that is under way, so that each is shown in one piece.
type scribe struct {
	*page
	session string
	depth   int
	run     *run // nil: before the first
	steps   int
	calls   []*call          // that are not written yet, in the model's order
	byID    map[string]*call // the same
	clock   clock
	now     time.Duration // on the run's clock, at the entry
}

// session writes a session, once.
func (p *page) session(id string, depth int) error {
	p.shown[id] = true
	s := &scribe{page: p, session: id, depth: depth, byID: map[string]*call{}}
	end := p.ends[id]
	for e, err := range p.store.Read(p.ctx, id, 0) {
		if err != nil {
			return fmt.Errorf("trace: read session %s: %w", id, err)
		}
		if e.Seq > end {
			break
		}
		s.now = s.clock.tick(e)
		if err := s.entry(e); err != nil {
			return err
		}
	}
	if err := s.flush(func(*call) bool { return true }); err != nil {
		return err
	}
	s.endRun()
	return nil
}

func (s *scribe) endRun() {
	if s.run != nil {
		s.raw("</section>")
		s.run = nil
	}
}

// entry writes an entry, or keeps it for the call that it belongs to.
func (s *scribe) entry(e journal.Entry) error {
	if took, err := s.callEntry(e); took || err != nil {
		return err
	}
	switch d := e.Data.(type) {
	case journal.ModelStarted, journal.ModelFinished, journal.ModelFailed, journal.Compacted, journal.Stopped: // the step before, in this scope, is over
		if err := s.flush(func(c *call) bool { return c.scope == e.Key.Scope || c.settled() }); err != nil {
			return err
		}
	case journal.RunStarted, journal.RunFinished:
		if err := s.flush(func(*call) bool { return true }); err != nil {
			return err
		}
	case journal.Said, journal.Parked, journal.Resumed: // what is not over goes on behind it
		if err := s.flush((*call).settled); err != nil {
			return err
		}
	case journal.TaskStarted: // of a call that is shown already: it works in the background
		return s.task(d)
	}
	s.write(e)
	return nil
}

// write writes what is shown in the order of the entries.
func (s *scribe) write(e journal.Entry) {
	switch d := e.Data.(type) {
	case journal.SessionCreated:
		if d.Parent != "" {
			s.note(e, "", fmt.Sprintf("forked from session %s at entry %d", d.Parent, d.At), "")
		}
	case journal.RunStarted:
		s.runStarted(e, d)
	case journal.Resumed:
		s.note(e, "mid", "resumed by "+d.Owner, "")
		s.folded("Terms from here on", string(d.Terms))
	case journal.Said:
		s.said(e, d)
	case journal.Seeded:
		s.note(e, "", "the caller's seeder made the transcript that the run begins with", "")
	case journal.Prepared:
		s.raw("<div class=\"system\">")
		s.folded("System prompt", d.System)
		var put strings.Builder
		for _, m := range slices.Concat(d.Edit.Head, d.Edit.Tail) {
			put.WriteString(m.Text() + "\n")
		}
		s.folded("Put into the transcript by hooks", put.String())
		s.raw("</div>")
	case journal.ModelFinished:
		s.reply(e, d)
	case journal.ModelFailed:
		s.note(e, "bad", "the model call gave nothing"+class(d.Class), d.Error)
	case journal.Compacted:
		s.compacted(e, d)
	case journal.Stopped:
		if d.Again != "" {
			s.note(e, "mid", "a hook sent the model back", d.Again)
		}
		for _, text := range d.Errors {
			s.note(e, "bad", "a hook failed after the reply", text)
		}
	case journal.CommandStarted:
		s.note(e, "", "command "+d.ID+" began in the background", d.Command)
	case journal.CommandEnded:
		s.note(e, "", ended(d), "")
	case journal.Board:
		s.board(e, d)
	case journal.Visited:
		s.board(e, d.Board)
	case journal.Failed:
		s.note(e, "bad", "failed, and the run went on"+class(d.Class), d.Error)
	case journal.Parked:
		s.note(e, "mid", "interrupted: "+d.Cause+suffix(": ", oneLine(d.Detail, 200)), d.Stack)
	case journal.RunFinished:
		s.runFinished(e, d)
	}
}

func class(c string) string {
	if c == "" {
		return ""
	}
	return " (" + c + ")"
}

func ended(d journal.CommandEnded) string {
	how := fmt.Sprintf("command %s %s after %s", d.ID, d.Reason, span(time.Duration(d.Millis)*time.Millisecond))
	switch {
	case d.Signal != "":
		return how + " by " + d.Signal
	case d.Reason == "exited":
		return how + fmt.Sprintf(" with code %d", d.Code)
	}
	return how
}

// at writes the number of an entry, and when it was.
func (s *scribe) at(e journal.Entry) {
	fmt.Fprintf(s.w, `<span class="at" title="%s">#%d`, e.Time.UTC().Format("2006-01-02 15:04:05.000 UTC"), e.Seq)
	if s.run != nil {
		s.raw(" · +", span(s.now))
	}
	s.raw("</span>")
}

// note is a line of its own, with what stands behind it.
func (s *scribe) note(e journal.Entry, class, title, text string) {
	s.open("div", strings.TrimSpace("note "+class))
	s.at(e)
	s.element("b", "", title)
	if text != "" {
		s.element("pre", "", text)
	}
	s.raw("</div>")
}

func (s *scribe) runStarted(e journal.Entry, d journal.RunStarted) {
	s.endRun()
	s.run, s.steps = s.runs[place{s.session, e.Seq}], 0
	s.raw("<section class=\"run\"")
	if s.run != nil {
		s.raw(` id="`, s.run.anchor(), `"`)
	}
	s.raw("><h2>Run ")
	if s.run != nil {
		s.text(s.run.name())
		s.badge(s.run.status)
	}
	s.raw("</h2><p class=\"dim\">")
	for _, f := range [][2]string{
		{"agent", d.Agent},
		{"model", d.Model},
		{"engine", d.Engine},
		{"directory", d.Dir},
		{"user", d.User},
		{"task", d.Task},
		{"below run", d.ParentRun},
		{"session", s.session},
		{"began", e.Time.UTC().Format("2006-01-02 15:04:05 UTC")},
	} {
		if f[1] != "" {
			s.raw("<span class=\"kv\">", f[0], " <b>")
			s.text(f[1])
			s.raw("</b></span> ")
		}
	}
	s.raw("</p>")
	s.folded("Terms", string(d.Terms))
}

func (s *scribe) runFinished(e journal.Entry, d journal.RunFinished) {
	text := d.Error
	if d.Reason != "" {
		text = strings.TrimPrefix(text+"\n"+d.Reason, "\n")
	}
	title := "run " + d.Status + class(d.Class)
	if d.Discarded {
		title += ", what it said was dropped"
	} else if !d.Committed && d.Status == "completed" {
		title += ", not committed"
	}
	s.note(e, colour(d.Status), title, text)
	s.folded("Stack", d.Stack)
	s.folded("Handed over", string(d.Handoff))
}

func (s *scribe) said(e journal.Entry, d journal.Said) {
	who := "User"
	switch {
	case d.By == "pawl":
		who = "To the model"
	case d.By != "":
		who += " " + d.By
	}
	if e.Key.Op == "steer" && d.By != "pawl" {
		who += ", meanwhile"
	}
	s.raw(`<article class="said"><h3>`)
	s.text(who)
	s.at(e)
	s.raw("</h3>")
	s.parts(d.Message)
	s.raw("</article>")
}

func (s *scribe) reply(e journal.Entry, d journal.ModelFinished) {
	s.steps++
	took := time.Duration(d.Millis) * time.Millisecond
	fmt.Fprintf(s.w, `<article class="reply"><h3>Step %d`, s.steps)
	if e.Key.Scope != "" {
		s.element("span", "chip", e.Key.Scope)
	}
	for _, chip := range []string{d.Model, tokens(d.Usage), cost(d.CostMicros), span(took)} {
		if chip != "" {
			s.element("span", "chip", chip)
		}
	}
	switch d.Stop {
	case model.StopEnd, model.StopTools, "":
	default:
		s.element("span", "badge mid", string(d.Stop))
	}
	if d.Partial {
		s.element("span", "badge mid", "cut off by a cancel")
	}
	s.at(e)
	s.raw("</h3>")
	s.bar(s.run, "model", s.now, took)
	if d.Reason != "" {
		s.element("p", "why", d.Reason)
	}
	s.parts(d.Message)
	s.raw("</article>")
	for c := range message.Of[message.ToolCall](d.Message) {
		s.add(&call{id: c.ID, name: c.Name, input: c.Input, scope: e.Key.Scope})
	}
}

// parts writes what a message says. Its calls are shown by themselves.
func (p *page) parts(m message.Message) {
	for part := range m.Parts() {
		switch part := part.(type) {
		case message.Text:
			if part.Text != "" {
				p.element("div", "text", part.Text)
			}
			if len(part.Citations) > 0 {
				p.folded("Sources", strings.TrimSpace(sources(part.Citations)))
			}
		case message.Reasoning:
			p.folded("Reasoning", part.Text)
		case message.File:
			p.file(part)
		case message.ToolResult:
			p.folded("Result of a call", part.Content)
		case message.ProviderCall:
			p.folded("What the provider did: "+part.Name, strings.TrimSpace(part.Input+"\n"+part.Output)+sources(part.Sources))
		case message.Opaque:
			p.folded("The provider's own part", part.JSON)
		}
	}
}

// sources are what a text or a search names, a line each. They are no links: nothing on a page leads out of it.
func sources(cs []message.Citation) string {
	var b strings.Builder
	for _, c := range cs {
		b.WriteString("\n" + strings.TrimSpace(c.Title+" "+c.URL))
		if c.Quote != "" {
			b.WriteString(": " + c.Quote)
		}
	}
	return b.String()
}

// pictures are what browsers show, and run nothing of.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func (p *page) file(f message.File) {
	p.raw("<figure>")
	if pictures[f.MIME] && f.Data != "" {
		p.raw(`<img alt="" loading="lazy" src="data:`, f.MIME, ";base64,")
		enc := base64.NewEncoder(base64.StdEncoding, p.w)
		_, _ = enc.Write([]byte(f.Data)) // the writer keeps its error
		_ = enc.Close()
		p.raw(`">`)
	}
	p.raw("<figcaption>")
	p.text(f.MIME)
	for _, s := range []string{f.Name, f.URL} {
		if s != "" {
			p.raw(" · ")
			p.text(s)
		}
	}
	if f.Data != "" {
		p.raw(" · ", number(len(f.Data)), " bytes")
	}
	p.raw("</figcaption></figure>")
}

func (s *scribe) compacted(e journal.Entry, d journal.Compacted) {
	if d.Error != "" {
		s.note(e, "bad", "the transcript was not compacted", d.Error)
		return
	}
	title := fmt.Sprintf("compacted: %s tokens became some %s; the last %d messages stay", number(d.TokensBefore), number(d.TokensAfter), d.Preserved)
	s.open("div", "note mid")
	s.at(e)
	s.element("b", "", title)
	for _, chip := range []string{d.Model, tokens(d.Usage), cost(d.CostMicros), span(time.Duration(d.Millis) * time.Millisecond)} {
		if chip != "" {
			s.element("span", "chip", chip)
		}
	}
	for _, m := range d.Edit.Head {
		s.folded("What stands there instead", m.Text())
	}
	s.raw("</div>")
}

func (s *scribe) board(e journal.Entry, d journal.Board) {
	var says []string
	for name, ms := range d.Append {
		says = append(says, fmt.Sprintf("%d messages to %s", len(ms), name))
	}
	for name := range d.Set {
		says = append(says, "set "+name)
	}
	for _, name := range d.Delete {
		says = append(says, "deleted "+name)
	}
	slices.Sort(says)
	s.note(e, "", "board: "+e.Key.String(), strings.Join(says, "\n"))
}
