package crashtest

import (
	"fmt"

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
	v.appends(got)
	v.starts(got)
	v.failures(got, m.fault)
	open := v.lives(got)
	want := h.uses()
	unknown := map[string]bool{} // calls of which the model may be told so
	for id := range open {
		unknown[id] = len(want[id]) == 0 || !want[id][0].Repeatable
	}
	v.uses(want, got.uses(), open, unknown)
	if n, most := v.transcript(h.last.state.Messages, got.last.state.Messages, unknown), got.deaths*max(1, m.s.Writers); n > most {
		v.missing("the outcomes of %d calls are unknown: at most %d can be", n, most)
	}
	v.ending(h, got, m.s)
	return v
}

// uses are the side effects by call.
func (h *past) uses() map[string][]use {
	out := map[string][]use{}
	for _, l := range h.record {
		if l.Use != nil {
			out[l.Use.Call] = append(out[l.Use.Call], *l.Use)
		}
	}
	return out
}

// lives looks at what each process found: is all there that was reported, is the transcript valid. It gives the calls that had begun and
// not ended when a process began, and how often.
func (v *verdict) lives(h *past) (open map[string]int) {
	open = map[string]int{}
	seq := int64(0) // reported so far
	see := func(f *found, when string) {
		if f.Seq < seq {
			v.missing("%s: the journal ends at entry %d: %d was reported", when, f.Seq, seq)
		}
		if f.Invalid {
			v.missing("%s: the transcript is not valid", when)
		}
		for _, id := range f.Open {
			open[id]++
		}
	}
	for _, l := range h.record {
		seq = max(seq, l.Seq)
		if l.Found != nil {
			see(l.Found, fmt.Sprintf("life %d", l.Life))
		}
	}
	see(h.last, "the end")
	if ids := h.last.Open; len(ids) > 0 {
		v.missing("%v never came to an outcome", ids)
	}
	return open
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

// uses judges side effects: each happened once, and with the key that it had undisturbed. A repeatable one may come once more for each kill
// while it was under way, one that is unknown may be missing.
func (v *verdict) uses(want, got map[string][]use, open map[string]int, unknown map[string]bool) {
	for id, g := range got {
		w := want[id]
		if len(w) == 0 {
			v.again("%s %s took effect: undisturbed it does not", g[0].Tool, id)
			continue
		}
		for _, u := range g {
			if u.Key != w[0].Key {
				v.again("%s %s took effect with the key %s: want %s", u.Tool, id, u.Key, w[0].Key)
			}
		}
		most := 1
		if w[0].Repeatable {
			most += open[id]
		}
		if len(g) > most {
			v.again("%s %s took effect %d times: at most %d is right", w[0].Tool, id, len(g), most)
		}
	}
	for id, w := range want {
		if len(got[id]) == 0 && !unknown[id] {
			v.missing("%s %s never took effect", w[0].Tool, id)
		}
	}
}

// transcript compares part by part, up to the first difference. The results of calls in may may say that their outcome is unknown;
// it gives how many do.
func (v *verdict) transcript(want, got message.History, may map[string]bool) (unknown int) {
	w, g := items(want), items(got)
	for i := range min(len(w), len(g)) {
		says := g[i].unknown()
		if says {
			unknown++
		}
		if w[i] == g[i] || says && may[g[i].call] && w[i].call == g[i].call {
			continue
		}
		v.missing("message %d of the transcript has %s: want %s", g[i].message+1, g[i].text, w[i].text)
		return unknown
	}
	if len(w) != len(g) {
		v.missing("the transcript has %d parts: want %d", len(g), len(w))
	}
	return unknown
}

// ending compares how the session ended, as its journal says and as whoever ran it was told.
func (v *verdict) ending(want, got *past, s *Scenario) {
	w, g := want.last.state, got.last.state
	status := string(s.Status)
	if status == "" {
		status = string(agent.StatusCompleted)
	}
	if g.Run != "" || g.Status != status || g.Class != w.Class {
		v.missing("the last run is %q (%s, open: %q): want %q (%s)", g.Status, g.Class, g.Run, status, w.Class)
	}
	if g.Spent.Usage != w.Spent.Usage || g.Spent.Steps != w.Spent.Steps {
		v.missing("the session took %d steps and %+v: want %d and %+v", g.Spent.Steps, g.Spent.Usage, w.Spent.Steps, w.Spent.Usage)
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

// unknown reports whether the item is the result of a call that says that its outcome is unknown.
func (it item) unknown() bool {
	return it.call != "" && it == itemOf(it.message, message.RoleTool, journal.Unknown(message.ToolCall{ID: it.call, Name: it.tool}))
}
