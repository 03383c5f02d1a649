package pawl

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/tool"
)

// ToolEngine is the name on record of the engine of runs that are one tool call: see [Runtime.UseTool].
const ToolEngine = "tool"

// Tools are those that the next run has, in the order in which models are told of them, deferred ones among them. The slice is the same until the project changes, and must not be written to.
func (r *Runtime) Tools() []tool.Definition {
	a := r.hold()
	defer r.drop(a)
	return a.calls.defs
}

// Skills are those that the next run has.
func (r *Runtime) Skills() []project.Skill {
	a := r.hold()
	defer r.drop(a)
	return slices.Clone(a.calls.skills)
}

// UseTool makes one tool call that no model asked for: a person's, or another program's. It is a run in its session ("" is a new one named after the run) whose one effect is the call. So it goes the way of a model's call: it is checked
// against the tool's schema, judged by permissions, safety check and hooks, asked about where they say so, confined by the sandbox, and on record. Of a tool that is not there, and of input that does not fit, the result tells, as a model is told.
// An empty input is {}.
//
// The call's result is the last message of Result.Messages. A run that waits for a person is interrupted, with Result.Pending; [Runtime.Resume] goes on with it. The error is as [Runtime.Run] has it.
func (r *Runtime) UseTool(ctx context.Context, session, name string, input json.RawMessage, opts ...agent.RunOption) (*agent.Result, error) {
	req := agent.Request{ContextID: session, Inputs: map[string]any{toolVar: name, inputVar: string(input)}, Message: message.User("Use the tool " + name + ".")}
	return r.serve(ctx, session, func(ctx context.Context) (*agent.Result, error) {
		a := r.current()
		defer r.drop(a)
		eng, err := a.calls.engine()
		if err != nil {
			return nil, err
		}
		return agent.Run(ctx, a.agent, eng, req, r.runOptions(a, session, opts)...)
	})
}

// UsedTool reports whether a Result is of a run that was one tool call, begun by [Runtime.UseTool]. Somebody may have gone on with it by [Runtime.Resume].
func UsedTool(res *agent.Result) bool {
	if res.LastBoard == nil {
		return false
	}
	_, tool := res.LastBoard.Var(toolVar).(string)
	_, input := res.LastBoard.Var(inputVar).(string)
	return tool && input
}

// calls are an assembly's tools, for calls that no model asks for.
type calls struct {
	defs   []tool.Definition
	skills []project.Skill
	engine func() (engine.Engine, error) // made when it is first needed
}

func newCalls(cfg loop.Config, known *project.Project) calls {
	c := calls{engine: sync.OnceValues(func() (engine.Engine, error) { return NewToolEngine(cfg) })}
	for _, t := range cfg.Tools {
		c.defs = append(c.defs, t.Definition())
	}
	if known != nil {
		c.skills = known.Skills
	}
	return c
}

// engineOf gives the engine that drives a session's last run: the agent's, or that of tool calls.
func (r *Runtime) engineOf(ctx context.Context, a *assembly, session string) (engine.Engine, error) {
	log, err := journal.Open(ctx, r.opts.Journal, session)
	if err != nil {
		return nil, err
	}
	if log.State().Engine != ToolEngine {
		return a.engine, nil
	}
	return a.calls.engine()
}

// The inputs of a run that is a tool call.
const (
	toolVar  = "pawl.tool"
	inputVar = "pawl.input"
)

// oneCall is the engine of a run that is one tool call. Its effects are the loop's own.
type oneCall struct{ *loop.Engine }

// Capabilities says that it resumes.
func (oneCall) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: ToolEngine, Resume: true}
}

// NewToolEngine makes the engine of runs that are one tool call, as [Runtime.UseTool] begins them: for who replays them (agent.Replay), or goes on with them, without a Runtime. Of the loop's Config its tools, limits and logger count; it has no model.
func NewToolEngine(cfg loop.Config) (engine.Engine, error) {
	l, err := loop.New(loop.Config{Model: loop.NoModel(), Tools: cfg.Tools, Limits: cfg.Limits, Logger: cfg.Logger, Revision: cfg.Revision})
	if err != nil {
		return nil, err
	}
	return oneCall{l}, nil
}

// Execute makes the call that the run's inputs say, and puts it into the transcript with its result.
func (e oneCall) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	var in [2]string
	for i, name := range []string{toolVar, inputVar} {
		s, ok := board.Var(name).(string)
		if !ok {
			return board, errdefs.Validation.Errorf("pawl: the run's input %q is no text: it was begun by something else than UseTool", name)
		}
		in[i] = s
	}
	call := message.ToolCall{ID: "call", Name: in[0], Input: in[1]}
	results, err := e.Use(ctx, engine.StepsOf(run, host, e), run, call)
	if err == nil {
		call.ID = results[0].Call
		board.Append(engine.MainChannel, message.Assistant("", call), message.Results(results...))
	}
	return board, err
}
