package engine

import (
	"context"
	"strconv"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Effect is something to be done, as data: it crosses to a worker as JSON. Those of the loop are in this package; an engine has its own beside them. Its outcome is what its
// Performer gives: for what an engine does by itself a journal.Board, the difference that it makes, or an entry of the journal that says what it is. Without an error,
// nil is no outcome: the effect would be done again.
type Effect interface {
	Key() journal.Key     // from the run's own progress, never from chance; no other effect of the run has it
	Intent() journal.Data // made durable before it begins; nil: nothing need be known of it until it is done
	Lost() journal.Data   // the outcome when it was begun and its end is not on record; nil: do it again
	Concurrent() bool     // may run beside its neighbours that may too; then its outcome does not change the main channel
}

// Performer does one effect, here and now. An engine is one: locally Steps calls it, on a workflow engine an activity does.
// Everything that is not deterministic happens here: models, tools, hooks, people, budgets, clocks. To limit or fault
// every effect of a run, wrap it; to trace it, see [Tracer].
//
// With an error the outcome may still say what there was by then: it is recorded all the same. An error without an outcome leaves the effect's Lost;
// if that is nil, nothing, or, if the effect is a Failing one, a note.
type Performer interface {
	Perform(ctx context.Context, run Run, host Host, e Effect) (journal.Data, error)
}

// Failing is an effect whose failure is noted in the journal. The note is no outcome: a resumed run tries again.
type Failing interface{ Failed(err error) journal.Data }

// once is for effects that may simply be done again when their end is not on record.
type once struct{}

// Intent is none.
func (once) Intent() journal.Data { return nil }

// Lost asks to be done again.
func (once) Lost() journal.Data { return nil }

// Concurrent is false: a barrier.
func (once) Concurrent() bool { return false }

// Prepare runs the PreGeneration hooks. Outcome: journal.Prepared.
type Prepare struct {
	once
	System   string
	Messages message.History `json:"-"` // here and below: in this process by reference; a worker takes it from the journal
}

// Key is "prepare".
func (Prepare) Key() journal.Key { return journal.Key{Op: "prepare"} }

// Generate calls the model. Outcome: journal.ModelFinished.
type Generate struct {
	once
	Step     int
	Model    string
	System   string
	Messages message.History `json:"-"`
}

// Key is "model/STEP".
func (g Generate) Key() journal.Key { return journal.Key{Op: "model", ID: strconv.Itoa(g.Step)} }

// Intent tells listeners that the model works.
func (g Generate) Intent() journal.Data { return journal.ModelStarted{Model: g.Model} }

// Failed notes why there is no reply.
func (g Generate) Failed(err error) journal.Data {
	d := journal.ModelFailed{Error: err.Error()}
	if c := errdefs.Of(err); c != nil {
		d.Class = c.Error()
	} else if errdefs.Canceled(err) {
		d.Class = "canceled"
	}
	return d
}

// Compact shortens a transcript that gets too long for the model's window. Outcome: journal.Compacted; what goes wrong is one, too.
type Compact struct {
	once
	Step     int // before which it is done
	Messages message.History
	Tokens   int  // that the transcript is thought to take
	Tight    bool // the model's window is full: keep as little as can be
}

// Key is "compact/STEP".
func (c Compact) Key() journal.Key { return journal.Key{Op: "compact", ID: strconv.Itoa(c.Step)} }

// Tell says something to the model that no person said. Outcome: journal.Said.
type Tell struct {
	once
	Step int
	Text string
	Why  Why
}

// Why says what a word of the loop's own is for. It is part of the message (message.Origin of the provider "pawl"), for those who read transcripts.
type Why string

// The reasons.
const (
	WhyContinue  Why = "continue"  // the reply was cut off: the one that follows goes on with it, and together they are one answer
	WhyEmpty     Why = "empty"     // the reply said nothing, and stands in no transcript
	WhyRepeats   Why = "repeats"   // the model goes in circles
	WhyResult    Why = "result"    // a call that went on in the background is done
	WhyCommand   Why = "command"   // a command in the background is over
	WhySummarize Why = "summarize" // asks for a summary
	WhySummary   Why = "summary"   // of what stood there before
	WhyHandoff   Why = "handoff"   // somebody else goes on from here
	WhyMisfit    Why = "misfit"    // the reply does not fit its schema
)

func (w Why) origin() message.Origin {
	return message.Origin{Provider: "pawl", Extra: `{"why":"` + string(w) + `"}`}
}

// Message is what is said.
func (t Tell) Message() message.Message {
	return message.New(message.RoleUser, message.Text{Text: t.Text, Origin: t.Why.origin()})
}

// Told reports whether no person said a message: it begins as a [Tell] does.
func Told(m message.Message) bool {
	if m.Len() == 0 {
		return false
	}
	t, ok := m.Part(0).(message.Text)
	return ok && t.Provider == "pawl"
}

// Answer joins the last answer in h: the text of the last assistant message that has some, with those that it goes on from. "" when there is none.
func Answer(h []message.Message) (text string) {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Role() != message.RoleAssistant || h[i].Text() == "" {
			continue
		}
		text = h[i].Text()
		for i >= 2 && asksForMore(h[i-1]) && h[i-2].Role() == message.RoleAssistant {
			i -= 2
			text = h[i].Text() + text
		}
		return text
	}
	return ""
}

func asksForMore(m message.Message) bool {
	if m.Len() != 1 {
		return false
	}
	t, ok := m.Part(0).(message.Text)
	return ok && t.Origin == WhyContinue.origin()
}

// Key is "tell/STEP".
func (t Tell) Key() journal.Key { return journal.Key{Op: "tell", ID: strconv.Itoa(t.Step)} }

// Turn is a reply of the model and what it replies to: what hooks see of the conversation. All calls of a reply share it, and nobody writes to it.
type Turn struct {
	System   string
	Messages message.History // the transcript, with the reply
	Reply    journal.ModelFinished
	Response *model.Response `json:"-"` // the reply as hooks see it, made once for all of them; nil: of Reply
}

// Judge asks whether a call may run: the tool is known and admitted, its input valid, the hooks content. Outcome: journal.ToolJudged.
type Judge struct {
	once
	Turn   *Turn `json:"-"` // nil: no model made the call
	Call   message.ToolCall
	Edited string // the question in whose answer a person gave the call another input; "" for the call as the model made it
}

// Key is "judge/CALL", of an edited call "judge/QUESTION/edited".
func (j Judge) Key() journal.Key {
	if j.Edited != "" {
		return journal.Key{Op: "judge", ID: j.Edited + "/edited"}
	}
	return journal.Key{Op: "judge", ID: j.Call.ID}
}

// Ask puts a question to a person; nobody there parks the run. Outcome: journal.Answered, from here or by journal.Log.Answer.
type Ask struct {
	once
	journal.Asked
	Again    int  // 1, 2, …: whether to run a call again whose outcome is unknown
	Question bool // a tool's own, asked while its call runs
	// Schema is the JSON Schema of the wanted text, "" for none: for whoever puts the question now. It is not on record.
	Schema string `json:",omitempty"`
}

// Key is "ask/ID", for a call that may be run again "ask-again/ID", and for a tool's own question "question/ID".
func (a Ask) Key() journal.Key {
	switch {
	case a.Question:
		return journal.Key{Op: "question", ID: a.ID}
	case a.Again > 0:
		return journal.Key{Op: "ask-again", ID: a.ID}
	}
	return journal.Key{Op: "ask", ID: a.ID}
}

// Intent is the pending question. Questions that stand side by side are made pending together, before the first is put to anybody, so that
// people see all of them; then they are put in order.
func (a Ask) Intent() journal.Data { return a.Asked }

// Unknown is what is done about a tool call that had begun when its process died, if its tool is neither read-only nor idempotent. A
// resumed run goes by the policy of the first resume that found the call so.
type Unknown string

// The policies; "" is UnknownReport.
const (
	UnknownReport Unknown = "report" // it does not run; the model is told that its outcome is unknown
	UnknownAsk    Unknown = "ask"    // a person is asked whether to run it again; if not, the model is told
	UnknownRetry  Unknown = "retry"  // it runs again, with the same idempotency key: for tools whose far end heeds the key
)

// Valid reports whether it is one of the policies.
func (u Unknown) Valid() bool {
	return u == "" || u == UnknownReport || u == UnknownAsk || u == UnknownRetry
}

// UseTool runs an allowed call. Outcome: journal.ToolFinished; a tool's own failure is an outcome, not an error.
type UseTool struct {
	Turn        *Turn `json:"-"` // likewise
	Call        journal.Called
	Annotations tool.Annotations
	Unknown     Unknown
	Again       int    // 1, 2, …: a person had it run again, because its outcome was unknown
	Edited      bool   // a person changed its input: the model is told
	Context     string // what hooks want the model to know: it stands behind the result
	// Repeats is the call that this one tries once more after it failed, zero for none: the tool gets that one's idempotency key. Only tools that may be repeated are tried so.
	Repeats journal.Key `json:"repeats,omitzero"`
}

// Key is "tool/CALL", and for a call that is run again "again/CALL/TIMES".
func (u UseTool) Key() journal.Key {
	if u.Again > 0 {
		return journal.Key{Op: "again", ID: u.Call.ID + "/" + strconv.Itoa(u.Again)}
	}
	return journal.Key{Op: "tool", ID: u.Call.ID}
}

// Intent is durable before the tool begins.
func (u UseTool) Intent() journal.Data { return journal.ToolStarted{Call: u.Call} }

// Lost has a tool that may be repeated, or whose caller says so, run again. Of any other the outcome is unknown.
func (u UseTool) Lost() journal.Data {
	if u.Annotations.Repeatable() || u.Unknown == UnknownRetry {
		return nil
	}
	r := journal.Unknown(message.ToolCall{ID: u.Call.ID, Name: u.Call.Name})
	return journal.ToolFinished{
		Call: r.Call, Name: r.Name, Content: r.Content, IsError: true, Outcome: journal.OutcomeUnknown, Ask: u.Unknown == UnknownAsk,
	}
}

// Concurrent is true for read-only tools that don't ask to be alone.
func (u UseTool) Concurrent() bool { return u.Annotations.Concurrent() }

// Stop runs the PostGeneration hooks. Outcome: journal.Stopped.
type Stop struct {
	once
	Turn *Turn `json:"-"`
	Step int
	From int  `json:"-"` // where in Turn.Messages the run's own begin
	Sent int  // how often hooks have sent the model back
	Last bool // what the hooks say comes to nothing: that was often enough
}

// Key is "stop/STEP".
func (s Stop) Key() journal.Key { return journal.Key{Op: "stop", ID: strconv.Itoa(s.Step)} }
