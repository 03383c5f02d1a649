package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/internal/choice"
	"github.com/pawl-dev/pawl/internal/schema"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// A spec is the config of a node.
type spec interface {
	read(p *problems, path string, config map[string]any) spec // nil with a problem
	sets() []output
	compile(s *scope, path string, n *node) work
}

// output is a var that a config names.
type output struct{ field, name string }

// specs are the types of nodes.
var specs map[string]func() spec

func init() { // they name each other by way of the compiler
	specs = map[string]func() spec{
		"model":    func() spec { return &config[modelConfig]{} },
		"tool":     func() spec { return &config[toolConfig]{} },
		"agent":    func() spec { return &config[agentConfig]{} },
		"handoff":  func() spec { return &config[handoffConfig]{} },
		"func":     func() spec { return &config[funcConfig]{} },
		"script":   func() spec { return &config[scriptConfig]{} },
		"template": func() spec { return &config[templateConfig]{} },
		"router":   func() spec { return &config[routerConfig]{} },
		"gate":     func() spec { return &config[gateConfig]{} },
		"approval": func() spec { return &config[approvalConfig]{} },
		"subgraph": func() spec { return &config[subgraphConfig]{} },
		"map":      func() spec { return &config[mapConfig]{} },
	}
}

// pure are the types whose nodes compute and do nothing else: what they give needs no place on record.
var pure = []string{"script", "template", "router", "gate"}

// config is a spec by a struct.
type config[C configured] struct{ is C }

type configured interface {
	sets() []output
	compile(s *scope, path string, n *node) work
}

func (c *config[C]) read(p *problems, path string, from map[string]any) spec {
	before := len(p.all)
	if from == nil {
		from = map[string]any{}
	}
	if decode(p, path, from, reflect.ValueOf(&c.is).Elem()); len(p.all) > before {
		return nil
	}
	return c
}

func (c *config[C]) sets() []output { return c.is.sets() }

func (c *config[C]) compile(s *scope, path string, n *node) work { return c.is.compile(s, path, n) }

// works is work by a function.
type works func(ctx context.Context, v *visit) error

func (f works) do(ctx context.Context, v *visit) error { return f(ctx, v) }

// none sets nothing.
type none struct{}

func (none) sets() []output { return nil }

// set puts a value into the var of an output; "" is none.
func (v *visit) set(name string, value any) {
	if name != "" {
		v.board.SetVar(name, value)
	}
}

// Type is a type of nodes of the program's own: see [Typed].
type Type struct {
	read func(p *problems, path string, config map[string]any) NodeFunc
}

// Typed makes a type of nodes whose config is a C, read strictly when a graph is compiled: a field that C does not have, or a value of another type, is a problem with its path. Names of fields are
// those that encoding/json takes.
func Typed[C any](f func(ctx context.Context, config C, b engine.Snapshot) (journal.Board, error)) Type {
	return Type{func(p *problems, path string, from map[string]any) NodeFunc {
		var c C
		before := len(p.all)
		if from == nil {
			from = map[string]any{}
		}
		if decode(p, path, from, reflect.ValueOf(&c).Elem()); len(p.all) > before {
			return nil
		}
		return func(ctx context.Context, b engine.Snapshot) (journal.Board, error) { return f(ctx, c, b) }
	}}
}

// typedSpec is a node of one of the program's types; without one it is absent.
type typedSpec struct {
	none
	own Type
	fn  NodeFunc
}

func (t *typedSpec) read(p *problems, path string, from map[string]any) spec {
	if t.own.read == nil {
		p.add(path, "make it with graph.Typed", "the type is not made")
		return nil
	}
	if t.fn = t.own.read(p, path, from); t.fn == nil {
		return nil
	}
	return t
}

func (t *typedSpec) compile(_ *scope, _ string, n *node) work {
	n.fn = t.fn
	return works(callFunc)
}

// callFunc runs a node's function, once.
func callFunc(ctx context.Context, v *visit) error {
	return v.cached(ctx, "", nil, func() (*journal.Board, error) {
		out, err := engine.Do[journal.Visited](ctx, v.do, call{Node: v.node.id, Board: v.fork})
		if err == nil {
			v.board.Apply(out.Board)
		}
		return &out.Board, err
	})
}

type funcConfig struct {
	none
	Func string `json:"func"`
}

func (c funcConfig) compile(s *scope, path string, n *node) work {
	n.fn = s.kinds.Funcs[c.Func]
	if n.fn == nil && !s.kinds.Absent {
		s.add(path+".func", meant(c.Func, slices.Sorted(maps.Keys(s.kinds.Funcs)), "add it to Kinds.Funcs"), "there is no function %s", quote(c.Func))
	}
	return works(callFunc)
}

type modelConfig struct {
	Loop     string         `json:"loop"`
	System   string         `json:"system"`
	Prompt   string         `json:"prompt"`
	Model    string         `json:"model"`
	Tools    []string       `json:"tools"`
	Channel  string         `json:"channel"`
	Output   string         `json:"output"`
	Schema   map[string]any `json:"schema"`
	MaxSteps int            `json:"max_steps"`
}

func (c modelConfig) sets() []output { return []output{{"output", c.Output}} }

// modelWork is the loop on a channel.
type modelWork struct {
	system, prompt *template
	channel        string
	output         string
	json           bool
	schema         *schema.Schema
}

func (c modelConfig) compile(s *scope, path string, n *node) work {
	s.models = true
	w := &modelWork{channel: c.Channel, output: c.Output}
	if w.channel == "" {
		w.channel = engine.MainChannel
	}
	if c.System != "" {
		t := s.template(path+".system", c.System)
		w.system = &t
	}
	if c.Prompt != "" {
		t := s.template(path+".prompt", c.Prompt)
		w.prompt = &t
	}
	cfg, set := s.loop(path, c.Loop)
	cfg.Channel = w.channel
	switch {
	case c.Model != "" && s.kinds.Absent:
	case c.Model != "" && s.kinds.Models == nil:
		s.add(path+".model", "leave it out, or give Kinds.Models", "no other models can be had here")
	case c.Model != "":
		m, err := s.kinds.Models(c.Model)
		if err != nil {
			s.add(path+".model", "", "%v", err)
			return w
		}
		cfg.Model = m
	case cfg.Model == loop.NoModel() && !s.kinds.Absent:
		s.add(path, "give its loop in Kinds a Model, or the node one", "there is no model")
	}
	if c.Tools != nil && !s.kinds.Absent {
		cfg.Tools = nil
		for i, name := range c.Tools {
			if t, _, ok := set.Lookup(name); ok {
				cfg.Tools = append(cfg.Tools, t)
			} else {
				s.unknownTool(fmt.Sprintf("%s.tools[%d]", path, i), name, set)
			}
		}
	}
	if c.Schema != nil {
		text, err := marshal(c.Schema)
		if err == nil {
			w.schema, err = schema.Compile(text)
		}
		if err != nil {
			s.add(path+".schema", "write a JSON Schema", "%v", err)
			return w
		}
		cfg.Output, w.json = text, true
	}
	if c.MaxSteps < 0 {
		s.add(path+".max_steps", "write a number from 1", "it is %d", c.MaxSteps)
	} else if c.MaxSteps > 0 {
		cfg.Limits.Steps = c.MaxSteps
	}
	l, err := loop.New(cfg)
	if err != nil {
		s.add(path, "", "%v", err)
		return w
	}
	n.loop = l
	n.given = l.Capabilities().Model
	for _, t := range cfg.Tools {
		n.given += " " + t.Definition().Name
	}
	return w
}

func (w *modelWork) do(ctx context.Context, v *visit) error {
	run := v.run
	if w.system != nil {
		text, err := w.system.text(v.seen)
		if err != nil {
			return err
		}
		run.System = text
	}
	prompt := ""
	if w.prompt != nil {
		text, err := w.prompt.text(v.seen)
		if err != nil {
			return err
		}
		prompt = text
	}
	var given []any
	if c := v.node.cache; c != nil && c.key == nil {
		given = []any{run.System, prompt, v.board.Channel(w.channel).Messages()}
	}
	return v.cached(ctx, "", given, func() (*journal.Board, error) { return w.talk(ctx, v, run, prompt) })
}

// talk has the model answer, and gives what that changed.
func (w *modelWork) talk(ctx context.Context, v *visit, run engine.Run, prompt string) (*journal.Board, error) {
	before := v.board.Snapshot()
	if w.prompt != nil {
		v.board.Append(w.channel, message.User(prompt))
	}
	if err := v.node.loop.Converse(ctx, v.do, run, v.board); err != nil {
		return nil, err
	}
	if err := w.read(v, before.Channels[w.channel].Len()); err != nil {
		return nil, err
	}
	change := journal.Diff(engine.Snapshot{Channels: before.Channels}, engine.Snapshot{Channels: v.board.Snapshot().Channels})
	change.Set = v.wrote(w.output)
	return &change, nil
}

// wrote is the var of an output, as the node has set it: also when it was so before.
func (v *visit) wrote(output string) journal.Vars {
	if output == "" {
		return nil
	}
	return journal.Vars{output: v.board.Var(output)}
}

// read sets the output from the answer, which begins at a message of the channel.
func (w *modelWork) read(v *visit, from int) error {
	if w.output == "" {
		return nil
	}
	all := v.board.Channel(w.channel)
	text := engine.Answer(all.Slice(min(from, all.Len()), all.Len()).Messages())
	if text == "" { // a compaction made it shorter
		text = engine.Answer(all.Messages())
	}
	if !w.json {
		v.set(w.output, text)
		return nil
	}
	value, err := readJSON(text)
	if err != nil {
		return errdefs.Validation.Errorf("the model's reply is no JSON: %w", err)
	}
	if doc, err := schema.Parse([]byte(text)); err == nil {
		if faults, err := w.schema.Check(doc, false); err == nil && len(faults) > 0 {
			return errdefs.Validation.Errorf("the model's reply does not fit its schema: /%s: %s", strings.Join(faults[0].At, "/"), faults[0].Why())
		}
	}
	v.set(w.output, value)
	return nil
}

// readJSON gives a JSON text as vars have it: an integer is an int.
func readJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more behind the value")
	}
	return numbers(v)
}

// numbers makes ints and floats of numbers as they are written.
func numbers(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i, x := range v {
			var err error
			if v[i], err = numbers(x); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, x := range v {
			var err error
			if v[name], err = numbers(x); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// loop is the config that a model node has, with its tools.
func (s *scope) loop(path, name string) (loop.Config, tool.Set) {
	if name == "" {
		return s.kinds.Loop, s.set
	}
	cfg, ok := s.kinds.Loops[name]
	if !ok {
		if !s.kinds.Absent {
			s.add(path+".loop", meant(name, slices.Sorted(maps.Keys(s.kinds.Loops)), "add it to Kinds.Loops"), "there is no loop %s", quote(name))
		}
		return s.kinds.Loop, s.set
	}
	if cfg.Model == nil {
		cfg.Model = loop.NoModel()
	}
	set, err := tool.NewSet(cfg.Tools...)
	if err != nil {
		s.add(path+".loop", "", "%v", err)
		return s.kinds.Loop, s.set
	}
	return cfg, set
}

func (s *scope) unknownTool(path, name string, set tool.Set) {
	if s.kinds.Absent {
		return
	}
	var names []string
	for _, t := range set.Models(nil) {
		names = append(names, t.Name)
	}
	s.add(path, meant(name, names, "give it to Kinds.Loop.Tools"), "there is no tool %s", quote(name))
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
	if judged.Verdict != hook.Allow.String() || judged.Ends != "" { // who has to be asked is asked, and who refuses is heard
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

type scriptConfig struct {
	Source  string   `json:"source"`
	Outputs []string `json:"outputs"`
}

func (c scriptConfig) sets() (all []output) {
	for i, name := range c.Outputs {
		all = append(all, output{fmt.Sprintf("outputs[%d]", i), name})
	}
	return all
}

func (c scriptConfig) compile(s *scope, path string, _ *node) work {
	e := s.body(path+".source", c.Source)
	if len(c.Outputs) == 0 {
		s.add(path+".outputs", "name the vars that it sets", "it is missing")
	}
	return works(func(_ context.Context, v *visit) error {
		out, err := e.value(v.seen)
		if err != nil {
			return err
		}
		vars, ok := out.(map[string]any)
		if !ok && out != nil {
			return errdefs.Validation.Errorf("%s: it returned %s: return a dict of vars", e.path, kindOf(out))
		}
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			if !slices.Contains(c.Outputs, name) {
				return errdefs.Validation.Errorf("%s: it returned the var %s: name it among its outputs", e.path, quote(name))
			}
			v.set(name, vars[name])
		}
		return nil
	})
}

type templateConfig struct {
	Template string `json:"template"`
	Output   string `json:"output"`
	Role     string `json:"role"`
	Channel  string `json:"channel"`
}

func (c templateConfig) sets() []output { return []output{{"output", c.Output}} }

func (c templateConfig) compile(s *scope, path string, _ *node) work {
	t := s.template(path+".template", c.Template)
	channel := c.Channel
	if channel == "" {
		channel = engine.MainChannel
	}
	switch {
	case c.Template == "":
		s.add(path+".template", "write a text", "it is missing")
	case c.Output == "" && c.Role == "":
		s.add(path, "name an output, or a role to say it in", "the text goes nowhere")
	case c.Role != "" && c.Role != "user" && c.Role != "assistant":
		s.add(path+".role", "write user or assistant", "it is %s", quote(c.Role))
	case c.Role == "" && c.Channel != "":
		s.add(path+".channel", "write a role, or leave it out", "nothing is said on it")
	}
	return works(func(_ context.Context, v *visit) error {
		value, err := t.value(v.seen)
		if err != nil {
			return err
		}
		v.set(c.Output, value)
		if c.Role == "" {
			return nil
		}
		text, err := t.text(v.seen)
		switch {
		case err != nil:
			return err
		case text == "": // no message says nothing
		case c.Role == "user":
			v.board.Append(channel, message.User(text))
		default:
			v.board.Append(channel, message.Assistant(text))
		}
		return nil
	})
}

type routerConfig struct {
	none
	Routes []route `json:"routes"`
	Else   string  `json:"else"`
}

type route struct {
	When string `json:"when"`
	To   string `json:"to"`
}

func (c routerConfig) compile(s *scope, path string, n *node) work {
	n.first = true
	if len(c.Routes) == 0 {
		s.add(path+".routes", "write a list of {when, to}", "it is missing")
	}
	for i, r := range c.Routes {
		at := fmt.Sprintf("%s.routes[%d]", path, i)
		when := s.expr(at+".when", r.When)
		if to, ok := s.target(at+".to", r.To); ok {
			n.edges = append(n.edges, edge{to: to, when: when})
		}
	}
	if c.Else != "" {
		if to, ok := s.target(path+".else", c.Else); ok {
			n.edges = append(n.edges, edge{to: to})
		}
	}
	return works(func(context.Context, *visit) error { return nil })
}

type gateConfig struct {
	none
	Condition string `json:"condition"`
	Message   string `json:"message"`
	Else      string `json:"else"`
}

func (c gateConfig) compile(s *scope, path string, n *node) work {
	e := s.expr(path+".condition", c.Condition)
	said := s.template(path+".message", c.Message)
	if c.Else != "" {
		if c.Message != "" {
			s.add(path+".message", "leave it out, or else", "the way goes on by else, and nobody is told")
		}
		if to, ok := s.target(path+".else", c.Else); ok {
			n.edges = append(n.edges, edge{to: to, divert: true})
		}
	}
	return works(func(_ context.Context, v *visit) error {
		holds, err := e.holds(v.seen)
		if err != nil || holds {
			return err
		}
		if v.diverted = c.Else != ""; v.diverted {
			return nil
		}
		text, err := said.text(v.seen)
		if err != nil {
			return err
		}
		if text == "" {
			text = "the condition does not hold: " + c.Condition
		}
		return errdefs.PolicyDenied.Errorf("%s", text)
	})
}

type approvalConfig struct {
	Prompt  string   `json:"prompt"`
	Choices []string `json:"choices"`
	Output  string   `json:"output"`
	Text    string   `json:"text"`
}

func (c approvalConfig) sets() []output { return []output{{"output", c.Output}, {"text", c.Text}} }

func (c approvalConfig) compile(s *scope, path string, _ *node) work {
	if c.Prompt == "" {
		s.add(path+".prompt", "write what a person is to approve", "it is missing")
	}
	if c.Output == "" {
		s.add(path+".output", "name a var that has true or false", "nobody would know the answer")
	}
	if c.Choices != nil {
		if err := choice.Check(c.Choices); err != nil {
			s.add(path+".choices", "", "%s", strings.TrimPrefix(err.Error(), "choices: "))
		}
		if c.Text == "" {
			s.add(path+".text", "name a var that has the choice", "nobody would know it")
		}
	}
	return &approvalWork{c, s.template(path+".prompt", c.Prompt)}
}

// approvalWork asks a person.
type approvalWork struct {
	approvalConfig
	prompt template
}

func (w *approvalWork) do(ctx context.Context, v *visit) error {
	question, err := w.prompt.text(v.seen)
	if err != nil {
		return err
	}
	name, shown := v.scope, choice.Prompt(question, w.Choices)
	for try := 1; ; try++ {
		q := journal.Asked{ID: v.run.CallID(name), Prompt: shown, Confirm: w.Choices == nil, TTL: v.run.AskTTL.Milliseconds()}
		a, err := engine.Do[journal.Answered](ctx, v.do, engine.Ask{Asked: q})
		if err != nil {
			return err
		}
		said, ok := choice.Of(w.Choices, a.Text)
		switch {
		case !a.Approved:
			said = a.Text
		case !ok && try == choice.Tries:
			return choice.None(a.Text)
		case !ok:
			name, shown = v.scope+"/"+strconv.Itoa(try+1), choice.Again(question, w.Choices, a.Text)
			continue
		}
		v.set(w.Output, a.Approved)
		v.set(w.Text, said)
		return nil
	}
}
