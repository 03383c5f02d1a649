package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// verdict is what is wrong with a case.
type verdict struct {
	repeated []string // done twice, or done although it must not be
	lost     []string // missing, or not what it was
}

func (v *verdict) again(format string, args ...any) {
	v.repeated = append(v.repeated, fmt.Sprintf(format, args...))
}

func (v *verdict) missing(format string, args ...any) {
	v.lost = append(v.lost, fmt.Sprintf(format, args...))
}

// verdict judges a case by the undisturbed one, and that one by itself.
func (h *past) verdict(got *past, m *matrix) verdict {
	var v verdict
	v.effects(got)
	v.runs(got)
	v.appends(got)
	v.starts(got)
	v.failures(got, m.fault)
	v.lives(got)
	v.replays(got)
	unknown := h.unknown(got, m.s.Unknown)
	v.uses(h, got, m.s.Unknown, unknown)
	told := 0
	for _, session := range slices.Sorted(maps.Keys(h.last.states)) {
		w, g := h.last.states[session], got.last.states[session]
		told += v.transcript(session, w.Messages, g.Messages, unknown)
		v.closed(session, w, g)
	}
	for session := range got.last.states {
		if _, ok := h.last.states[session]; !ok {
			v.again("there is a session %s: undisturbed there is none", session)
		}
	}
	if most := got.deaths * max(1, m.s.Writers); told > most {
		v.missing("the outcomes of %d calls are unknown: at most %d can be", told, most)
	}
	v.ending(h, got, m.s)
	return v
}

// lives looks at what each process found: is all there that was reported, is each transcript valid.
func (v *verdict) lives(h *past) {
	seq := map[string]int64{} // reported so far
	see := func(f *found, when string) {
		for session, last := range seq {
			if f.Seq[session] < last {
				v.missing("%s: session %s ends at entry %d: %d was reported", when, session, f.Seq[session], last)
			}
		}
		for _, session := range f.Invalid {
			v.missing("%s: the transcript of session %s is not valid", when, session)
		}
	}
	for _, l := range h.record {
		if a := l.Append; a != nil && a.Ended == reported {
			seq[a.Session] = max(seq[a.Session], a.Last)
		}
		if l.Found != nil {
			see(l.Found, fmt.Sprintf("life %d", l.Life))
		}
	}
	see(h.last, "the end")
	if ids := h.last.Open; len(ids) > 0 {
		v.missing("%v never came to an outcome", ids)
	}
}

// effects looks for effects of the engine that were performed although their outcome was on record, or twice by one process, and for
// outcomes that were not put on record.
func (v *verdict) effects(h *past) {
	done := map[string]bool{}
	gave := map[string]bool{}
	for _, l := range h.record {
		gave[l.Gave] = true
		if l.Found != nil {
			clear(done)
			for _, id := range l.Found.Done {
				done[id] = true
			}
		}
		if l.Effect == "" {
			continue
		}
		if done[l.Effect] {
			v.again("life %d: %s is performed again", l.Life, l.Effect)
		}
		done[l.Effect] = true
	}
	delete(gave, "")
	for _, id := range h.last.Done {
		delete(gave, id)
	}
	for id := range gave {
		v.missing("the outcome of %s is not on record", id)
	}
}

// runs looks whether what is run for effects was run for each outcome, and never beside one.
func (v *verdict) runs(h *past) {
	for _, key := range slices.Sorted(maps.Keys(h.runs)) {
		begun, given := 0, 0
		for _, l := range h.record {
			if begins(l.Effect, key) {
				begun++
			}
			if begins(l.Gave, key) {
				given++
			}
		}
		switch n := h.runs[key]; {
		case n > begun:
			v.again("%s was run %d times: it was begun %d times", key, n, begun)
		case n < given:
			v.missing("%s was run %d times: it has %d outcomes", key, n, given)
		}
	}
}

// begins reports whether the key of an effect that effectID named begins with prefix.
func begins(effect, prefix string) bool {
	_, key, _ := strings.Cut(effect, "/")
	return strings.HasPrefix(key, prefix)
}

// transcript compares part by part, up to the first difference. The results of calls in may may say what stands there;
// it gives how many do.
func (v *verdict) transcript(session string, want, got message.History, may map[string]words) (unknown int) {
	w, g := items(want), items(got)
	for i := range min(len(w), len(g)) {
		told, ok := may[g[i].call]
		says := ok && g[i].says(told)
		if says {
			unknown++
		}
		if w[i] == g[i] || says && w[i].call == g[i].call {
			continue
		}
		v.missing("message %d of the transcript of %s has %s: want %s", g[i].message+1, session, g[i].text, w[i].text)
		return unknown
	}
	if len(w) != len(g) {
		v.missing("the transcript of %s has %d parts: want %d", session, len(g), len(w))
	}
	return unknown
}

// closed compares how a session ended, as its journal says.
func (v *verdict) closed(session string, w, g journal.State) {
	if g.Run != "" || g.Status != w.Status || g.Class != w.Class {
		v.missing("the last run of %s is %q (%s, open: %q): want %q (%s)", session, g.Status, g.Class, g.Run, w.Status, w.Class)
	}
	if g.Spent.Usage != w.Spent.Usage || g.Spent.Steps != w.Spent.Steps {
		v.missing("the session %s took %d steps and %+v: want %d and %+v", session, g.Spent.Steps, g.Spent.Usage, w.Spent.Steps, w.Spent.Usage)
	}
	if n := len(g.Steering); n > 0 {
		v.missing("session %s: %d messages were said and never heard", session, n)
	}
}

// ending looks at the end of the case: what the scenario says, and what whoever ran it was told.
func (v *verdict) ending(want, got *past, s *Scenario) {
	g := got.last.states[mainSession]
	status := string(s.Status)
	if status == "" {
		status = string(agent.StatusCompleted)
	}
	if g.Status != status {
		v.missing("the last run is %q: want %q", g.Status, status)
	}
	var ms []message.Message
	for _, m := range g.Messages.All() {
		ms = append(ms, m)
	}
	if text := engine.Answer(ms); text != s.Text {
		v.missing("the answer is %q: want %q", text, s.Text)
	}
	told := map[string]result{}
	for _, l := range want.record {
		if l.Result != nil {
			told[l.Result.Run] = *l.Result // the last one is the run's end
		}
	}
	for _, l := range got.record {
		if l.Result != nil && l.Result.Status != string(agent.StatusInterrupted) && *l.Result != told[l.Result.Run] {
			v.missing("life %d: the run gave %+v: want %+v", l.Life, *l.Result, told[l.Result.Run])
		}
	}
}

// item is a part of a message, to be compared.
type item struct {
	message    int
	text       string // the message's role and the part, as JSON
	call, tool string // of a result
}

func items(h message.History) (out []item) {
	for i, m := range h.All() {
		for p := range m.Parts() {
			out = append(out, itemOf(i, m.Role(), p))
		}
	}
	return out
}

func itemOf(i int, role message.Role, p message.Part) item {
	it := item{message: i, text: string(message.New(role, p).AppendJSON(nil))}
	if r, ok := p.(message.ToolResult); ok {
		it.call, it.tool = r.Call, r.Name
	}
	return it
}

// says reports whether the item is a call's result in these words.
func (it item) says(told words) bool {
	return it.call != "" && it == itemOf(it.message, message.RoleTool, told(message.ToolCall{ID: it.call, Name: it.tool}))
}
