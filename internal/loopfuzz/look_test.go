package loopfuzz

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// record is what is durable now, by attempts.
type record []journal.Entry

func (w *world) record() (all record) {
	for e, err := range w.disk.Read(context.Background(), session, 0) {
		if err != nil {
			w.breaks("the journal can't be read: %v", err)
			break
		}
		all = append(all, e)
	}
	return all
}

// attempt is the part of the record since the last attempt began.
func (r record) attempt() record {
	for i := len(r) - 1; i >= 0; i-- {
		if _, ok := r[i].Data.(journal.RunStarted); ok {
			return r[i:]
		}
	}
	return nil
}

// find gives the last entry of a type that match wants.
func find[D journal.Data](r record, match func(D) bool) (found D, at int) {
	at = -1
	for i, e := range r {
		if d, ok := e.Data.(D); ok && match(d) {
			found, at = d, i
		}
	}
	return found, at
}

// approved reports whether a person said yes to a call. A question that the call's tool asks may have the same ID.
func (r record) approved(call string) bool {
	return slices.ContainsFunc(r, func(e journal.Entry) bool {
		d, ok := e.Data.(journal.Answered)
		return ok && e.Key.Op == "ask" && d.ID == call && d.Approved
	})
}

// begins looks at the record as a tool begins: invariants 1, 2, 5 and 6.
func (w *world) begins(ctx context.Context, x *ran, in spec) {
	all := w.record()
	now := all.attempt()
	l := lifeOf(ctx)
	w.mu.Lock()
	x.life, x.attempt = l, attemptOf(now)
	before := slices.Clone(w.runs)
	w.runs = append(w.runs, x)
	over := w.over
	w.mu.Unlock()
	breaks := func(format string, args ...any) {
		w.breaks("%s "+format, append([]any{x.name + " " + x.id}, args...)...)
	}

	if over {
		breaks("runs in a replay, or after its run")
	}
	if x.name == "hidden" {
		breaks("runs although the agent may not use it")
	}
	if ctx.Err() != nil && !w.whole.uses("background") && x.name != "look" {
		breaks("begins although its run is cancelled")
	}
	switch in.Hook {
	case "deny", "panic", "error", "end", "rewrite", "badrewrite":
		breaks("runs although the hook said: %s", in.Hook)
	}
	_, asked := find(now, func(d journal.ModelFinished) bool {
		return slices.ContainsFunc(d.Message.ToolCalls(), func(c message.ToolCall) bool { return c.ID == x.id })
	})
	v, judged := find(now, func(d journal.ToolJudged) bool { return d.Call == x.id })
	_, started := find(now, func(d journal.ToolStarted) bool { return d.Call.ID == x.id })
	if asked < 0 || judged < asked || started < judged {
		breaks("runs, and on record are: the reply that asks for it at %d, the verdict at %d, its start at %d", asked, judged, started)
	}
	if needs := v.Verdict == "ask" || in.Hook == "ask" || x.name == "sign"; needs && !now.approved(x.id) {
		breaks("runs although nobody approved it")
	}
	if v.Verdict != "allow" && v.Verdict != "ask" {
		breaks("runs although the verdict is %s", v.Verdict)
	}
	done, finished := find(now, func(d journal.ToolFinished) bool { return d.Call == x.id })
	switch {
	case x.behind && done.Background == nil:
		breaks("goes on in the background, and its result does not say so")
	case !x.behind && finished >= 0 && !done.Ask:
		breaks("runs although its result is on record: %+v", done)
	case !x.behind && finished >= 0:
		if a, at := find(now, func(d journal.Answered) bool { return strings.HasPrefix(d.ID, x.id+"/again-") }); at < finished || !a.Approved {
			breaks("runs again although nobody said so")
		}
	}
	times, here := 0, 0
	for _, o := range before {
		if o.key == x.key && o.behind == x.behind {
			if times++; o.life == l {
				here++
			}
		}
	}
	if here > 0 {
		breaks("runs %d times in one life", here+1)
	}
	if times > 0 && !x.repeatable && w.whole.Unknown != engine.UnknownRetry && finished < 0 {
		breaks("runs %d times", times+1)
	}
}

func attemptOf(now record) string {
	if len(now) == 0 {
		return ""
	}
	d, _ := now[0].Data.(journal.RunStarted)
	b, _ := json.Marshal([]any{now[0].Run, d.Attempt})
	return string(b)
}

// asks looks at the record, and at what the model is asked, as it is called: invariants 2 and 3.
func (w *world) asks(ctx context.Context, req model.Request) (replied func()) {
	replied = func() {}
	all := w.record()
	now := all.attempt()
	l := lifeOf(ctx)
	w.mu.Lock()
	over, runs := w.over, slices.Clone(w.runs)
	w.mu.Unlock()
	if over {
		w.breaks("the model is called in a replay, or after its run")
	}
	if ctx.Err() != nil && !w.whole.uses("background") {
		w.breaks("the model is called although the run is cancelled")
	}
	if l.is(func(l *life) bool { return l.failed }) && !w.whole.uses("background") {
		w.breaks("the model is called although the journal failed")
	}
	if len(now) == 0 {
		w.breaks("the model is called, and no run is on record")
		return replied
	}
	if why := invalid(req.Messages); why != "" {
		w.breaks("the model gets an invalid transcript: %s", why)
	}
	heard := texts(req.Messages)
	if _, at := find(all, func(d journal.Said) bool { return d.Message.Text() == w.prompt }); at < 0 || !slices.Contains(heard, "user: "+w.prompt) {
		w.breaks("the model is called: %q is on record at %d, and it hears %q", w.prompt, at, heard)
	}
	for _, e := range all {
		if d, ok := e.Data.(journal.Said); ok && e.Run == now[0].Run && strings.HasPrefix(d.Message.Text(), "prompt") && !slices.Contains(heard, "user: "+d.Message.Text()) {
			w.breaks("%q is on record, and the model does not hear it: %q", d.Message.Text(), heard)
		}
	}
	for _, h := range heard {
		text, is := strings.CutPrefix(h, "user: ")
		if is = is && (strings.HasPrefix(text, "prompt") || strings.HasPrefix(text, "steering")); !is {
			continue
		}
		if _, at := find(all, func(d journal.Said) bool { return d.Message.Text() == text }); at < 0 {
			w.breaks("the model hears %q before it is on record", text)
		}
	}
	for _, x := range runs {
		w.mu.Lock()
		open := x.life == l && !x.behind && x.attempt == attemptOf(now)
		ended, left := x.ended, x.late || x.parked
		w.mu.Unlock()
		if !open || left {
			continue
		}
		if _, at := find(now, func(d journal.ToolFinished) bool { return d.Call == x.id }); at < 0 || !ended {
			w.breaks("the model is called, and %s %s has no result on record", x.name, x.id)
		}
	}
	for _, e := range now {
		if d, ok := e.Data.(journal.ToolFinished); ok && !d.Ask && !slices.ContainsFunc(heard, func(h string) bool {
			return strings.HasPrefix(h, "result "+d.Call+": ") && strings.Contains(h, d.Content)
		}) {
			w.breaks("the result of %s is on record, and the model does not hear it: %q", d.Call, heard)
		}
	}
	key := req.CacheKey
	if w.whole.steers() { // what was said to a run that ended before it was heard, or whose reply was lost, stands behind the next prompt
		key += w.prompt
	}
	w.mu.Lock()
	last := w.asked[key]
	w.mu.Unlock()
	if n := min(len(last), len(heard)); req.CacheKey != "" && !slices.Equal(last[:n], heard[:n]) {
		w.breaks("what the conversation began with moved: %q, then %q", last, heard)
	}
	return func() { // a model that gave no reply has nothing in its cache
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked[key] = heard
	}
}

// texts shows a transcript, a line for each part.
func texts(h message.History) (out []string) {
	for _, m := range h.All() {
		for p := range m.Parts() {
			switch p := p.(type) {
			case message.Text:
				out = append(out, string(m.Role())+": "+p.Text)
			case message.ToolCall:
				out = append(out, "call "+p.ID+": "+p.Name+" "+p.Input)
			case message.ToolResult:
				out = append(out, "result "+p.Call+": "+p.Content)
			}
		}
	}
	return out
}

// invalid says what a provider would refuse; it knows nothing of message.Repair.
func invalid(h message.History) string {
	ids := map[string]bool{}
	var open []message.ToolCall
	for i, m := range h.All() {
		switch {
		case m.Len() == 0 || m.Role() == message.RoleAssistant && m.Blank():
			return "a message is empty: " + strings.Join(texts(h), "; ")
		case i == 0 && m.Role() != message.RoleUser:
			return "it begins with " + string(m.Role())
		case len(open) > 0 && m.Role() != message.RoleTool:
			return "calls have no results: " + strings.Join(texts(h), "; ")
		case len(open) == 0 && m.Role() == message.RoleTool:
			return "results have no calls: " + strings.Join(texts(h), "; ")
		}
		if m.Role() == message.RoleTool {
			var of []string
			for p := range m.Parts() {
				if r, ok := p.(message.ToolResult); ok {
					of = append(of, r.Call)
				}
			}
			if !slices.EqualFunc(of, open, func(id string, c message.ToolCall) bool { return id == c.ID }) {
				return "results are not those of the calls: " + strings.Join(texts(h), "; ")
			}
		}
		open = m.ToolCalls()
		for _, c := range open {
			if c.ID == "" || ids[c.ID] {
				return "a call's id is empty, or comes twice: " + c.ID
			}
			ids[c.ID] = true
		}
	}
	if len(open) > 0 {
		return "the last calls have no results: " + strings.Join(texts(h), "; ")
	}
	return ""
}

// overdue reports how long a cancelled run went on.
func (l *life) overdue() (after time.Duration, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.canceled.IsZero() {
		return 0, false
	}
	after = time.Since(l.canceled)
	return after, after > 5*time.Second // what a tool has that ignores its context
}

// ends keeps what was to happen later from happening to the next life.
func (l *life) ends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.timers {
		t.Stop()
	}
}
