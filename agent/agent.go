package agent

import (
	"context"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Agent says who: plain data that any engine can drive.
type Agent struct {
	ID           string    `json:"id"`                     // required
	Card         AgentCard `json:"card,omitempty"`         // what others are told of it
	Instructions string    `json:"instructions,omitempty"` // the system prompt
	// Tools names what the agent may call, in upper or lower case: nil admits all that the engine has, empty none. Enforced at execution. What a provider runs itself (model.ProviderTool) is not asked for unless its name is among them.
	Tools     []string          `json:"tools,omitzero"`
	Hooks     []hook.Middleware `json:"-"` // around each generation and tool call, in every engine; its gates bind child runs too
	Observers []Observer        `json:"-"` // see a whole run
	Deciders  []Decider         `json:"-"` // judge a whole run
}

// Request is one run.
type Request struct {
	TaskID    string          `json:"taskId,omitempty"`        // the caller's name for what the run is a part of; it comes back in the Result and is on record
	ContextID string          `json:"contextId,omitempty"`     // the session; "" is a new one, named after the run
	RunID     string          `json:"runId,omitempty"`         // "" is a new one
	Message   message.Message `json:"message"`                 // required
	Inputs    map[string]any  `json:"inputs,omitempty"`        // become the board's vars; of the types of journal.Vars, so that a resumed run begins with the same
	Config    *RequestConfig  `json:"configuration,omitempty"` // what the caller can take; nil: all
}

// Status is how a run ended.
type Status string

// The statuses.
const (
	StatusCompleted   Status = "completed"
	StatusInterrupted Status = "interrupted" // can be resumed; Cause says why
	StatusCanceled    Status = "canceled"    // the caller's context ended
	StatusFailed      Status = "failed"
	StatusAborted     Status = "aborted" // a hook refused the whole run
)

// Result is what a run gave. Every outcome of the run itself is in Status and Err; Run's own error is for what stands around it.
type Result struct {
	TaskID    string            `json:"taskId,omitempty"`    // the Request's
	ContextID string            `json:"contextId,omitempty"` // the session
	RunID     string            `json:"runId,omitempty"`
	Status    Status            `json:"status"`
	Cause     engine.Cause      `json:"cause,omitempty"`     // of an interrupt
	Messages  []message.Message `json:"messages,omitempty"`  // every new message of the run, tool calls and results included
	Artifacts []Artifact        `json:"artifacts,omitempty"` // what WithArtifactChannels asked for
	Committed bool              `json:"committed"`           // it was kept: deciders did not drop it, and every Committer has stored it
	State     map[string]any    `json:"state,omitempty"`     // what deciders said, and StateFinalizeReason and its like
	Usage     model.Usage       `json:"usage"`               // of this run, all its attempts
	Cost      *int64            `json:"cost_micros"`         // millionths of a dollar; nil: the price of a call is not known
	Steps     int               `json:"steps,omitempty"`     // model calls that gave a reply
	Attempts  int               `json:"attempts,omitempty"`  // 1, and one more for each revise
	Pending   []journal.Pending `json:"pending,omitempty"`   // questions that wait for a person
	Err       error             `json:"-"`                   // nil when completed
	LastBoard *engine.Board     `json:"-"`                   // the board at the end
}

// Text is the answer: the last assistant text, whole even if the output limit cut it into several messages; "" on nil.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	return engine.Answer(r.Messages)
}

// RunInfo says whose run it is.
type RunInfo struct{ AgentID, RunID, TaskID, ContextID string }

// Observer sees a run from outside; it has no say. Its panics are dropped. It is called on the run's goroutine. Embed BaseObserver.
type Observer interface {
	OnRunStart(ctx context.Context, info RunInfo, req *Request) // before each attempt
	OnInterrupt(ctx context.Context, info RunInfo, i engine.Interrupt)
	OnRunRevise(ctx context.Context, info RunInfo, prev *Result, next int)
	OnRunEnd(ctx context.Context, info RunInfo, res *Result) // once, on every exit of a run that began
}

// BaseObserver does nothing.
type BaseObserver struct{}

// OnRunStart does nothing.
func (BaseObserver) OnRunStart(context.Context, RunInfo, *Request) {}

// OnInterrupt does nothing.
func (BaseObserver) OnInterrupt(context.Context, RunInfo, engine.Interrupt) {}

// OnRunRevise does nothing.
func (BaseObserver) OnRunRevise(context.Context, RunInfo, *Result, int) {}

// OnRunEnd does nothing.
func (BaseObserver) OnRunEnd(context.Context, RunInfo, *Result) {}

// Decider judges a run when it is over: keep it, drop it, do it again. It must not change res. Its error and its panic
// fail closed: Committed is false, and Run returns (res, err). A panic also makes a completed run a failed one.
type Decider interface {
	BeforeFinalize(ctx context.Context, info RunInfo, req *Request, res *Result) (FinalizeDecision, error)
}

// DeciderFunc makes a function a Decider.
type DeciderFunc func(ctx context.Context, info RunInfo, req *Request, res *Result) (FinalizeDecision, error)

// BeforeFinalize calls f.
func (f DeciderFunc) BeforeFinalize(ctx context.Context, info RunInfo, req *Request, res *Result) (FinalizeDecision, error) {
	return f(ctx, info, req, res)
}

// FinalizeDecision is what a Decider wants; zero is no opinion. Booleans are or-ed, Discard beats Accept, the first Reason wins, and a later
// decider's State wins per key.
type FinalizeDecision struct {
	AcceptOutput  bool           // commit a run that did not complete, too
	DiscardOutput bool           // drop what the run said from the transcript; the journal keeps it
	Revise        bool           // do a completed run again, as often as WithMaxRevise allows; when that is used up the run is kept as it is, unless DiscardOutput says otherwise
	Reason        string         // why; under StateFinalizeReason in the Result
	State         map[string]any // merged into Result.State
}

// Committer stores a committed run, after the last decision and before OnRunEnd. It is called before the run's end is on record, so that a process that dies around it is
// resumed and calls it again, as often as that happens: it has to be idempotent by RunID. Its error, or its panic, clears Committed, and Run returns it; the run
// stays open then, and Resume decides and commits again, without doing anything else again. A process whose run was taken over commits nothing.
type Committer interface {
	Commit(ctx context.Context, info RunInfo, res *Result) error
}

// Seeder makes the first board of each attempt. Without one it is the session's transcript, the request's message and its inputs. What it makes is journaled, as a
// difference from that, before the engine sees it, and a resumed run begins with it: the seeder is not asked again. Vars are of the types of [journal.Vars].
type Seeder func(ctx context.Context, info RunInfo, req *Request) (*engine.Board, error)

type defaultBoardKey struct{}

// DefaultBoard gives a [Seeder] the board that the run would begin with if there were none, to be changed and given back: the session's transcript, the request's message and its inputs. nil
// outside of a seeder.
func DefaultBoard(ctx context.Context) *engine.Board {
	b, _ := ctx.Value(defaultBoardKey{}).(*engine.Board)
	return b
}

// BoardWith is the board of a caller who keeps transcripts himself: history, then the request's message and inputs.
func BoardWith(h message.History, req *Request) *engine.Board {
	return engine.NewBoard(engine.Snapshot{Channels: map[string]message.History{engine.MainChannel: h.Append(req.Message)}, Vars: req.Inputs})
}
