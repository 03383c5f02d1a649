package graph

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
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
