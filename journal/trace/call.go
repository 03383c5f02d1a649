package trace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/journal"
)

// call is what is on record of a tool call.
type call struct {
	id, name, input, scope string
	judged                 []journal.ToolJudged // again when a person edited it
	questions              []question
	started                bool
	ran                    string // the input that it ran with
	finished               *journal.ToolFinished
	seq                    int64         // of its last entry
	end                    time.Duration // on the run's clock, of its result
	tasks                  []string      // sessions
}

type question struct {
	id, prompt string
	answer     *journal.Answered
}

func (s *scribe) add(c *call) {
	s.calls, s.byID[c.id] = append(s.calls, c), c
}

// callEntry keeps an entry that belongs to a call which is not written yet.
func (s *scribe) callEntry(e journal.Entry) (took bool, err error) {
	var c *call
	switch d := e.Data.(type) {
	case journal.ToolJudged:
		if c = s.byID[d.Call]; c != nil {
			c.judged = append(c.judged, d)
		}
	case journal.Asked:
		id, _, _ := strings.Cut(d.ID, "/") // a tool's second question has its number behind the call
		if d.Call != nil {
			id = d.Call.ID
		}
		if c = s.byID[id]; c == nil {
			s.note(e, "mid", "asked "+d.ID, d.Prompt)
			return true, nil
		}
		c.questions = append(c.questions, question{id: d.ID, prompt: d.Prompt})
	case journal.Answered:
		id, _, _ := strings.Cut(d.ID, "/")
		if c = s.byID[id]; c == nil {
			s.note(e, "", d.ID+": "+verdict(d), "")
			return true, nil
		}
		for i := range c.questions {
			if q := &c.questions[i]; q.id == d.ID && q.answer == nil {
				q.answer = &d
			}
		}
	case journal.ToolStarted:
		if c = s.byID[d.Call.ID]; c != nil {
			c.started, c.ran = true, d.Call.Input
		}
	case journal.TaskStarted:
		if c = s.byID[d.Call]; c != nil {
			c.tasks = append(c.tasks, d.Session)
		}
	case journal.ToolFinished:
		if c = s.byID[d.Call]; c == nil { // an engine of its own, or an entry that came late
			c = &call{id: d.Call, name: d.Name, scope: e.Key.Scope}
			s.add(c)
		}
		c.finished, c.end = &d, s.now
	}
	if c != nil {
		c.seq = e.Seq
	}
	return c != nil, nil
}

// flush writes the calls that are over.
func (s *scribe) flush(over func(*call) bool) error {
	kept := s.calls[:0]
	for i, c := range s.calls {
		if !over(c) {
			kept = append(kept, c)
			continue
		}
		delete(s.byID, c.id)
		if err := s.call(c); err != nil {
			s.calls = append(kept, s.calls[i+1:]...)
			return err
		}
	}
	clear(s.calls[len(kept):])
	s.calls = kept
	return nil
}

// status is how a call ended, in a word.
func (c *call) status() string {
	switch {
	case c.finished != nil:
		return cmp.Or(string(c.finished.Outcome), "ok")
	case len(c.judged) > 0 && c.judged[len(c.judged)-1].Verdict == "deny":
		return "denied"
	case len(c.judged) > 0 && c.judged[len(c.judged)-1].Refused():
		return "invalid"
	}
	for _, q := range c.questions {
		switch {
		case q.answer == nil:
			return "waiting"
		case !q.answer.Approved:
			return "rejected"
		}
	}
	if c.started {
		return "unknown"
	}
	return "not run"
}

// settled reports whether nothing more is to be said of a call.
func (c *call) settled() bool {
	s := c.status()
	return c.finished != nil || s == "denied" || s == "invalid" || s == "rejected"
}

// call writes a call.
func (s *scribe) call(c *call) error {
	status := c.status()
	changed := c.finished != nil && isDiff(c.finished.Content)
	s.raw("<details class=\"call ", colour(status), "\"")
	if changed || status != "ok" || len(c.tasks) > 0 {
		s.raw(" open")
	}
	s.raw("><summary><b>")
	s.text(c.name)
	s.raw("</b> <code>")
	s.text(oneLine(gist(c.input), 90))
	s.raw("</code>")
	s.badge(status)
	if c.finished != nil {
		s.element("span", "chip", span(time.Duration(c.finished.Millis)*time.Millisecond))
	}
	if c.seq > 0 {
		s.raw("<span class=\"at\">")
		s.text(oneLine(c.id, 40))
		fmt.Fprintf(s.w, " · #%d</span>", c.seq)
	}
	if c.finished != nil {
		s.bar(s.run, "tool", c.end, time.Duration(c.finished.Millis)*time.Millisecond)
	}
	s.raw("</summary>")
	s.input(c, changed)
	s.decided(c)
	if f := c.finished; f != nil {
		s.result(f)
	} else if status == "unknown" {
		s.element("p", "why", "It began, and its end is not on record.")
	}
	for _, id := range c.tasks {
		if err := s.task(journal.TaskStarted{Call: c.id, Session: id}); err != nil {
			return err
		}
	}
	s.raw("</details>")
	return nil
}

func (s *scribe) result(f *journal.ToolFinished) {
	if f.Content != "" {
		s.raw("<h4>Result</h4>")
		s.output(f.Content)
	}
	for _, x := range f.Files {
		s.file(x)
	}
	if f.Warning != "" {
		s.element("p", "why", f.Warning)
	}
	if f.Background != nil {
		s.element("p", "dim", "It goes on in the background; what it gives comes as a message.")
	}
	if f.Ends != "" {
		s.element("p", "why", "A hook ended the run: "+f.Ends)
	}
}

// decided says who let the call run, or didn't.
func (s *scribe) decided(c *call) {
	for _, j := range c.judged {
		if j.Reason != "" {
			s.why(map[string]string{"allow": "Allowed", "ask": "Asked about", "deny": "Denied", "invalid": "Invalid"}[j.Verdict], j.Reason)
		}
		if j.Input != "" && !c.started {
			s.why("A hook gave it another input", j.Input)
		}
		if j.Context != "" {
			s.why("A hook told the model", j.Context)
		}
		if j.Ends != "" {
			s.why("A hook ended the run", j.Ends)
		}
	}
	for _, q := range c.questions {
		if q.prompt != "" {
			s.why("Question", q.prompt)
		}
		if a := q.answer; a != nil {
			s.why("Answer", verdict(*a))
		} else {
			s.why("Answer", "none yet")
		}
	}
}

func (s *scribe) why(what, text string) {
	s.raw("<p class=\"why\"><b>", what, "</b> ")
	s.text(text)
	s.raw("</p>")
}

// verdict is an answer in words.
func verdict(a journal.Answered) string {
	by, text := suffix(" by ", a.By), suffix(": ", a.Text)
	switch {
	case a.By == journal.ByDeadline:
		return "none in time"
	case a.By == journal.ByNobody:
		return "none: nobody is asked" + text
	case !a.Approved:
		return "rejected" + by + text
	case a.Text != "":
		return "answered" + by + text
	case a.Input != "":
		by += ", with another input"
	case a.Session:
		by += ", for the session" + suffix(": ", a.Rule)
	}
	return "approved" + by
}

func suffix(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// input writes what a call was given, a line or a block for each member. changed: its result shows what it changed.
func (s *scribe) input(c *call, changed bool) {
	fields, ok := members(c.input)
	old, replaced := find(fields, "old_string")
	if now, both := find(fields, "new_string"); replaced && both && !changed {
		fields = slices.DeleteFunc(fields, func(f field) bool { return f.name == "old_string" || f.name == "new_string" })
		s.fields(fields)
		s.lines(asDiff(old, now))
	} else if changed {
		s.raw("<details class=\"fold\"><summary>Input</summary>")
		s.fields(fields)
		s.raw("</details>")
	} else {
		s.fields(fields)
	}
	if !ok && c.input != "" {
		s.element("pre", "", c.input)
	}
	if c.ran != "" && c.ran != c.input {
		s.raw("<p class=\"why\"><b>Ran with</b></p>")
		s.element("pre", "", c.ran)
	}
}

type field struct{ name, value string }

func (s *scribe) fields(fields []field) {
	if len(fields) == 0 {
		return
	}
	s.raw("<dl class=\"input\">")
	for _, f := range fields {
		s.element("dt", "", f.name)
		s.element("dd", "", f.value)
	}
	s.raw("</dl>")
}

// members are those of a JSON object, in its order; strings as they are, anything else as JSON.
func members(input string) (out []field, ok bool) {
	if !json.Valid([]byte(input)) { // of what has no end, or more behind it, the members alone would hide a part
		return nil, false
	}
	dec := json.NewDecoder(strings.NewReader(input))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		text := string(value)
		if bytes.HasPrefix(value, []byte(`"`)) {
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, false
			}
		}
		out = append(out, field{fmt.Sprint(name), text})
	}
	return out, true
}

func find(fields []field, name string) (string, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return "", false
	}
	return fields[i].value, true
}

// gist is what a call is about, in a line.
func gist(input string) string {
	fields, _ := members(input)
	for _, name := range []string{"command", "file_path", "pattern", "url", "query", "prompt", "path"} {
		if v, ok := find(fields, name); ok {
			return v
		}
	}
	if len(fields) > 0 {
		return fields[0].value
	}
	return input
}

// task writes the session of a task where it was given.
func (s *scribe) task(d journal.TaskStarted) error {
	s.raw("<div class=\"task\"><h4>Task in session ")
	s.text(d.Session)
	s.raw("</h4>")
	defer s.raw("</div>")
	switch {
	case s.shown[d.Session]:
		s.element("p", "dim", "It stands further up.")
		return nil
	case s.ends[d.Session] == 0:
		s.element("p", "dim", "It is not in the journal.")
		return nil
	}
	return s.page.session(d.Session, s.depth+1)
}
