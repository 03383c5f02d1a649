package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
)

// Engine executes one run on a board. Whatever the outcome it returns the board as far as it got, with
// nil when done, an [InterruptedError], ctx.Err() when cancelled, or a classified error.
// A run with ResumeFrom set is continued or refused with errdefs.NotAvailable, never started afresh. enginetest.Run proves that an Engine is one.
type Engine interface {
	Execute(ctx context.Context, run Run, host Host, board *Board) (*Board, error)
}

// Func makes a function an Engine. What it adds to the main channel is journaled when it returns. It has no Capabilities, so agent.Run never has it resume; a function that others call too refuses a run with ResumeFrom itself.
type Func func(ctx context.Context, run Run, host Host, board *Board) (*Board, error)

// Execute calls f.
func (f Func) Execute(ctx context.Context, run Run, host Host, board *Board) (*Board, error) {
	return f(ctx, run, host, board)
}

// Run is one execution, read-only to the engine.
type Run struct {
	ID, ParentRunID string
	AgentID         string
	Session         string
	Attempt         int               // 1, or more when a decider had the run done again
	System          string            // the agent's instructions
	Tools           []string          // the agent's gate: nil admits all, empty none; judged again when a tool is about to run
	Attributes      map[string]string // agent.id, run.id, task.id, conversation.id, agent.attempt, and the caller's
	OutputModes     []string          // media types that the caller takes, see [Run.Accepts]; none: all
	Deps            *Dependencies
	ResumeFrom      *Checkpoint
	Bounds          Bounds
	Unknown         Unknown       // what is done about calls whose outcome is unknown
	AskTTL          time.Duration // how long a question waits for its answer: 0 is for ever
	Values          *Values       // what hooks of this run share
	Log             *journal.Log  // the session; nil inside a workflow, where the worker's activities have it
	Background      *Background   // what goes on beside the path; nil inside a workflow
	// Trace is where the run lies in a trace, as a traceparent of the W3C's Trace Context: to a [Tracer], before it opens the span of an attempt, where that lies which it follows (the
	// attempt before, the part before it was resumed, the run that handed over), as it is on record; from then on its own. "": in none, or nobody traced.
	Trace string
	Steps Steps // set by a place that performs effects itself (a workflow, replay); nil: [Local]

	intr *latch // the interrupt that all parts of the run see
}

// Asks makes a question of this run about a call.
func (r *Run) Asks(prompt string, c journal.Called) journal.Asked {
	return journal.Asked{ID: c.ID, Prompt: prompt, Call: &c, TTL: r.AskTTL.Milliseconds()}
}

// CallID makes an id for a call, or a question, that no model asked for: the same on resume and in replay, another one in every run and attempt, and one that every provider takes. Name is unique in
// the attempt: what makes the call, with its scope ("review#2:search").
func (r Run) CallID(name string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%d\x00%s", r.ID, r.Attempt, name)
	const most = 24 // some providers take 40 in all
	stem := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, name[strings.LastIndexByte(name, ':')+1:])
	return stem[:min(len(stem), most)] + "_" + strconv.FormatUint(h.Sum64(), 36)
}

// Where gives the run's identity to hooks.
func (r *Run) Where() hook.Where {
	return hook.Where{Agent: r.AgentID, Run: r.ID, Session: r.Session, User: r.Attributes["user.id"], Parent: r.ParentRunID}
}

// Granted is what people approved for the session when they answered its questions, for hooks.
func (r *Run) Granted() (all []hook.Grant) {
	if r.Log == nil {
		return nil
	}
	for _, g := range r.Log.Granted() {
		all = append(all, hook.Grant{Tool: g.Tool, Input: g.Input})
		if g.Rule != "" {
			all = append(all, hook.Grant{Rule: g.Rule})
		}
	}
	return all
}

// Untrusted is what first brought what strangers wrote into the conversation, for hooks: see journal.State.Untrusted.
func (r *Run) Untrusted() string {
	if r.Log == nil {
		return ""
	}
	return r.Log.Untrusted()
}

// Capabilities says what an engine can do and needs; agent.Run checks them before anything runs.
type Capabilities struct {
	Name  string // for people and the journal: "loop"
	Model string // likewise: the model that it talks to
	// Version names what decides the engine's path, when that is not the same in every program with this engine: the hash of a script, say. It is on record with the run, and
	// a [Resumer] finds it in Checkpoint.SpecVersion.
	Version string
	Resume  bool
	// Elsewhere says that other processes do the run's effects, and go on with them when this one dies. They act for the run's driver, so it has the same name whoever resumes the run: what they are at is not lost then.
	Elsewhere bool
	// OpenWorld says that what it is told leaves for somebody else's agent, who answers: see tool.Annotations.OpenWorld.
	OpenWorld bool
	Needs     []reflect.Type // what must be in Dependencies
}

// Resumer is implemented by an engine that can tell beforehand whether it can go on from a checkpoint: that of another version of it, say, it can't. The error is
// errdefs.NotAvailable, or Validation for what is no checkpoint of this engine; it does no I/O. An engine without it is asked by Execute alone.
type Resumer interface {
	CanResume(cp Checkpoint) error
}

// Describer is implemented by engines with Capabilities; one without has none.
type Describer interface{ Capabilities() Capabilities }

// CapabilitiesOf gives what e says of itself.
func CapabilitiesOf(e Engine) Capabilities {
	if d, ok := e.(Describer); ok {
		return d.Capabilities()
	}
	return Capabilities{}
}

// Values is what hooks of one run in one process share. Its lock also keeps hooks of one run from running at the same time.
type Values struct {
	mu sync.Mutex
	m  map[string]any
}

// Do calls f alone with the values. A nil Values gives f an empty map of its own.
func (v *Values) Do(f func(values map[string]any)) {
	if v == nil {
		f(map[string]any{})
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.m == nil {
		v.m = map[string]any{}
	}
	f(v.m)
}

// Dependencies hands clients to engines by their type. The zero value works; nil is empty. Not safe for concurrent writing.
type Dependencies struct{ m map[reflect.Type]any }

// Provide adds v under type T.
func Provide[T any](d *Dependencies, v T) {
	if d.m == nil {
		d.m = map[reflect.Type]any{}
	}
	d.m[reflect.TypeFor[T]()] = v
}

// Need gets the T, or errdefs.NotFound.
func Need[T any](d *Dependencies) (v T, err error) {
	if d != nil {
		if v, ok := d.m[reflect.TypeFor[T]()].(T); ok {
			return v, nil
		}
	}
	return v, errdefs.NotFound.Errorf("engine: no %v among the dependencies", reflect.TypeFor[T]())
}

// Has reports whether something of type t was provided.
func (d *Dependencies) Has(t reflect.Type) bool {
	if d == nil {
		return false
	}
	_, ok := d.m[t]
	return ok
}
