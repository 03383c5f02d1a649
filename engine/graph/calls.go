package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func (s *scope) unknownTool(path, name string, set tool.Set) {
	if s.kinds.Absent {
		return
	}
	var names []string
	for _, t := range set.Models(nil) {
		names = append(names, t.Name)
	}
	s.add(path, meant(name, names, "name one that the run has, in Go of Kinds.Loop.Tools"), "there is no tool %s", quote(name))
}

type toolConfig struct {
	Tool    string         `json:"tool"`
	Args    map[string]any `json:"args"`
	Output  string         `json:"output"`
	JSON    bool           `json:"json"`
	OnError string         `json:"on_error"`
}

func (c toolConfig) sets() []output { return []output{{"output", c.Output}} }

func (c toolConfig) compile(s *scope, path string, _ *node) work {
	if _, _, ok := s.set.Lookup(c.Tool); !ok {
		s.unknownTool(path+".tool", c.Tool, s.set)
	}
	if c.OnError != "" && c.OnError != "fail" && c.OnError != "continue" {
		s.add(path+".on_error", "write fail or continue", "it is %s", quote(c.OnError))
	}
	if c.JSON && c.Output == "" {
		s.add(path+".json", "name an output, or leave it out", "what the tool gives is read for nobody")
	}
	args := tree{kind: '{'}
	if c.Args != nil {
		args = s.tree(path+".args", c.Args)
	}
	return &toolWork{c, args}
}

// toolWork makes a call.
type toolWork struct {
	toolConfig
	args tree
}

func (w *toolWork) do(ctx context.Context, v *visit) error {
	input, err := w.args.value(v.seen)
	if err != nil {
		return err
	}
	call, err := v.call(w.Tool, input)
	if err != nil {
		return err
	}
	work := func() (*journal.Board, error) { return w.use(ctx, v, call) }
	if v.node.cache == nil {
		_, err = work()
		return err
	}
	judged, err := v.engine.tools.Judge(ctx, v.do, v.run, call)
	if err != nil {
		return err
	}
	if judged.Verdict != hook.Allow.String() || judged.Ends != "" || judged.Context != "" { // who has to be asked is asked, and who refuses, or has something to say of this call, is heard
		_, err = work()
		return err
	}
	return v.cached(ctx, w.Tool, []any{cmp.Or(judged.Input, call.Input)}, work)
}

// use runs the tool, and gives what that changed.
func (w *toolWork) use(ctx context.Context, v *visit, call message.ToolCall) (*journal.Board, error) {
	r, class, err := v.use(ctx, call)
	if err != nil {
		return nil, err
	}
	if r.IsError {
		failed := &failedCall{errdefs.Aborted.Errorf("the tool %s failed: %s", w.Tool, r.Content), class}
		if w.OnError != "continue" || !v.last && v.again(failed) {
			return nil, failed
		}
	}
	var value any = r.Content
	if w.JSON && !r.IsError {
		if value, err = readJSON(r.Content); err != nil {
			return nil, errdefs.Validation.Errorf("what the tool %s gives is no JSON: %w", w.Tool, err)
		}
	}
	if v.set(w.Output, value); r.IsError {
		return nil, nil
	}
	return &journal.Board{Set: v.wrote(w.Output)}, nil
}

// call is one that no model asked for.
func (v *visit) call(name string, input any) (message.ToolCall, error) {
	b, err := marshal(input)
	return message.ToolCall{ID: v.scope, Name: name, Input: string(b)}, err
}

// failedCall is a result that is an error. The class of what the tool failed with, nil for none, says whether another attempt may help.
type failedCall struct {
	error
	class *errdefs.Class
}

func (f *failedCall) Unwrap() error { return f.error }

// calling are the steps of a call: they see what the tool came to, and have a further attempt repeat the first one.
type calling struct {
	engine.Steps
	first journal.Key // zero: this is the first
	came  *journal.ToolFinished
}

func (c calling) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	effects = slices.Clone(effects)
	for i, e := range effects {
		if u, ok := e.(engine.UseTool); ok {
			u.Repeats = c.first
			effects[i] = u
		}
	}
	out, err := c.Steps.Do(ctx, effects...)
	for _, d := range out {
		if f, ok := d.(journal.ToolFinished); ok {
			*c.came = f
		}
	}
	return out, err
}

// use makes a call; the result has the id that it has on record, and with an error of the tool's own its class, if it has one.
func (v *visit) use(ctx context.Context, c message.ToolCall) (message.ToolResult, *errdefs.Class, error) {
	do := calling{Steps: v.do, came: &journal.ToolFinished{}}
	if v.first != "" {
		do.first = journal.Key{Scope: v.first, Op: "tool", ID: v.run.CallID(v.first)}
	}
	results, err := v.engine.tools.Use(ctx, do, v.run, c)
	if err != nil {
		return message.ToolResult{}, nil, err
	}
	return results[0], errdefs.Named(do.came.Class), nil
}

// taskTool is the tool that gives tasks to agents: agent.TaskName.
const taskTool = "task"

type agentConfig struct {
	Agent  string `json:"agent"`
	Prompt string `json:"prompt"`
	Output string `json:"output"`
}

func (c agentConfig) sets() []output { return []output{{"output", c.Output}} }

func (c agentConfig) compile(s *scope, path string, _ *node) work {
	if c.Prompt == "" {
		s.add(path+".prompt", "say what the agent is to do", "it is missing")
	}
	prompt := s.template(path+".prompt", c.Prompt)
	if _, _, ok := s.set.Lookup(taskTool); !ok {
		s.unknownTool(path+".agent", taskTool, s.set)
	} else if b, err := marshal(map[string]any{"agent": c.Agent, "prompt": "p"}); err == nil {
		if _, err := s.set.Check(message.ToolCall{Name: taskTool, Input: string(b)}); err != nil {
			s.add(path+".agent", "write the name of an agent that can be given tasks", "%v", err)
		}
	}
	return works(func(ctx context.Context, v *visit) error {
		text, err := prompt.text(v.seen)
		if err != nil {
			return err
		}
		call, err := v.call(taskTool, map[string]any{"agent": c.Agent, "prompt": text})
		if err != nil {
			return err
		}
		r, _, err := v.use(ctx, call)
		if err != nil {
			return err
		}
		if r.IsError {
			return errdefs.Aborted.Errorf("the agent %s failed: %s", c.Agent, r.Content)
		}
		v.set(c.Output, r.Content)
		return nil
	})
}

type handoffConfig struct {
	none
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	Note   string `json:"note"`
}

func (c handoffConfig) compile(s *scope, path string, n *node) work {
	if _, _, ok := s.set.Lookup(c.Tool); !ok {
		s.unknownTool(path+".tool", c.Tool, s.set)
	}
	for i, e := range s.def.Edges {
		if e.From == n.id && e.To != End {
			s.add(fmt.Sprintf("%sedges[%d].to", strings.TrimSuffix(n.path, fmt.Sprintf("nodes[%d]", n.at)), i), "write "+End, "who has handed over does nothing more")
		}
	}
	reason, note := s.template(path+".reason", c.Reason), s.template(path+".note", c.Note)
	return works(func(ctx context.Context, v *visit) error {
		input := map[string]any{}
		for _, f := range []struct {
			name string
			is   template
		}{{"reason", reason}, {"note", note}} {
			text, err := f.is.text(v.seen)
			if err != nil {
				return err
			}
			if text != "" {
				input[f.name] = text
			}
		}
		call, err := v.call(c.Tool, input)
		if err != nil {
			return err
		}
		r, _, err := v.use(ctx, call)
		if err != nil {
			return err
		}
		if r.IsError {
			return errdefs.Aborted.Errorf("%s failed: %s", c.Tool, r.Content)
		}
		call.ID = r.Call
		v.board.Append(engine.MainChannel, message.Assistant("", call), message.Results(r))
		return nil
	})
}
