package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Tool does one thing for a model. Safe for concurrent use.
type Tool interface {
	// Definition is always the same.
	Definition() Definition
	// Execute runs with input that was checked against the schema. An error is shown to the model as the result; it does not
	// end the run. When ctx is cancelled Execute has 5 s to return: then the run goes on without it, and its outcome is unknown.
	Execute(ctx context.Context, input json.RawMessage) (Result, error)
}

// Definition describes a tool to models, hooks and the journal.
type Definition struct {
	model.Tool
	Annotations
	// Deferred leaves the tool out of requests to models until a conversation has searched for it: see loop.SearchName. It can be called all the same.
	Deferred bool `json:"deferred,omitempty"`
}

// Annotations are what a tool says of itself. A tool that says nothing counts as one that writes: it runs alone, and is never run
// again when it is not known how it ended.
type Annotations struct {
	ReadOnly    bool `json:"read_only,omitempty"`   // changes nothing: may run beside others, may run again
	Idempotent  bool `json:"idempotent,omitempty"`  // running again with the same Call.Key does nothing more
	Destructive bool `json:"destructive,omitempty"` // may take away what was there; for people and permission rules
	OpenWorld   bool `json:"open_world,omitempty"`  // reaches beyond this machine; for people and permission rules
	Sequential  bool `json:"sequential,omitempty"`  // runs alone even if ReadOnly
	// RequiresApproval asks a person before each call, whatever the hooks allow. With nobody there the call stays pending, and the run can
	// be resumed once it was answered.
	RequiresApproval bool `json:"requires_approval,omitempty"`
}

// Concurrent reports whether the tool may run beside its neighbours.
func (a Annotations) Concurrent() bool { return a.ReadOnly && !a.Sequential }

// Repeatable reports whether the tool may run again when it is not known how it ended.
func (a Annotations) Repeatable() bool { return a.ReadOnly || a.Idempotent }

// Result is what the model is told.
type Result struct {
	Content string
	Files   []message.File // images; must not be written to any more
	IsError bool
	// Final says that nothing is left to be said: when the calls beside this one are done too, the model is not asked again, and the run ends with the result (hooks of PostGeneration may send it back to work). An error is not final.
	Final bool
	// Background says that the call goes on behind this result: the engine runs it again with Call.Background, beside the run, and what that gives is told to the
	// model as a message. The tool must be idempotent: after a crash both parts run again.
	Background bool
	// Untrusted says that the result has what strangers wrote, such as a page of the web. It is on record with the result, and permission.Config.Taint goes by it; a hook of PostToolUse may set it, and none can take it back.
	Untrusted bool
}

// Call is one use of a tool, which Execute finds in its context.
type Call struct {
	ID, Name string
	Key      string    // the idempotency key: the same over crashes, resumes and workers
	Output   io.Writer // what is written is shown as it comes, and is not part of the result; never nil in Execute
	Errors   io.Writer // likewise, as the standard error stream
	// Background is set when the call goes on behind a Result that asked for it.
	Background bool
	Session    string   // of the run; "" outside of one
	Commands   Commands // for a tool that starts commands which go on behind its call; nil outside of a run
}

// ErrUnknown is found by errors.Is in the error of a call that may have taken effect, or not: its outcome is unknown, which is more than that it failed.
var ErrUnknown = errors.New("it is unknown whether it took effect")

// CallKey is where a context has the *Call that [FromContext] gives: for a context of one's own that holds it in one piece with more. Everybody else
// uses [WithCall]; the same holds for both.
type CallKey struct{}

// WithCall is for those who run tools: whoever sets it has checked the input with [Set.Check].
func WithCall(ctx context.Context, c Call) context.Context { return &called{ctx, c} }

// called is a context with a call, in one piece.
type called struct {
	context.Context
	call Call
}

func (c *called) Value(key any) any {
	if _, ok := key.(CallKey); ok {
		return &c.call
	}
	return c.Context.Value(key)
}

// FromContext gives the running call. Outside of a run it has no ID, and its writers discard.
func FromContext(ctx context.Context) (c Call) {
	if at, ok := ctx.Value(CallKey{}).(*Call); ok {
		c = *at
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	if c.Errors == nil {
		c.Errors = io.Discard
	}
	return c
}
