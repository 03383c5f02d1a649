package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Subagent is an agent that a model can give a task to.
type Subagent struct {
	Agent       Agent          // its ID is the name that the model knows it by; its Instructions are its prompt
	Engine      engine.Engine  // with its own model, tools and limits
	Description string         // for the model: what it is good for; default: Agent.Card.Description
	Budget      *engine.Budget // of all its tasks together, besides the parent's: nil is none
	Timeout     time.Duration  // of a task: 0 is none but the parent's
}

// Subagents are those that a model can choose from, each by its Agent's ID.
type Subagents []Subagent

// TaskName is the name of the tool that [Task] makes.
const TaskName = "task"

// DefaultMaxDepth is how many runs may be one below the other, the first not counted.
const DefaultMaxDepth = 4

// TaskOption shapes the tool that [Task] makes.
type TaskOption func(*tasks)

// WithMaxDepth limits how deep runs start runs. Default: [DefaultMaxDepth].
func WithMaxDepth(n int) TaskOption { return func(t *tasks) { t.depth = n } }

// WithoutSummary leaves out what is told to the model of a task in the background when it is done. The task's session has it all the same.
func WithoutSummary() TaskOption { return func(t *tasks) { t.silent = true } }

// Task makes the tool by which a model gives tasks to subagents. Each call is a run of its own, in a session of its own that is named after the parent's session and the
// call ("SESSION/CALL"): with its own transcript, tools and model, bound by the parent's gates, budget and cancellation. The answer is the result of the
// call. What waits for a person below waits in the parent too ([Pending], [Answer]).
//
// The tool is idempotent: when the process dies, the resumed parent calls it again with the same key, and the child's session is resumed where it stands; one that is
// finished is read. A task in the background is answered at once, and its result comes as a message: see tool.Result.Background. The parent does not end before it. What
// is on record of it is published when the parent's own goroutine gets to it, between two effects and at its end; its deltas are not.
//
// It fails with errdefs.Validation when there is no subagent, when one has no engine or no ID, and with Conflict when two have the same ID.
func Task(subs Subagents, opts ...TaskOption) (tool.Tool, error) {
	t := &tasks{subs: map[string]Subagent{}, depth: DefaultMaxDepth}
	for _, o := range opts {
		o(t)
	}
	if len(subs) == 0 {
		return nil, errdefs.Validation.Errorf("agent: task: no subagents: give at least one")
	}
	var about strings.Builder
	for _, s := range subs {
		switch {
		case s.Agent.ID == "":
			return nil, errdefs.Validation.Errorf("agent: task: a subagent has no ID")
		case s.Engine == nil:
			return nil, errdefs.Validation.Errorf("agent: task: the subagent %s has no engine", s.Agent.ID)
		case !engine.CapabilitiesOf(s.Engine).Resume:
			return nil, errdefs.NotAvailable.Errorf("agent: task: the engine of the subagent %s can't resume: what a crash leaves of its tasks could not go on", s.Agent.ID)
		case t.subs[s.Agent.ID].Engine != nil:
			return nil, errdefs.Conflict.Errorf("agent: task: two subagents have the ID %s", s.Agent.ID)
		}
		if s.Description == "" {
			s.Description = s.Agent.Card.Description
		}
		t.subs[s.Agent.ID], t.names = s, append(t.names, s.Agent.ID)
		fmt.Fprintf(&about, "\n- %s: %s", s.Agent.ID, s.Description)
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"agent", "prompt"},
		"properties": map[string]any{
			"agent":      map[string]any{"type": "string", "enum": t.names, "description": "which agent does it"},
			"prompt":     map[string]any{"type": "string", "description": "the whole task: the agent sees nothing else of this conversation"},
			"background": map[string]any{"type": "boolean", "description": "go on at once; the result comes as a message when it is done"},
		},
	})
	if err != nil {
		return nil, err
	}
	options := []tool.Option{tool.Idempotent, tool.WithSchema(schema), tool.WithAliases(map[string]string{"subagent_type": "agent", "subagent": "agent", "task": "prompt", "run_in_background": "background"})}
	if slices.ContainsFunc(subs, func(s Subagent) bool { return engine.CapabilitiesOf(s.Engine).OpenWorld }) {
		options = append(options, tool.OpenWorld)
	}
	return tool.Func(TaskName, "Give a task to another agent, which works on its own and reports back. Agents:"+about.String(), t.do, options...), nil
}

type tasks struct {
	subs   map[string]Subagent
	names  []string
	depth  int
	silent bool
}

type taskInput struct {
	Agent      string `json:"agent"`
	Prompt     string `json:"prompt"`
	Background bool   `json:"background,omitempty"`
}

// do is the call, or the part of it that goes on in the background.
func (t *tasks) do(ctx context.Context, in taskInput) (tool.Result, error) {
	at, ok := engine.InsideOf(ctx)
	if !ok || at.Run.Log == nil {
		return tool.Result{}, errdefs.NotAvailable.Errorf("a task needs a run that it is a part of")
	}
	sub, ok := t.subs[in.Agent]
	if !ok {
		return tool.Result{}, errdefs.NotFound.Errorf("there is no agent %q; there are: %s", in.Agent, strings.Join(t.names, ", "))
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return tool.Result{}, errdefs.Validation.Errorf("the prompt is empty")
	}
	if b, _ := engine.BoundsFrom(ctx); b.Depth >= t.depth {
		return tool.Result{}, errdefs.BudgetExceeded.Errorf("agents have given tasks to agents %d deep, which is the limit: do it yourself", b.Depth)
	}
	call := tool.FromContext(ctx)
	session := journal.TaskSession(at.Run.Session, at.Key)
	if in.Background && !call.Background && at.Key.Scope == "" { // in a scope nobody would hear the result: there it is done at once
		return tool.Result{Content: fmt.Sprintf("%s works on it in the background (session %s). The result comes as a message.", sub.Agent.ID, session), Background: true}, nil
	}
	res, err := t.run(ctx, at, sub, session, in.Prompt)
	if err != nil {
		return tool.Result{}, err
	}
	if call.Background {
		return tool.Result{Content: t.summary(sub, in.Prompt, res), IsError: res.failure != "", Untrusted: res.untrusted}, nil
	}
	if res.failure != "" {
		return tool.Result{Content: res.text, Untrusted: res.untrusted}, errors.New(res.failure)
	}
	return tool.Result{Content: res.text, Untrusted: res.untrusted}, nil
}

// answer is what became of a task.
type answer struct {
	text, failure string
	untrusted     bool // what strangers wrote came to who did it
}

// run begins the child's run, goes on with it, or reads what it came to. Where the journal fails nobody can say how far the task is: then the run above stops,
// too, and both go on when it is resumed.
func (t *tasks) run(ctx context.Context, at engine.Inside, sub Subagent, session, prompt string) (answer, error) {
	var below *journal.Log
	res, done, err := t.drive(ctx, at, sub, session, prompt, func(l *journal.Log) { below = l })
	untrusted := done.Untrusted != "" || below != nil && below.Untrusted() != ""
	switch {
	case errors.Is(err, errGone):
		return answer{failure: fmt.Sprintf("the session of this task, %s, is gone: whether it took effect is unknown; check before you repeat it", session)}, nil
	case errors.Is(err, engine.ErrLeft):
		return answer{}, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: engine.CauseJournal, Detail: session}}
	case err != nil:
		unread := res == nil && (errdefs.NotAvailable.Is(err) || errdefs.Of(err) == nil && !errdefs.Canceled(err)) // or not leased
		err = fmt.Errorf("the task of %s: %w", sub.Agent.ID, err)
		if unread || below != nil && below.Failed() != nil {
			at.Run.Log.Fail(err)
		}
		return answer{}, err
	case res == nil:
		return over(done), nil
	case res.Status == StatusInterrupted: // so is this run; the task goes on when it is resumed
		return answer{}, engine.InterruptedError{Interrupt: engine.Interrupt{Cause: res.Cause, Detail: session}}
	case ctx.Err() != nil:
		return answer{}, ctx.Err()
	case res.Err != nil:
		return answer{res.Text(), fmt.Sprintf("the task of %s ended as %s: %v", sub.Agent.ID, res.Status, res.Err), untrusted}, nil
	}
	return answer{text: res.Text(), untrusted: untrusted}, nil
}

// drive gives the Result of the child's run, or, if that is finished already, its session. opened is told of the log that the run is driven with.
func (t *tasks) drive(ctx context.Context, at engine.Inside, sub Subagent, session, prompt string, opened func(*journal.Log)) (res *Result, done journal.State, err error) {
	store := at.Run.Log.Store()
	opts := []RunOption{
		WithJournal(store), WithEngineHost(at.Child()), WithParentRunID(at.Run.ID), WithUnknown(at.Run.Unknown), WithAskTTL(at.Run.AskTTL),
		WithTimeout(sub.Timeout), WithDependencies(at.Run.Deps), WithDir(at.Run.Log.Dir()), WithWait(), func(c *config) { c.opened, c.untrusted = opened, at.Run.Log.Untrusted() },
	}
	if sub.Budget != nil {
		opts = append(opts, WithBudget(sub.Budget))
	}
	if user := at.Run.Attributes["user.id"]; user != "" {
		opts = append(opts, WithAttributes(map[string]string{"user.id": user}))
	}
	if sub, err = sub.elsewhere(ctx, session, opts); err != nil {
		return nil, done, err
	}
	for {
		res, done, err = t.goOn(ctx, at, sub, session, prompt, opts)
		if !errors.Is(err, errBegun) { // else another driver of the run above was faster: look again
			return res, done, err
		}
	}
}

// goOn begins a task, resumes it, or reads what it came to.
func (t *tasks) goOn(ctx context.Context, at engine.Inside, sub Subagent, session, prompt string, opts []RunOption) (res *Result, done journal.State, err error) {
	store := at.Run.Log.Store()
	log, err := t.begun(ctx, at, session)
	if err != nil {
		return nil, done, err
	}
	switch st := log.State(); {
	case st.Seq == 0:
		return nil, done, errGone
	case st.Seq == 1:
		res, err = Run(ctx, sub.Agent, sub.Engine, Request{ContextID: session, Message: message.User(prompt)}, append(slices.Clip(opts), func(c *config) { c.behind = 1 })...)
	case st.ParentRun != at.Run.ID:
		return nil, done, errdefs.Conflict.Errorf("there is a session %s that is not this task's: delete it, or give the task under another session", session)
	case st.Run != "":
		res, err = Resume(ctx, sub.Agent, sub.Engine, session, opts...)
	default:
		return nil, st, nil
	}
	if res == nil && errdefs.NotFound.Is(err) { // somebody else resumed it, and finished it while this one waited
		again, readErr := journal.Open(ctx, store, session)
		switch {
		case readErr != nil:
			return nil, done, readErr
		case again.State().Run == "":
			return nil, again.State(), nil
		}
	}
	return res, done, err
}

// begun opens the session of a task, and makes it when the call has not begun it yet: first the session, then a note in the parent's, then its run. So a session that
// is not there although the note is was taken away, and what it did must not be done again.
func (t *tasks) begun(ctx context.Context, at engine.Inside, session string) (*journal.Log, error) {
	store, key := at.Run.Log.Store(), journal.TaskKey(at.Key)
	log, err := journal.Open(ctx, store, session)
	if err != nil {
		return nil, err
	}
	if noted, _ := at.Run.Log.Recorded(key); noted != nil {
		return log, nil
	}
	if log.Seq() == 0 {
		err := log.Append(ctx, journal.Entry{Data: journal.SessionCreated{TaskOf: at.Run.Session}})
		if errdefs.Conflict.Is(err) {
			if again := log.Refresh(ctx); again != nil || log.Seq() > 0 { // it is there
				err = again
			}
		}
		if err != nil {
			return nil, err
		}
	}
	note := journal.Entry{Run: at.Run.ID, Key: key, Data: journal.TaskStarted{Call: at.Key.ID, Session: session}}
	return log, at.Run.Log.Append(ctx, note)
}

// errGone is of a task whose session was taken away.
var errGone = errdefs.NotFound.Errorf("agent: the task's session is gone")

// over reads what a finished child came to.
func over(st journal.State) answer {
	a := answer{text: engine.Answer(st.Messages.Messages()), untrusted: st.Untrusted != ""}
	if st.Status != string(StatusCompleted) {
		a.failure = fmt.Sprintf("the task of %s ended as %s: %s", st.Agent, st.Status, st.Error)
	}
	return a
}

// mostSummary is how much of an answer a summary has, in characters, as document 000 says.
const mostSummary = 2000

// summary is what is told to the model of a task that was done in the background.
func (t *tasks) summary(sub Subagent, prompt string, res answer) string {
	if t.silent {
		return ""
	}
	status := "success"
	if res.failure != "" {
		status = "error"
	}
	s := fmt.Sprintf("[Subagent Result: %s]\nTask: %s\nStatus: %s\nOutput: %s", sub.Agent.ID, prompt, status, clip(res.text, mostSummary))
	if res.failure != "" {
		s += "\nError: " + res.failure
	}
	return s
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
