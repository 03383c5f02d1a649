package main

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// had is a session that was had, with a real client of a provider and without a fault.
func had(t *testing.T) *past {
	t.Helper()
	dir := t.TempDir()
	fx, err := newEffects(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fx.file.Close() })
	w := world{Project: dir}
	p := &provider{faults: &tally{}, refuse: func(why string) { t.Error(why) }}
	for to, h := range map[*string]http.Handler{&w.Model: p.handler(), &w.Effects: fx} {
		url, stop, err := listen(h)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		*to = url
	}
	store := journal.Memory()
	rt, err := newRuntime(t.Context(), w, onSQLite, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	all := &past{session: "s1"}
	for i, text := range []string{"soak s1.0: note+pay slow bash", "soak s1.1: task"} {
		q, ok := parse(text)
		if !ok || q.String() != text {
			t.Fatalf("parse %q: %q, %v", text, q, ok)
		}
		s := &said{prompt: q, run: []string{"s1-0", "s1-1"}[i], accepted: true}
		all.prompts = append(all.prompts, s)
		req := pawl.Request{SessionID: "s1"}
		req.Message, req.RunID = message.User(text), s.run
		if _, err := rt.Run(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if all.journals, err = journals(context.Background(), store, "s1"); err != nil {
		t.Fatal(err)
	}
	if all.effects, err = fx.of("s1"); err != nil {
		t.Fatal(err)
	}
	return all
}

func (p *past) clone() *past {
	q := &past{session: p.session, journals: maps.Clone(p.journals), effects: maps.Clone(p.effects)}
	for _, s := range p.prompts {
		again := *s
		q.prompts = append(q.prompts, &again)
	}
	return q
}

// change has each entry of the session's own journal replaced; nil drops it and numbers the ones behind it anew.
func (p *past) change(f func(journal.Entry) *journal.Entry) {
	var out []journal.Entry
	for _, e := range p.journals[p.session] {
		if to := f(e); to != nil {
			to.Seq = int64(len(out)) + 1
			out = append(out, *to)
		}
	}
	p.journals[p.session] = out
}

func drop[D journal.Data](match func(D) bool) func(journal.Entry) *journal.Entry {
	return func(e journal.Entry) *journal.Entry {
		if d, ok := e.Data.(D); ok && match(d) {
			return nil
		}
		return &e
	}
}

func TestWhatIsLostAndWhatIsDoneTwiceIsFound(t *testing.T) {
	good := had(t)
	if problems, n := good.check(); len(problems) > 0 || n.effects != 6 {
		t.Fatalf("%d effects: %q", n.effects, problems)
	}
	if len(good.journals) != 2 {
		t.Fatalf("%d journals: want one of the session and one of its task", len(good.journals))
	}
	const pay, note, bash, below = "s1.0.0.1", "s1.0.0.0", "s1.0.2.0", "s1.1.0.0.1.0"
	finished := func(of string) func(journal.Entry) *journal.Entry {
		return drop(func(d journal.ToolFinished) bool { return strings.HasSuffix(d.Content, of) })
	}
	for name, c := range map[string]struct {
		spoil func(p *past)
		want  string
	}{
		"an effect is lost":            {func(p *past) { delete(p.effects, pay) }, "is done, as the journal says, and did not happen"},
		"a command's is":               {func(p *past) { delete(p.effects, bash) }, "is done, as the journal says, and did not happen"},
		"a task's is":                  {func(p *past) { delete(p.effects, below) }, "is done, as the journal says, and did not happen"},
		"an effect is had twice":       {func(p *past) { p.effects[pay] = append(slices.Clone(p.effects[pay]), p.effects[pay]...) }, "happened 2 times, and may once"},
		"a command's is had twice":     {func(p *past) { p.effects[bash] = append(slices.Clone(p.effects[bash]), p.effects[bash]...) }, "happened 2 times, and may once"},
		"a task's is had twice":        {func(p *past) { p.effects[below] = append(slices.Clone(p.effects[below]), p.effects[below]...) }, "happened 2 times, and may once"},
		"one that may be, in one life": {func(p *past) { p.effects[note] = append(slices.Clone(p.effects[note]), p.effects[note]...) }, "happened 2 times in 1 lives"},
		"one that may be, with another key": {func(p *past) {
			p.effects[note] = append(slices.Clone(p.effects[note]), effect{What: note, Tool: "note", Key: "another"})
			p.journals["s1"] = append(slices.Clone(p.journals["s1"]), journal.Entry{Seq: int64(len(p.journals["s1"])) + 1, Session: "s1", Run: "s1-1", Data: journal.Resumed{}})
		}, "happened with 2 keys"},
		"one nobody began":                 {func(p *past) { p.effects["s1.7.0.0"] = []effect{{What: "s1.7.0.0", Tool: "pay"}} }, "no journal says that they began"},
		"one began before it was put down": {func(p *past) { p.change(drop(func(d journal.ToolStarted) bool { return whatOf(d.Call.Input) == pay })) }, "no journal says that they began"},
		"a result is lost":                 {func(p *past) { p.change(finished(pay)) }, pay + ": pay has no result, and the run is completed"},
		"a prompt is lost": {func(p *past) {
			p.change(func(e journal.Entry) *journal.Entry {
				if e.Run == "s1-1" {
					return nil
				}
				return &e
			})
		}, "the prompt was accepted, and is not on record"},
		"a run never ends": {func(p *past) { p.change(drop(func(journal.RunFinished) bool { return true })) }, "never ended"},
		"an answer is another's": {func(p *past) {
			p.change(func(e journal.Entry) *journal.Entry {
				if d, ok := e.Data.(journal.ModelFinished); ok && d.Message.Text() == "done s1.1" {
					d.Message = message.Assistant("done s2.1")
					e.Data = d
				}
				return &e
			})
		}, `the answer is "done s2.1"`},
		"a run is canceled by nobody": {func(p *past) { p.change(ends("canceled", "")) }, "nobody wanted that"},
		"a run fails for no reason":   {func(p *past) { p.change(ends("failed", "internal")) }, "failed: internal"},
		"a task's journal is lost": {func(p *past) {
			maps.DeleteFunc(p.journals, func(name string, _ []journal.Entry) bool { return name != "s1" })
		}, "is on record, and has no journal"},
		"a result says that nobody knows, and nobody died": {func(p *past) {
			p.change(func(e journal.Entry) *journal.Entry {
				if d, ok := e.Data.(journal.ToolFinished); ok && strings.HasSuffix(d.Content, pay) {
					d.Outcome = journal.OutcomeUnknown
					e.Data = d
				}
				return &e
			})
		}, "unknown, and nobody died"},
		"an entry is lost": {func(p *past) { p.journals["s1"] = slices.Delete(slices.Clone(p.journals["s1"]), 3, 4) }, "stands where 4 should be"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good.clone()
			c.spoil(p)
			problems, _ := p.check()
			if !slices.ContainsFunc(problems, func(got string) bool { return strings.Contains(got, c.want) }) {
				t.Errorf("found %q: want one with %q", problems, c.want)
			}
		})
	}
}

func ends(status, class string) func(journal.Entry) *journal.Entry {
	return func(e journal.Entry) *journal.Entry {
		if d, ok := e.Data.(journal.RunFinished); ok {
			d.Status, d.Class = status, class
			e.Data = d
		}
		return &e
	}
}

func TestATranscriptThatNoProviderTakesIsFound(t *testing.T) {
	call, result := turn{assistant: true, calls: []string{"a", "b"}}, turn{results: []string{"a", "b"}}
	for name, c := range map[string]struct {
		turns []turn
		ok    bool
	}{
		"all is well":                 {[]turn{{texts: []string{"hello"}}, call, result, {assistant: true}}, true},
		"a result for each message":   {[]turn{call, {results: []string{"a"}}, {results: []string{"b"}}, {assistant: true}}, true},
		"a result is missing":         {[]turn{call, {results: []string{"a"}}, {assistant: true}}, false},
		"all are":                     {[]turn{call, {texts: []string{"hello"}}}, false},
		"all are, at the end":         {[]turn{call}, false},
		"a result comes twice":        {[]turn{call, {results: []string{"a", "a", "b"}}}, false},
		"a result of nothing":         {[]turn{result}, false},
		"words stand before a result": {[]turn{call, {texts: []string{"hello"}}, result}, false},
	} {
		if why := unanswered(c.turns); (why == "") != c.ok {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestEventsAreReadWholeAndKeepTheirPlace(t *testing.T) {
	const text = ": a comment\n\nevent: error\ndata: {\"class\":\"x\"}\n\nid: 7\ndata: {\"seq\":7,\n" + "data: \"kind\":\"said\"}\n\nid: 8\ndata: {\"seq\":8}\n\nid: 9\ndata: {\"se"
	var ids []string
	var seqs []int64
	if err := readEvents(strings.NewReader(text), "6", func(id string, e event) bool {
		ids, seqs = append(ids, id), append(seqs, e.Seq)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ids, []string{"6", "7", "8"}) || !slices.Equal(seqs, []int64{0, 7, 8}) {
		t.Error(ids, seqs)
	}
	n := 0
	_ = readEvents(strings.NewReader(text), "", func(string, event) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d events were read: want 2", n)
	}
}
