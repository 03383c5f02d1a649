package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// said is a prompt of a session, and what its client knows of it.
type said struct {
	prompt
	run       string
	accepted  bool // some server said that it is begun
	cancelled bool // it was asked to be
}

// past is all there is of a session when its client has done with it.
type past struct {
	session  string
	prompts  []*said
	journals map[string][]journal.Entry // its own, and those of its tasks, by their sessions
	effects  map[string][]effect
}

// counts are what a check found that is no problem.
type counts struct{ effects, repeated, unknown, resumed, failed, canceled int }

// record is what a journal says of a call of a tool that has an effect.
type record struct {
	where, run, tool, what string
	starts                 int
	ends                   []journal.ToolFinished
}

// check says what is wrong with a session: what was lost, and what was done twice.
func (p *past) check() (problems []string, n counts) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	records := map[string]*record{} // by what
	for _, session := range slices.Sorted(maps.Keys(p.journals)) {
		entries := p.journals[session]
		if why := invalid(entries); why != "" {
			wrong("%s: %s", session, why)
		}
		p.calls(session, entries, records, wrong)
		lives := 1 + resumes(entries)
		n.resumed += lives - 1
		for _, s := range p.runs(session, entries, wrong) {
			s.check(records, p.journals, wrong, &n)
		}
		for _, r := range records {
			if r.where == session {
				p.done(r, lives, wrong, &n)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(p.effects)) {
		if r := records[what]; r == nil || r.starts == 0 {
			wrong("%s: %d effects, and no journal says that they began", what, len(p.effects[what]))
		}
	}
	return problems, n
}

// invalid says why a journal is not that of a session that ended well; "" if it is.
func invalid(entries []journal.Entry) string {
	st := journal.Fold(entries...)
	if st.Run != "" {
		return fmt.Sprintf("the run %s never ended (%s)", st.Run, st.Status)
	}
	for i, e := range entries {
		if e.Seq != int64(i)+1 {
			return fmt.Sprintf("entry %d stands where %d should be", e.Seq, i+1)
		}
	}
	mended := message.Repair(st.Messages)
	if mended.Len() != st.Messages.Len() {
		return fmt.Sprintf("the transcript is not valid: of %d messages repair makes %d", st.Messages.Len(), mended.Len())
	}
	for i := range mended.Len() {
		if mended.At(i) != st.Messages.At(i) {
			return fmt.Sprintf("the transcript is not valid: repair changes message %d", i+1)
		}
	}
	return ""
}

func resumes(entries []journal.Entry) (n int) {
	for _, e := range entries {
		if _, ok := e.Data.(journal.Resumed); ok {
			n++
		}
	}
	return n
}

// calls puts down what a journal says of calls that have effects.
func (p *past) calls(session string, entries []journal.Entry, to map[string]*record, wrong func(string, ...any)) {
	byCall := map[[2]string]*record{} // by run and call
	add := func(run, call, tool, raw string) *record {
		what := whatOf(raw)
		if _, ok := kinds[tool]; !ok || what == "" {
			return nil
		}
		r := byCall[[2]string{run, call}]
		if r == nil {
			r = &record{where: session, run: run, tool: tool, what: what}
			if other := to[what]; other != nil {
				wrong("%s: called twice: in %s %s, and in %s %s", what, other.where, other.run, session, run)
			}
			byCall[[2]string{run, call}], to[what] = r, r
		}
		return r
	}
	for _, e := range entries {
		switch d := e.Data.(type) {
		case journal.ModelFinished:
			for _, c := range d.Message.ToolCalls() {
				add(e.Run, c.ID, c.Name, c.Input)
			}
		case journal.ToolStarted:
			if r := add(e.Run, d.Call.ID, d.Call.Name, d.Call.Input); r != nil {
				r.starts++
			}
		case journal.ToolFinished:
			if r := byCall[[2]string{e.Run, d.Call}]; r != nil && !d.Ask {
				r.ends = append(r.ends, d)
			}
		}
	}
}

// whatOf is the name of the effect that a call's input is about.
func whatOf(raw string) string {
	var in struct{ What, Command string }
	if json.Unmarshal([]byte(raw), &in) != nil {
		return ""
	}
	if words := strings.Fields(in.Command); len(words) > 1 {
		return words[1] // echo WHAT >> FILE
	}
	return in.What
}

// done looks whether an effect happened as often as the journal says.
func (p *past) done(r *record, lives int, wrong func(string, ...any), n *counts) {
	times, keys := len(p.effects[r.what]), map[string]bool{}
	for _, x := range p.effects[r.what] {
		keys[x.Key] = true
	}
	n.effects += times
	k := kinds[r.tool]
	switch {
	case r.starts > 1:
		wrong("%s: %s began %d times", r.what, r.tool, r.starts)
	case len(r.ends) > 1:
		wrong("%s: %s has %d results", r.what, r.tool, len(r.ends))
	case times > 1 && !k.repeatable:
		wrong("%s: %s happened %d times, and may once", r.what, r.tool, times)
	case times > lives:
		wrong("%s: %s happened %d times in %d lives", r.what, r.tool, times, lives)
	case len(keys) > 1:
		wrong("%s: %s happened with %d keys", r.what, r.tool, len(keys))
	}
	if times > 1 {
		n.repeated++
	}
	if len(r.ends) == 0 {
		return
	}
	switch end := r.ends[0]; end.Outcome {
	case journal.OutcomeOK:
		if times == 0 {
			wrong("%s: %s is done, as the journal says, and did not happen", r.what, r.tool)
		}
	case journal.OutcomeUnknown:
		if n.unknown++; lives == 1 && end.Warning == "" && !p.cancelled(r.where, r.run) {
			wrong("%s: the outcome of %s is unknown, and nobody died", r.what, r.tool)
		}
	case journal.OutcomeCanceled:
		if !p.cancelled(r.where, r.run) && lives == 1 {
			wrong("%s: %s was cancelled, and nobody wanted that", r.what, r.tool)
		}
	case journal.OutcomeDenied, journal.OutcomeRejected:
		if times > 0 {
			wrong("%s: %s happened although it was refused", r.what, r.tool)
		}
	default:
		if !p.cancelled(r.where, r.run) {
			wrong("%s: %s failed: %s", r.what, r.tool, end.Content)
		}
	}
}

// cancelled reports whether somebody wanted a run to be over, or one before it, or one that it may be a task of: a cancel names a session and no run, so one that a stopped server reads late meets the next run.
func (p *past) cancelled(session, run string) bool {
	for _, s := range p.prompts {
		if s.cancelled {
			return true
		}
		if s.run == run && session == p.session {
			return false
		}
	}
	return false
}

// ran is what a journal says of a run.
type ran struct {
	prompt    prompt
	id, where string
	task      bool
	cancelled bool // its client, or that of the run that it is a task of, wanted that
	begun     int
	ends      []journal.RunFinished
	answer    string
	tasks     []string // sessions
}

// runs are those of a journal. In the session's own they have to be those of its prompts.
func (p *past) runs(session string, entries []journal.Entry, wrong func(string, ...any)) (all []*ran) {
	byID := map[string]*ran{}
	prompts := map[string]int{}
	for _, e := range entries {
		r := byID[e.Run]
		if r == nil && e.Run != "" {
			r = &ran{id: e.Run, where: session, task: session != p.session, cancelled: p.cancelled(session, e.Run)}
			byID[e.Run] = r
			all = append(all, r)
		}
		switch d := e.Data.(type) {
		case journal.RunStarted:
			r.begun++
		case journal.Said:
			if q, ok := parse(d.Message.Text()); ok {
				r.prompt = q
				prompts[q.id]++
			}
		case journal.ModelFinished:
			if text := d.Message.Text(); text != "" && !d.Partial {
				r.answer = text
			}
		case journal.TaskStarted:
			r.tasks = append(r.tasks, d.Session)
		case journal.RunFinished:
			r.ends = append(r.ends, d)
		}
	}
	if session != p.session {
		return all
	}
	for _, s := range p.prompts {
		r := byID[s.run]
		switch {
		case r == nil && s.accepted:
			wrong("%s: the prompt was accepted, and is not on record", s.id)
		case r != nil && (r.prompt.String() != s.String() || prompts[s.id] != 1):
			wrong("%s: on record is %q, %d times: want %q", s.id, r.prompt, prompts[s.id], s.prompt)
		}
	}
	return all
}

// check looks at a run's end.
func (r *ran) check(records map[string]*record, journals map[string][]journal.Entry, wrong func(string, ...any), n *counts) {
	if r.begun != 1 || len(r.ends) != 1 {
		wrong("%s: the run %s began %d times and ended %d times", r.where, r.id, r.begun, len(r.ends))
		return
	}
	for _, t := range r.tasks {
		if len(journals[t]) == 0 {
			wrong("%s: the task %s is on record, and has no journal", r.prompt.id, t)
		}
	}
	switch end := r.ends[0]; agent.Status(end.Status) {
	case agent.StatusCompleted:
		if r.answer != r.prompt.answer() {
			wrong("%s: the answer is %q: want %q", r.prompt.id, r.answer, r.prompt.answer())
		}
		for i, step := range r.prompt.steps {
			for k, tool := range step {
				if got := records[r.prompt.what(i, k)]; tool != "task" && (got == nil || len(got.ends) == 0 && !refused(got, journals)) {
					wrong("%s: %s has no result, and the run is completed", r.prompt.what(i, k), tool)
				}
			}
		}
	case agent.StatusCanceled:
		if n.canceled++; !r.cancelled {
			wrong("%s: canceled, and nobody wanted that: %s", r.prompt.id, end.Error)
		}
	case agent.StatusFailed:
		if n.failed++; !slices.Contains(may, end.Class) {
			wrong("%s: failed: %s: %s", r.prompt.id, end.Class, end.Error)
		}
	default:
		wrong("%s: the run ended as %q: %s", r.prompt.id, end.Status, end.Error)
	}
}

// may be what a run fails with: its provider did, more often than it is asked again.
var may = []string{errdefs.NotAvailable.Error(), errdefs.RateLimit.Error(), errdefs.Timeout.Error()}

// refused reports whether a person did not let a call run.
func refused(r *record, journals map[string][]journal.Entry) bool {
	for _, e := range journals[r.where] {
		if d, ok := e.Data.(journal.Answered); ok && e.Run == r.run && !d.Approved && kinds[r.tool].asks {
			return true
		}
	}
	return false
}
