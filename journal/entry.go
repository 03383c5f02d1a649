package journal

import (
	"encoding/json"
	"time"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Entry is one fact.
type Entry struct {
	Seq     int64     // 1, 2, 3 … in its session; given by Append
	Time    time.Time // when it was appended, UTC
	Session string
	Run     string
	Key     Key  // the effect that this begins or ends; zero for none
	Data    Data // what it says; its Kind is written with it
}

// Key names an effect, uniquely in its attempt of a run: it is derived from the run's own progress and so the same on resume, in replay and
// on every worker. A key has at most one intent and one outcome: a second of either is refused.
type Key struct {
	Scope string `json:"scope,omitempty"` // of a graph node or branch: "review"; nested "review:draft"; "" on the engine's main path
	Op    string `json:"op"`              // "model", "judge", "ask", "tool", …
	ID    string `json:"id,omitempty"`    // the step or the call
}

// String gives "model/2" or "review:tool/c1", for people.
func (k Key) String() string {
	s := k.Op
	if k.ID != "" {
		s += "/" + k.ID
	}
	if k.Scope != "" {
		s = k.Scope + ":" + s
	}
	return s
}

// Kind names a type of Data on disk and in events.
type Kind string

// Data is what an entry says. The types below are all there are; their fields are only ever added to.
type Data interface{ Kind() Kind }

// SessionCreated opens a session; with Parent it is a fork that shares the parent's entries up to At, with TaskOf that of a task, which belongs to the session that
// gave it.
type SessionCreated struct {
	Parent string `json:"parent,omitempty"`
	At     int64  `json:"at,omitempty"`
	TaskOf string `json:"task_of,omitempty"`
}

// RunStarted opens a run, or a further attempt of it. Owner is who drives; the entry is its fence.
type RunStarted struct {
	Agent     string `json:"agent"`
	User      string `json:"user,omitempty"`
	Task      string `json:"task,omitempty"` // the caller's name for what the run is a part of
	ParentRun string `json:"parent_run,omitempty"`
	Owner     string `json:"owner"`
	Attempt   int    `json:"attempt"` // 1, 2, …: a revise is attempt 2
	Inputs    Vars   `json:"inputs,omitempty"`
	Model     string `json:"model,omitempty"`
	Engine    string `json:"engine,omitempty"`
	Version   string `json:"version,omitempty"` // of what the engine goes by: a script, a definition
	Dir       string `json:"dir,omitempty"`
	Trace     string `json:"trace,omitempty"` // the span of the attempt, if it is traced, or else in which it was asked for: a traceparent of the W3C's Trace Context
	// Terms are what the run may do, in the words of the program that drives it: whoever goes on with it may only narrow them.
	Terms json.RawMessage `json:"terms,omitempty"`
	// Untrusted is State.Untrusted of the run that this one is a task of, or the agent of somebody else's whose run it is.
	Untrusted string `json:"untrusted,omitempty"`
}

// Resumed hands a run to another driver; the one before it gets Conflict from then on.
type Resumed struct {
	Owner string          `json:"owner"`
	Terms json.RawMessage `json:"terms,omitempty"` // those from now on; none: as before
}

// Said is a message that no model and no tool made: a person's at the start of a run, and, with a key, one that came in between: a
// person's steering, which waits until a model call hears it, or the loop's own word to the model (By "pawl": go on, you repeat yourself).
type Said struct {
	Message message.Message `json:"message"`
	By      string          `json:"by,omitempty"`
	// Untrusted is of the result of a call in the background that has what strangers wrote: see State.Untrusted.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Seeded is how a caller's seeder made the run's first transcript differ from the session's, and the rest of its board from the run's inputs.
type Seeded struct {
	Edit  message.Edit `json:"edit"`
	Board Board        `json:"board,omitzero"`
}

// Prepared is what the PreGeneration hooks made of the run.
type Prepared struct {
	System string       `json:"system,omitempty"`
	Edit   message.Edit `json:"edit"`
	// Of a run whose transcript is compacted when it gets long: the tokens at which that happens, and those that the transcript is thought to take at the beginning.
	CompactAt int `json:"compact_at,omitempty"`
	Tokens    int `json:"tokens,omitempty"`
	// Moved says that a hook changed the beginning of the conversation on purpose: what a provider has in its cache of it is of no use any more.
	Moved bool `json:"moved,omitempty"`
	// Output is the JSON Schema that the answer has to fit, if there is one.
	Output json.RawMessage `json:"output,omitempty"`
}

// ModelStarted is the intent of a model call.
type ModelStarted struct {
	Model string `json:"model,omitempty"`
}

// ModelFinished is the reply.
type ModelFinished struct {
	Message    message.Message  `json:"message"`
	Usage      model.Usage      `json:"usage"`
	CostMicros *int64           `json:"cost_micros,omitempty"` // millionths of a dollar; nil: unknown, which is not zero
	Stop       model.StopReason `json:"stop,omitempty"`
	Reason     string           `json:"reason,omitempty"` // the provider's words for a refusal
	Model      string           `json:"model,omitempty"`
	ID         string           `json:"id,omitempty"`      // the provider's id of the reply
	Millis     int64            `json:"ms,omitempty"`      // how long the call took
	Partial    bool             `json:"partial,omitempty"` // cut off by a cancel; what had come of its text was kept
	// Heard is the steering that the call was the first to hear: it stands before the reply. HeardTo is the number of the last such entry.
	Heard   []message.Message `json:"heard,omitempty"`
	HeardTo int64             `json:"heard_to,omitempty"`
}

// ModelFailed is a model call that gave nothing. It is no outcome: a resumed run calls again.
type ModelFailed struct {
	Class string `json:"class,omitempty"`
	Error string `json:"error"`
}

// ToolJudged is what was said of a call before it could run. Input is set when it is to run with another input than the model gave.
type ToolJudged struct {
	Call    string `json:"call"`
	Name    string `json:"name,omitempty"` // of the tool, when the call is refused; else its start has it
	Verdict string `json:"verdict"`        // "allow", "ask", "deny" (a gate refused it), "invalid" (there is no such tool, or its input is wrong)
	Reason  string `json:"reason,omitempty"`
	Input   string `json:"input,omitempty"`
	Context string `json:"context,omitempty"` // of hooks, for the model: behind the call's result
	Ends    string `json:"ends,omitempty"`    // a hook ended the run: why
	Once    bool   `json:"once,omitempty"`    // of "ask": it is asked each time, so an approval for the session would change nothing
}

// Asked is a question to a person; with Call it is about that tool call.
type Asked struct {
	ID      string  `json:"id"`
	Prompt  string  `json:"prompt,omitempty"`
	Call    *Called `json:"call,omitempty"`
	Unknown bool    `json:"unknown,omitempty"` // the call had begun, and its outcome is unknown: approving runs it again
	Once    bool    `json:"once,omitempty"`    // it is asked each time: an approval for the session is one for this once
	Confirm bool    `json:"confirm,omitempty"` // a question without a call that is answered by yes or no: approved, or rejected
	TTL     int64   `json:"ttl_ms,omitempty"`  // how long it can be answered, in milliseconds; 0: for ever
}

// Called is a tool call as it is to run.
type Called struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Answered answers Asked, from any process, once. Without Approved it is a no, whatever Text says: then Text is why. Text answers a question that a tool asks; Input edits
// the call. Session approves the call for the rest of the session, when it is made with the same input, and with a Rule all that this permission rule permits: see [State.Granted].
type Answered struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"` // of the tool, when a call is refused; else its start has it
	Approved bool   `json:"approved"`
	Text     string `json:"text,omitempty"`
	Input    string `json:"input,omitempty"`
	By       string `json:"by,omitempty"`
	Session  bool   `json:"session,omitempty"`
	Rule     string `json:"rule,omitempty"`
}

// Granted is what a person approved for the rest of a session: a tool with this very input, and with a Rule all that it permits.
type Granted struct{ Tool, Input, Rule string }

// ByDeadline is who answered when nobody did, in the time that there was.
const ByDeadline = "deadline"

// ByNobody is who answered where nobody is asked.
const ByNobody = "nobody"

// ToolStarted is the intent of a tool run, with the input that it gets.
type ToolStarted struct {
	Call Called `json:"call"`
}

// Outcome says how a tool run ended.
type Outcome string

// The outcomes. Denied and rejected calls never run; theirs are given by ToolJudged and Answered.
const (
	OutcomeOK       Outcome = "ok"
	OutcomeError    Outcome = "error"    // the tool failed; the model is told how
	OutcomeDenied   Outcome = "denied"   // a gate refused the call
	OutcomeRejected Outcome = "rejected" // a person refused the call
	OutcomeCanceled Outcome = "canceled" // the run was cancelled, and the tool stopped
	OutcomeUnknown  Outcome = "unknown"  // nobody knows whether it took effect
)

// ToolFinished is the outcome of a tool run.
type ToolFinished struct {
	Call    string         `json:"call"`
	Name    string         `json:"name"`
	Content string         `json:"content"`
	Files   []message.File `json:"files,omitempty"`
	IsError bool           `json:"is_error,omitempty"`
	Outcome Outcome        `json:"outcome"`
	Class   string         `json:"class,omitempty"` // of the error that the tool failed with, see errdefs; it may have none
	Millis  int64          `json:"ms,omitempty"`
	Warning string         `json:"warning,omitempty"` // for people: the tool ignored its cancel
	// Background is the call when it goes on behind this result: what that gives comes as steering.
	Background *Called `json:"background,omitempty"`
	Final      bool    `json:"final,omitempty"`     // the model is not asked again after it
	Ask        bool    `json:"ask,omitempty"`       // of an unknown outcome: it is not the last word, a person is asked whether to run the call again
	Untrusted  bool    `json:"untrusted,omitempty"` // it has what strangers wrote: see State.Untrusted
	Ends       string  `json:"ends,omitempty"`      // a hook ended the run after it: why
}

// TaskStarted notes that a call began a run below, in a session of its own, which is there.
type TaskStarted struct {
	Call    string `json:"call"`
	Session string `json:"session"`
}

// CommandStarted is the intent of a command that goes on in the background, behind the call that started it and over the end of its run: until CommandEnded.
type CommandStarted struct {
	ID      string `json:"id"`
	Call    string `json:"call"`
	Command string `json:"command"`
	Dir     string `json:"dir,omitempty"`
}

// CommandEnded is a command's end.
type CommandEnded struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`           // "exited", "killed", "timeout", "stopped", "failed", "lost": a tool.CommandReason
	Code   int    `json:"code,omitempty"`   // its exit code
	Signal string `json:"signal,omitempty"` // that killed it: SIGTERM
	Millis int64  `json:"ms,omitempty"`     // how long it ran
}

// Compacted replaces a part of the transcript by a summary; the original stays in the journal. With an Error the transcript stays as it is.
type Compacted struct {
	Edit         message.Edit `json:"edit"`
	TokensBefore int          `json:"tokens_before,omitempty"`
	TokensAfter  int          `json:"tokens_after,omitempty"`    // an estimate
	Preserved    int          `json:"preserved_count,omitempty"` // messages that stay as they are
	SummarySize  int          `json:"summary_size,omitempty"`    // in tokens
	Model        string       `json:"model,omitempty"`
	Usage        model.Usage  `json:"usage,omitzero"`
	CostMicros   *int64       `json:"cost_micros,omitempty"`
	Millis       int64        `json:"ms,omitempty"`
	Error        string       `json:"error,omitempty"`
}

// Stopped is what the PostGeneration hooks said when the model stopped; Again sends it back to work.
type Stopped struct {
	Again  string   `json:"again,omitempty"`
	Errors []string `json:"errors,omitempty"` // of hooks that failed: the reply stays
	// Steered goes on because somebody said something meanwhile; the hooks wait for the next stop.
	Steered bool `json:"steered,omitempty"`
}

// Parked leaves a run unfinished after an interrupt: it can be resumed.
type Parked struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail,omitempty"`
	Stack  string `json:"stack,omitempty"` // of a panic of a decider or a committer
}

// Board is a difference between boards: what an engine's own effect, such as a graph's node, changed, as its outcome. Boards are never journaled whole.
// See [Diff] and [Snapshot.With].
type Board struct {
	Append map[string][]message.Message `json:"append,omitempty"` // by channel
	Edit   map[string]message.Edit      `json:"edit,omitempty"`   // of channels that changed otherwise than by growing
	Set    Vars                         `json:"set,omitempty"`
	Delete []string                     `json:"delete,omitempty"` // vars
}

// Visited is the outcome of a part of an engine that does its work in one effect, such as a graph's node: Board is what it changed. The transcript gets what it said by a Board of the engine's
// own path, where the order is the engine's. Of a part with a cache one says whether there was something to take from it: with Cached, Board is that.
type Visited struct {
	Node   string `json:"node"`
	Board  Board  `json:"board,omitzero"`
	Cached bool   `json:"cached,omitempty"`
}

// Failed is an effect that failed where the engine goes on after that: a node that is tried again, a script that looks what came of it. Unlike a ModelFailed it is an outcome: a resumed
// run, and a replay, see the same failure.
type Failed struct {
	Class string `json:"class,omitempty"` // see errdefs
	Error string `json:"error"`
}

// Timed is what the clock said, for an engine that goes by it: when a wait is over, when a node began that has a limit.
type Timed struct {
	At time.Time `json:"at"`
}

// RunFinished closes a run. Discarded drops its output from the transcript, not from the journal.
type RunFinished struct {
	Status    string          `json:"status"`
	Reason    string          `json:"reason,omitempty"`
	Class     string          `json:"class,omitempty"` // of the error, see errdefs
	Error     string          `json:"error,omitempty"`
	Stack     string          `json:"stack,omitempty"` // of a panic
	Committed bool            `json:"committed"`
	Discarded bool            `json:"discarded,omitempty"`
	Handoff   json.RawMessage `json:"handoff,omitempty"` // to whom the conversation goes: an agent.HandoffEvent
	After     bool            `json:"after,omitempty"`   // the engine had completed: what failed came after it
}

// Kind is "session.created".
func (SessionCreated) Kind() Kind { return "session.created" }

// Kind is "run.started".
func (RunStarted) Kind() Kind { return "run.started" }

// Kind is "resumed".
func (Resumed) Kind() Kind { return "resumed" }

// Kind is "said".
func (Said) Kind() Kind { return "said" }

// Kind is "seeded".
func (Seeded) Kind() Kind { return "seeded" }

// Kind is "prepared".
func (Prepared) Kind() Kind { return "prepared" }

// Kind is "model.started".
func (ModelStarted) Kind() Kind { return "model.started" }

// Kind is "model.finished".
func (ModelFinished) Kind() Kind { return "model.finished" }

// Kind is "model.failed".
func (ModelFailed) Kind() Kind { return "model.failed" }

// Kind is "tool.judged".
func (ToolJudged) Kind() Kind { return "tool.judged" }

// Kind is "asked".
func (Asked) Kind() Kind { return "asked" }

// Kind is "answered".
func (Answered) Kind() Kind { return "answered" }

// Kind is "tool.started".
func (ToolStarted) Kind() Kind { return "tool.started" }

// Kind is "tool.finished".
func (ToolFinished) Kind() Kind { return "tool.finished" }

// Kind is "task.started".
func (TaskStarted) Kind() Kind { return "task.started" }

// Kind is "command.started".
func (CommandStarted) Kind() Kind { return "command.started" }

// Kind is "command.ended".
func (CommandEnded) Kind() Kind { return "command.ended" }

// Kind is "compacted".
func (Compacted) Kind() Kind { return "compacted" }

// Kind is "stopped".
func (Stopped) Kind() Kind { return "stopped" }

// Kind is "parked".
func (Parked) Kind() Kind { return "parked" }

// Kind is "board".
func (Board) Kind() Kind { return "board" }

// Kind is "visited".
func (Visited) Kind() Kind { return "visited" }

// Kind is "failed".
func (Failed) Kind() Kind { return "failed" }

// Kind is "timed".
func (Timed) Kind() Kind { return "timed" }

// Kind is "run.finished".
func (RunFinished) Kind() Kind { return "run.finished" }

// role says what an entry is to the effect of its key.
type role int

const (
	note    role = iota // nothing: it tells, and is never looked up
	intent              // the effect begins
	outcome             // the effect is done
)

func roleOf(d Data) role {
	switch d.(type) {
	case ModelStarted, ToolStarted, Asked, CommandStarted:
		return intent
	case ModelFailed:
		return note
	}
	return outcome
}
