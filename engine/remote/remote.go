package remote

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// ToolName is the tool that hooks and permission rules see a message to the agent as. Its input has the agent's name, its url, and the text.
const ToolName = "remote_agent"

// The vars on the board.
const (
	VarTask    = "remote.task"    // the task's id
	VarContext = "remote.context" // the conversation's
	VarState   = "remote.state"   // the task's state, as a2a.TaskState
	varWords   = "remote.words"   // what the agent said to it
	varClass   = "remote.class"   // of what class its failure is, if the agent says so: see a2a.ClassKey
)

// maxTurns bounds how often one run answers the agent's questions.
const maxTurns = 100

// Engine runs an agent elsewhere. It is immutable and serves many runs at once.
type Engine struct {
	client *a2a.Client
	base   *loop.Engine // for hooks, permissions and people
	name   string
}

// letter is a message to the agent as hooks see it.
type letter struct {
	Agent string `json:"agent"`
	URL   string `json:"url"`
	Text  string `json:"text"`
}

// New makes an engine of an agent: of a [a2a.Client], which knows its card, its address and its credentials.
func New(client *a2a.Client) (*Engine, error) {
	if client == nil {
		return nil, errdefs.Validation.Errorf("remote: no client: make one with a2a.Dial or a2a.New")
	}
	e := &Engine{client: client, name: client.Card().Name}
	gate := tool.Func(ToolName, "Sends a message to the agent "+e.name+", elsewhere.", func(context.Context, letter) (string, error) {
		return "", errdefs.NotAvailable.Errorf("remote: the engine itself sends messages")
	})
	var err error
	e.base, err = loop.New(loop.Config{Model: loop.NoModel(), Tools: []tool.Tool{gate}})
	return e, err
}

// Capabilities says that it resumes, and needs nothing from Dependencies. Its version is the agent's address.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: "remote", Version: e.client.URL(), Resume: true, OpenWorld: true}
}

// CanResume refuses a run of another agent, with errdefs.NotAvailable: its task is not here.
func (e *Engine) CanResume(cp engine.Checkpoint) error {
	if at := e.client.URL(); cp.SpecVersion != "" && cp.SpecVersion != at {
		return errdefs.NotAvailable.Errorf("remote: the run is of the agent at %s, this one is at %s: resume it with the agent that it began with", cp.SpecVersion, at)
	}
	return nil
}

// Execute sends the message and follows the task. What the task ends with other than completed is an error with the agent's words: a task that
// failed is errdefs.Internal, unless it says a class, one that was rejected errdefs.Refused, one that the agent canceled errdefs.Aborted, and one that wants credentials
// errdefs.Unauthorized.
func (e *Engine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	c := &conversation{engine: e, run: &run, board: board, do: engine.StepsOf(run, host, e)}
	c.follow = c.do
	if c.line.here = run.Steps == nil && !refuses(&run); c.line.here {
		c.line.interrupt = engine.Interruptions(run, host)
		own := run
		own.Background = nil // which has the run's interrupts
		c.follow = engine.Local(own, deaf{host}, e)
	}
	err := c.converse(ctx)
	if c.line.close(); err != nil && c.open && c.line.here && (left(ctx) || nobodyGoesOn(err)) {
		e.cancel(ctx, c.task)
	}
	return board, err
}

// nobodyGoesOn reports whether a run that fails so leaves a task behind that waits in vain.
func nobodyGoesOn(err error) bool {
	switch errdefs.Of(err) {
	case errdefs.Unauthorized, errdefs.PolicyDenied, errdefs.NoProgress, errdefs.Validation, errdefs.BudgetExceeded:
		return true
	}
	return false
}

// deaf is a host for watching a task: once a message was sent there is no next step before its answer is there, so an interrupt is for the
// watching itself to see, which gives the task a moment.
type deaf struct{ engine.Host }

func (deaf) Interrupts() <-chan engine.Interrupt { return nil }
func (d deaf) Listening() bool                   { return engine.Listening(d.Host) }

// refuses reports whether the run's steps do nothing: it was to go on from a checkpoint of another run.
func refuses(run *engine.Run) bool {
	return run.ResumeFrom != nil && run.ResumeFrom.ExecID != "" && run.ResumeFrom.ExecID != run.ID
}

// left reports whether a run ends for good with its context: not so that it goes on elsewhere.
func left(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), engine.ErrLeft)
}

// conversation is the path of one run.
type conversation struct {
	engine *Engine
	run    *engine.Run
	board  *engine.Board
	do     engine.Steps
	follow engine.Steps // for what can't be begun anew: watching a task
	line   line
	task   string
	remote string // the contextId
	open   bool   // the task has not ended
}

func (c *conversation) converse(ctx context.Context) error {
	talk := c.board.Channel(engine.MainChannel)
	ready, err := engine.Do[journal.Prepared](ctx, c.do, engine.Prepare{System: c.run.System, Messages: talk})
	if err != nil {
		return err
	}
	talk = talk.Edit(ready.Edit)
	c.board.SetChannel(engine.MainChannel, talk)
	parts, err := spoken(talk)
	if err != nil {
		return err
	}
	c.remote = rememberedContext(talk, c.engine.client.URL())
	var answer *message.Message
	for n := 1; n <= maxTurns; n++ {
		words, on, err := c.turn(ctx, n, parts, answer)
		if err != nil || !on {
			return err
		}
		reply, err := c.ask(ctx, n, words)
		if err != nil {
			return err
		}
		said := message.User(reply)
		parts, answer = []a2a.Part{a2a.Text(reply)}, &said
	}
	return errdefs.NoProgress.Errorf("remote: the agent %s asked %d times: it is given up", c.engine.name, maxTurns)
}

// turn sends what is said and follows the task; on, with the agent's words, when it waits for an answer.
func (c *conversation) turn(ctx context.Context, n int, parts []a2a.Part, answer *message.Message) (words string, on bool, err error) {
	if parts, err = c.judge(ctx, n, parts); err != nil {
		return "", false, err
	}
	sent, err := engine.Do[journal.Board](ctx, c.do, send{N: n, Agent: c.engine.name, Task: c.task, Context: c.remote, Parts: parts, Answer: answer, line: &c.line})
	if err != nil {
		return "", false, err
	}
	c.board.Apply(sent)
	if c.task, _ = sent.Set[VarTask].(string); c.task == "" {
		return "", false, nil // the answer was a message
	}
	c.remote, _ = sent.Set[VarContext].(string)
	c.open = true
	seen, err := engine.Do[journal.Board](ctx, c.follow, watch{N: n, Agent: c.engine.name, Task: c.task, Context: c.remote, line: &c.line})
	if err != nil {
		return "", false, err
	}
	c.board.Apply(seen)
	state, _ := seen.Set[VarState].(string)
	words, _ = seen.Set[varWords].(string)
	switch s := a2a.TaskState(state); s {
	case a2a.StateInputRequired:
		return words, true, nil
	case a2a.StateAuthRequired:
		return "", false, c.failed(errdefs.Unauthorized, "wants credentials", words)
	default:
		c.open = false
		switch s {
		case a2a.StateFailed:
			class, _ := seen.Set[varClass].(string)
			return "", false, c.failed(classOf(class), "failed", words)
		case a2a.StateRejected:
			return "", false, c.failed(errdefs.Refused, "rejected the task", words)
		case a2a.StateCanceled:
			return "", false, c.failed(errdefs.Aborted, "canceled the task", words)
		}
		return "", false, nil
	}
}

// classOf is the class of a failure as the agent says it. Some of them say what happened to a run here, which is not the agent's to say.
func classOf(name string) *errdefs.Class {
	switch c := errdefs.Named(name); c {
	case nil, errdefs.Interrupted, errdefs.Aborted, errdefs.Conflict:
		return errdefs.Internal
	default:
		return c
	}
}

func (c *conversation) failed(class *errdefs.Class, what, words string) error {
	if words == "" {
		words = "it did not say why"
	}
	return class.Errorf("remote: the agent %s %s: %s", c.engine.name, what, words)
}

// judge lets hooks and permissions see what is about to be sent, as a call. They may change its text.
func (c *conversation) judge(ctx context.Context, n int, parts []a2a.Part) ([]a2a.Part, error) {
	as := letter{c.engine.name, c.engine.client.URL(), text(parts)}
	call := message.ToolCall{ID: c.run.CallID("send#" + strconv.Itoa(n)), Name: ToolName, Input: as.json()}
	v, err := engine.Do[journal.ToolJudged](ctx, c.do, engine.Judge{Call: call})
	if err != nil {
		return nil, err
	}
	if v.Input != "" {
		call.Input = v.Input
	}
	if v.Verdict == "ask" {
		q := c.run.Asks(v.Reason, journal.Called{ID: call.ID, Name: ToolName, Input: call.Input})
		q.Once = v.Once
		a, err := engine.Do[journal.Answered](ctx, c.do, engine.Ask{Asked: q})
		if err != nil {
			return nil, err
		}
		if !a.Approved {
			return nil, errdefs.PolicyDenied.Errorf("remote: a person refused that the message is sent to %s: %s", c.engine.name, a.Text)
		}
		if a.Input != "" && a.Input != call.Input { // what a person changed is judged like what was there before
			call.Input = a.Input
			if v, err = engine.Do[journal.ToolJudged](ctx, c.do, engine.Judge{Call: call, Edited: q.ID}); err != nil {
				return nil, err
			}
			if v.Input != "" {
				call.Input = v.Input
			}
		}
	}
	if v.Refused() {
		return nil, errdefs.PolicyDenied.Errorf("remote: the message is not sent to %s: %s", c.engine.name, v.Reason)
	}
	var now letter
	if err := json.Unmarshal([]byte(call.Input), &now); err != nil {
		return nil, errdefs.Validation.Errorf("remote: what a hook made of the message: %w", err)
	}
	if now.Agent != as.Agent || now.URL != as.URL {
		return nil, errdefs.Validation.Errorf("remote: a hook, or a person, changed to whom the message goes: only its text can be changed")
	}
	if now.Text != as.Text {
		return retold(parts, now.Text), nil
	}
	return parts, nil
}

func (l letter) json() string {
	b, _ := json.Marshal(l) // strings always can
	return string(b)
}

// ask puts the agent's question to a person.
func (c *conversation) ask(ctx context.Context, n int, words string) (string, error) {
	if words == "" {
		words = "The agent " + c.engine.name + " asks for more, and does not say what."
	}
	q := journal.Asked{ID: c.run.CallID("answer#" + strconv.Itoa(n)), Prompt: words, TTL: c.run.AskTTL.Milliseconds()}
	a, err := engine.Do[journal.Answered](ctx, c.do, engine.Ask{Asked: q})
	switch {
	case err != nil:
		return "", err
	case a.Text != "" && a.Approved:
		return a.Text, nil
	case a.Approved:
		return "yes", nil
	case a.Text != "":
		return "no: " + a.Text, nil
	}
	return "no", nil
}

// Perform does one effect, here and now: those of hooks and people by the loop.
func (e *Engine) Perform(ctx context.Context, run engine.Run, host engine.Host, effect engine.Effect) (journal.Data, error) {
	switch x := engine.Bare(effect).(type) {
	case send:
		return e.send(ctx, &run, host, effect.Key(), x)
	case watch:
		return e.watch(ctx, &run, host, effect.Key(), x)
	case engine.Judge:
		run.Tools = nil // the list says what an agent's model may call; that this agent is somewhere else was the caller's choice
	}
	return e.base.Perform(ctx, run, host, effect)
}
