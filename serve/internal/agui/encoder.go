package agui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Encoder tells a run in the events of the protocol. What it gives is in order: whatever begins ends, and nothing of the run stands behind its end. Not safe for concurrent use.
type Encoder struct {
	in    *Input
	run   string // the run's own name: one that goes on with an answer has the client's in its events only
	out   []Event
	End   journal.Data // RunFinished, or Parked; nil: it goes on
	Left  string       // why it is over without that
	usage []Usage

	steps   map[journal.Key]bool // that are open
	replies map[journal.Key]*reply
	calls   map[string]message.ToolCall // without a result yet
	asked   map[string]journal.Asked
	said    []any          // the messages of the run, as they were told
	vars    map[string]any // the board's
	shown   bool           // they were told
	n       int            // of messages that have no key
}

// reply is one of the model's that is being told.
type reply struct {
	attempt         int
	text, reasoning strings.Builder
	open, thinking  bool // its text, its reasoning
}

// NewEncoder tells a run to who asked for it.
func NewEncoder(in *Input, run string) *Encoder {
	return &Encoder{in: in, run: run, steps: map[journal.Key]bool{}, replies: map[journal.Key]*reply{}, calls: map[string]message.ToolCall{}, asked: map[string]journal.Asked{}, vars: map[string]any{}}
}

// Start begins the run for the client.
func (e *Encoder) Start() []Event {
	e.tell(Event{Type: "RUN_STARTED", ThreadID: e.in.ThreadID, RunID: e.in.RunID, ParentRunID: e.in.ParentRunID})
	if e.in.ProtocolVersion != "" { // who says none is from before there were versions
		e.out[len(e.out)-1].ProtocolVersion = Version
	}
	return e.flush()
}

// Known takes an entry that the client was told of before.
func (e *Encoder) Known(entry journal.Entry) {
	e.Tell(event.Event{Entry: entry})
	e.said, e.usage, e.End = nil, nil, nil
}

func (e *Encoder) tell(v Event) { e.out = append(e.out, v) }

func (e *Encoder) flush() []Event {
	out := e.out
	e.out = nil
	return out
}

// Tell gives the events that one of the run is. They are the caller's until the next call.
func (e *Encoder) Tell(v event.Event) []Event {
	if v.Run != e.run {
		return nil
	}
	if v.Data == nil {
		e.delta(v)
		return e.flush()
	}
	e.entry(v.Entry)
	at := int64(0)
	if !v.Time.IsZero() {
		at = v.Time.UnixMilli()
	}
	for i := range e.out {
		e.out[i].Timestamp = at
	}
	return e.flush()
}

func (e *Encoder) entry(v journal.Entry) {
	main := v.Key.Scope == ""
	switch d := v.Data.(type) {
	case journal.RunStarted:
		if d.Attempt > 1 { // a decider had it done again: what was told is void
			e.said, e.replies = nil, map[journal.Key]*reply{}
			e.snapshot()
		}
		clear(e.vars)
		e.set(d.Inputs, nil, len(d.Inputs) > 0)
	case journal.Seeded:
		e.set(d.Board.Set, d.Board.Delete, false)
	case journal.ModelStarted:
		e.step(v.Key)
	case journal.ModelFinished:
		e.usage = plus(e.usage, d.Model, d.Usage)
		if main {
			e.finish(v.Key, d.Message)
		}
		e.stepped(v.Key)
	case journal.Said:
		if v.Key != (journal.Key{}) && d.By != "pawl" {
			e.whole(string(d.Message.Role()), d.Message.Text())
		}
	case journal.Board:
		if main {
			for _, m := range d.Append[engine.MainChannel] {
				if m.Role() == message.RoleAssistant {
					e.whole("assistant", m.Text())
				}
			}
		}
		e.set(d.Set, d.Delete, false)
	case journal.Visited:
		e.set(d.Board.Set, d.Board.Delete, false)
	case journal.ToolJudged:
		if c, ok := e.calls[d.Call]; ok && d.Refused() {
			e.result(d.Result(c))
		}
	case journal.ToolFinished:
		if _, ok := e.calls[d.Call]; ok && !d.Ask {
			e.result(d.Result())
		}
	case journal.Asked:
		e.asked[d.ID] = d
		e.custom("pawl.asked", d)
	case journal.Answered:
		e.custom("pawl.answered", d)
		if q := e.asked[d.ID]; q.Call != nil && !d.Approved {
			if c, ok := e.calls[q.Call.ID]; ok {
				e.result(q.Result(c, d))
			}
		}
	case journal.TaskStarted:
		e.custom("pawl.task", d)
	case journal.Compacted:
		e.usage = plus(e.usage, d.Model, d.Usage)
		e.custom("pawl.compacted", map[string]int{"tokens_before": d.TokensBefore, "tokens_after": d.TokensAfter})
	case journal.RunFinished, journal.Parked:
		e.End = d
		e.close()
	}
}

func (e *Encoder) delta(v event.Event) {
	switch v.Delta {
	case event.RunLeft:
		e.Left = v.Text
		e.close()
	case event.Warning:
		e.custom("pawl.warning", map[string]string{"text": v.Text})
	case event.Waiting:
		e.custom("pawl.waiting", waits(v, map[string]any{"text": v.Text}))
	case event.ToolOutput:
		e.custom("pawl.tool_output", map[string]string{"toolCallId": v.Key.ID, "stream": v.Stream, "text": v.Text})
	case event.Retry:
		e.custom("pawl.retry", waits(v, map[string]any{"step": v.Key.String(), "attempt": v.Attempt, "text": v.Text}))
		if r := e.replies[v.Key]; r != nil {
			e.void(v.Key, r, v.Attempt)
		}
	case event.TextDelta, event.ReasoningDelta:
		if v.Key.Scope != "" || v.Text == "" {
			return
		}
		r := e.reply(v.Key)
		switch {
		case v.Attempt < r.attempt:
			return
		case v.Attempt > r.attempt:
			e.void(v.Key, r, v.Attempt)
		}
		if v.Delta == event.TextDelta {
			e.text(v.Key, r, v.Text)
		} else {
			e.think(v.Key, r, v.Text)
		}
	}
}

func (e *Encoder) reply(key journal.Key) *reply {
	r := e.replies[key]
	if r == nil {
		r = &reply{}
		e.replies[key] = r
	}
	return r
}

// id names what an attempt at an effect says.
func (e *Encoder) id(key journal.Key, attempt int) string {
	id := e.run + "/" + key.String()
	if attempt > 0 {
		id += fmt.Sprintf("/%d", attempt)
	}
	return id
}

func (e *Encoder) text(key journal.Key, r *reply, s string) {
	e.thought(key, r)
	id := e.id(key, r.attempt)
	if !r.open {
		r.open = true
		e.tell(Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: "assistant"})
	}
	r.text.WriteString(s)
	e.tell(Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: id, Delta: s})
}

func (e *Encoder) think(key journal.Key, r *reply, s string) {
	id := e.id(key, r.attempt) + "/reasoning"
	if !r.thinking {
		r.thinking = true
		e.tell(Event{Type: "REASONING_START", MessageID: id})
		e.tell(Event{Type: "REASONING_MESSAGE_START", MessageID: id, Role: "reasoning"})
	}
	r.reasoning.WriteString(s)
	e.tell(Event{Type: "REASONING_MESSAGE_CONTENT", MessageID: id, Delta: s})
}

// thought ends the reasoning of a reply.
func (e *Encoder) thought(key journal.Key, r *reply) {
	if r.thinking {
		r.thinking = false
		id := e.id(key, r.attempt) + "/reasoning"
		e.tell(Event{Type: "REASONING_MESSAGE_END", MessageID: id})
		e.tell(Event{Type: "REASONING_END", MessageID: id})
	}
}

// void takes back what an attempt said: the client's messages are made those that count.
func (e *Encoder) void(key journal.Key, r *reply, attempt int) {
	e.thought(key, r)
	if r.open {
		r.open = false
		e.tell(Event{Type: "TEXT_MESSAGE_END", MessageID: e.id(key, r.attempt)})
	}
	if r.text.Len() > 0 || r.reasoning.Len() > 0 {
		e.snapshot()
	}
	*r = reply{attempt: attempt}
}

// snapshot tells all messages: those that the client sent, and those of the run.
func (e *Encoder) snapshot() {
	var all []any
	for _, m := range e.in.Messages {
		all = append(all, m)
	}
	if all = append(all, e.said...); len(all) > 0 {
		e.tell(Event{Type: "MESSAGES_SNAPSHOT", Messages: all})
	}
}

// finish ends a reply, with what of it was not told yet, and tells its calls.
func (e *Encoder) finish(key journal.Key, m message.Message) {
	r := e.reply(key)
	var thought strings.Builder
	for p := range message.Of[message.Reasoning](m) {
		thought.WriteString(p.Text)
	}
	rest, same := strings.CutPrefix(m.Text(), r.text.String())
	more, alike := strings.CutPrefix(thought.String(), r.reasoning.String())
	if !same {
		e.void(key, r, r.attempt+1)
		rest, more, alike = m.Text(), thought.String(), true
	}
	if alike && more != "" && !r.open {
		e.think(key, r, more)
	}
	if rest != "" {
		e.text(key, r, rest)
	}
	e.thought(key, r)
	id := e.id(key, r.attempt)
	if r.reasoning.Len() > 0 {
		e.said = append(e.said, map[string]any{"id": id + "/reasoning", "role": "reasoning", "content": r.reasoning.String()})
	}
	if r.open {
		e.tell(Event{Type: "TEXT_MESSAGE_END", MessageID: id})
	}
	told := map[string]any{"id": id, "role": "assistant"}
	if m.Text() != "" {
		told["content"] = m.Text()
	}
	var calls []any
	for _, c := range m.ToolCalls() {
		e.calls[c.ID] = c
		e.tell(Event{Type: "TOOL_CALL_START", ToolCallID: c.ID, ToolCallName: c.Name, ParentMessageID: id})
		if c.Input != "" {
			e.tell(Event{Type: "TOOL_CALL_ARGS", ToolCallID: c.ID, Delta: c.Input})
		}
		e.tell(Event{Type: "TOOL_CALL_END", ToolCallID: c.ID})
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]string{"name": c.Name, "arguments": c.Input}})
	}
	if calls != nil {
		told["toolCalls"] = calls
	}
	if len(told) > 2 {
		e.said = append(e.said, told)
	}
	delete(e.replies, key)
}

// whole tells a message that was said at once.
func (e *Encoder) whole(role, text string) {
	if text == "" {
		return
	}
	e.n++
	id := fmt.Sprintf("%s/said/%d", e.run, e.n)
	e.tell(Event{Type: "TEXT_MESSAGE_START", MessageID: id, Role: role})
	e.tell(Event{Type: "TEXT_MESSAGE_CONTENT", MessageID: id, Delta: text})
	e.tell(Event{Type: "TEXT_MESSAGE_END", MessageID: id})
	e.said = append(e.said, map[string]any{"id": id, "role": role, "content": text})
}

func (e *Encoder) result(r message.ToolResult) {
	delete(e.calls, r.Call)
	id := e.run + "/result/" + r.Call
	e.tell(Event{Type: "TOOL_CALL_RESULT", MessageID: id, ToolCallID: r.Call, Role: "tool", Content: &r.Content})
	e.said = append(e.said, map[string]any{"id": id, "role": "tool", "toolCallId": r.Call, "content": r.Content})
}

// set tells how the board's vars changed: all of them the first time, if there is anything to tell.
func (e *Encoder) set(set journal.Vars, gone []string, now bool) {
	var patch []map[string]any
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name == Forwarded {
			continue
		}
		v, err := plain(set[name])
		if err != nil { // what is on record can be written
			continue
		}
		e.vars[name] = v
		patch = append(patch, map[string]any{"op": "add", "path": pointer(name), "value": v})
	}
	for _, name := range gone {
		if _, ok := e.vars[name]; ok {
			delete(e.vars, name)
			patch = append(patch, map[string]any{"op": "remove", "path": pointer(name)})
		}
	}
	switch {
	case len(patch) == 0:
	case now || !e.shown:
		e.shown = true
		e.tell(Event{Type: "STATE_SNAPSHOT", Snapshot: maps.Clone(e.vars)})
	default:
		e.tell(Event{Type: "STATE_DELTA", Delta: patch})
	}
}

// plain is a var as JSON has it on record.
func plain(v any) (out json.RawMessage, err error) {
	b, err := json.Marshal(journal.Vars{"v": v})
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	err = json.Unmarshal(b, &m)
	return m["v"], err
}

func pointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// waits puts how long is waited, in milliseconds, with what a delta says, if it is known.
func waits(v event.Event, said map[string]any) map[string]any {
	if v.Wait > 0 {
		said["waitMs"] = v.Wait.Milliseconds()
	}
	return said
}

func (e *Encoder) custom(name string, v any) {
	e.tell(Event{Type: "CUSTOM", Name: name, Value: v})
}

func (e *Encoder) step(key journal.Key) {
	if !e.steps[key] {
		e.steps[key] = true
		e.tell(Event{Type: "STEP_STARTED", StepName: key.String()})
	}
}

func (e *Encoder) stepped(key journal.Key) {
	if e.steps[key] {
		delete(e.steps, key)
		e.tell(Event{Type: "STEP_FINISHED", StepName: key.String()})
	}
}

// close ends what is open.
func (e *Encoder) close() {
	for _, key := range slices.SortedFunc(maps.Keys(e.replies), compare) {
		r := e.replies[key]
		e.thought(key, r)
		if r.open {
			e.tell(Event{Type: "TEXT_MESSAGE_END", MessageID: e.id(key, r.attempt)})
		}
	}
	clear(e.replies)
	for _, key := range slices.SortedFunc(maps.Keys(e.steps), compare) {
		e.stepped(key)
	}
}

func compare(a, b journal.Key) int { return strings.Compare(a.String(), b.String()) }

// Finish ends the run for the client.
func (e *Encoder) Finish(o Outcome) []Event {
	e.close()
	e.tell(Event{Type: "RUN_FINISHED", ThreadID: e.in.ThreadID, RunID: e.in.RunID, Outcome: &o, Usage: e.usage})
	return e.flush()
}

// Fail ends it with an error.
func (e *Encoder) Fail(class, text string) []Event {
	e.close()
	e.tell(Event{Type: "RUN_ERROR", Message: text, Code: class, Usage: e.usage})
	return e.flush()
}
