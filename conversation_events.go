package pawl

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// EventType names what happens in a conversation: one of these six, or the name of a finer event, as event.Event has it ("model.started", "text.delta").
type EventType string

// The events of a turn.
const (
	EventSend       EventType = "send"        // somebody said something: text
	EventResponse   EventType = "response"    // the turn is completed: text
	EventToolCall   EventType = "tool_call"   // a handler is about to be called: id, name, args
	EventToolResult EventType = "tool_result" // it answered: id, name, content, is_error, outcome; or a gate refused the call: the same, without the name
	EventTransition EventType = "transition"  // an event moved the workflow on: from, to, event, redirected (where on_max_visits says, and not where the event leads)
	EventError      EventType = "error"       // the turn failed, or could not begin: error, class, which is one of errdefs, or "canceled"
)

// Event is something that happened in a conversation.
type Event struct {
	Type      EventType
	Timestamp time.Time
	Data      map[string]any // by the names beside the types; of the finer ones text and, of tools' output, stream. It belongs to the reader
	Raw       event.Event    // the same, typed: Raw.Data is one of the types of package journal, nil for a delta. Read it only
}

// Text is what was said, answered or streamed; "" for events without a text.
func (e Event) Text() string { return of[string](e, "text") }

// Tool is the id and the name of the call that an EventToolCall or EventToolResult is about.
func (e Event) Tool() (id, name string) { return of[string](e, "id"), of[string](e, "name") }

// Args are the arguments of an EventToolCall.
func (e Event) Args() map[string]any { return of[map[string]any](e, "args") }

// Error says what went wrong; "" for events but EventError.
func (e Event) Error() string { return of[string](e, "error") }

func of[T any](e Event, name string) T {
	v, _ := e.Data[name].(T)
	return v
}

// Subscription is a reader's place among those who are told of a conversation.
type Subscription struct {
	conversation *Conversation
	*event.Subscription
	types []EventType
}

// Subscribe begins to collect events of the types given, or all. They come in order, while turns go on in Send as well as in Stream, and are read in the reader's own goroutine: none is started. p says what happens when the reader is slow: the zero
// Policy has the turn wait for him, so that he must read or leave; others lose events, and count them (Lost). It ends with ctx, with Close, with the conversation, and when the reader leaves his loop. Deltas of text come only to who asks for all, or for "text.delta".
func (c *Conversation) Subscribe(ctx context.Context, p event.Policy, types ...EventType) *Subscription {
	types = slices.Clone(types)
	return &Subscription{c, c.bus.Subscribe(ctx, func(e event.Event) bool {
		return len(types) == 0 || slices.ContainsFunc(typesOf(e), func(t EventType) bool { return slices.Contains(types, t) })
	}, p), types}
}

// Events is a range over the events as they come; see event.Subscription.Events.
func (s *Subscription) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for raw := range s.Subscription.Events() {
			for _, t := range typesOf(raw) {
				if len(s.types) > 0 && !slices.Contains(s.types, t) {
					continue
				}
				if !yield(eventOf(t, raw)) {
					return
				}
			}
		}
	}
}

// The deltas by which listeners are told how a turn came out: once each, behind all that is on record of it.
const (
	turnAnswered event.Delta = "turn.answered"
	turnFailed   event.Delta = "turn.failed"
)

// tell tells listeners how a turn came out; one that waits for people has not.
func (c *Conversation) tell(ctx context.Context, res *agent.Result, err error) {
	if !c.bus.Listening() {
		return
	}
	e := event.Event{Entry: journal.Entry{Session: c.session, Time: time.Now().UTC()}}
	if res != nil {
		e.Run = res.RunID
	}
	switch {
	case err != nil:
		e.Delta, e.Text, e.Stream = turnFailed, err.Error(), classOf(err)
	case res.Status == agent.StatusCompleted:
		e.Delta, e.Text = turnAnswered, res.Text()
	default:
		return
	}
	c.bus.Publish(context.WithoutCancel(ctx), e) // as the last entries of a run are
}

// classOf is the class of an error, as the program says it too: "canceled" has no class of errdefs, and what has none is internal.
func classOf(err error) string {
	switch class := errdefs.Of(err); {
	case class != nil:
		return class.Error()
	case errdefs.Canceled(err):
		return "canceled"
	}
	return errdefs.Internal.Error()
}

// typesOf says what an event is to a conversation's listener: its own name, and that of one of the six where it is one.
func typesOf(e event.Event) []EventType {
	own := EventType(e.Type())
	switch d := e.Data.(type) {
	case nil:
		switch e.Delta {
		case turnFailed:
			return []EventType{EventError}
		case turnAnswered:
			return []EventType{EventResponse}
		}
	case journal.Said:
		if e.Key == (journal.Key{}) && d.By == "" && !engine.Told(d.Message) {
			return []EventType{EventSend, own}
		}
	case journal.ToolStarted:
		return []EventType{EventToolCall, own}
	case journal.Visited:
		if movedBy(d) != nil {
			return []EventType{EventTransition, own}
		}
	case journal.ToolFinished:
		return []EventType{EventToolResult, own}
	case journal.ToolJudged:
		if d.Refused() {
			return []EventType{EventToolResult, own}
		}
	case journal.Answered:
		if !d.Approved && d.Name != "" {
			return []EventType{EventToolResult, own}
		}
	}
	return []EventType{own}
}

// eventOf reads an event as a listener is told of it.
func eventOf(t EventType, raw event.Event) Event {
	e := Event{Type: t, Timestamp: raw.Time, Raw: raw, Data: map[string]any{}}
	if e.Timestamp.IsZero() { // of a delta
		e.Timestamp = time.Now()
	}
	switch d := raw.Data.(type) {
	case nil:
		if t == EventError {
			e.Data["class"], e.Data["error"] = raw.Stream, raw.Text
			break
		}
		e.Data["text"] = raw.Text
		if raw.Stream != "" {
			e.Data["stream"] = raw.Stream
		}
	case journal.Said:
		e.Data["text"] = d.Message.Text()
	case journal.ToolStarted:
		args := map[string]any{}
		_ = json.Unmarshal([]byte(d.Call.Input), &args) // it was checked
		e.Data["id"], e.Data["name"], e.Data["args"] = d.Call.ID, d.Call.Name, args
	case journal.ToolFinished:
		e.Data["id"], e.Data["name"], e.Data["content"], e.Data["is_error"], e.Data["outcome"] = d.Call, d.Name, d.Content, d.IsError, string(d.Outcome)
	case journal.ToolJudged:
		e.Data["id"] = d.Call
		if !d.Refused() { // what becomes of it is not known yet
			break
		}
		e.Data["name"], e.Data["content"], e.Data["is_error"], e.Data["outcome"] = d.Name, d.Result(message.ToolCall{ID: d.Call}).Content, true, string(journal.OutcomeDenied)
	case journal.Answered:
		e.Data["id"], e.Data["approved"], e.Data["text"] = d.ID, d.Approved, d.Text
		if !d.Approved && d.Name != "" {
			e.Data["name"], e.Data["content"], e.Data["is_error"], e.Data["outcome"] = d.Name, d.Result(message.ToolCall{ID: d.ID}).Content, true, string(journal.OutcomeRejected)
		}
	case journal.Visited:
		maps.Copy(e.Data, movedBy(d))
	case journal.ModelFinished:
		e.Data["text"] = d.Message.Text()
	case journal.ModelFailed:
		e.Data["error"], e.Data["class"] = d.Error, d.Class
	}
	return e
}
