package scripted

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/pawl-dev/pawl/model"
)

// fields is what a mapping may have: for each name, what takes its value in.
type fields map[string]func(ast.Node) error

// script reads the whole file.
func (p *file) script(n ast.Node) (*Script, error) {
	s := &Script{Name: p.name}
	err := p.mapping(n, "a script", fields{
		"turns":  func(n ast.Node) error { return p.turns(n, &s.Turns) },
		"agents": func(n ast.Node) error { return p.agents(n, s) },
		"moves":  p.truth("moves", &s.Moves),
	})
	if err == nil && s.Turns == nil {
		err = p.fail(n, "the script has no turns: give turns, a list of entries")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (p *file) agents(n ast.Node, s *Script) error {
	s.Agents = map[string][]Turn{}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return p.wrong(n, "agents", "a mapping of names to {turns: [...]}")
	}
	for _, v := range m.Values {
		name := key(v)
		var turns []Turn
		err := p.mapping(v.Value, "an agent", fields{"turns": func(n ast.Node) error { return p.turns(n, &turns) }})
		if err == nil && turns == nil {
			err = p.fail(v, "the agent %q has no turns: give turns, a list of entries", name)
		}
		if err != nil {
			return err
		}
		s.Agents[name] = turns
	}
	return nil
}

func (p *file) turns(n ast.Node, into *[]Turn) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return p.wrong(n, "turns", "a list of entries")
	}
	if len(list.Values) == 0 {
		return p.fail(n, "the script is empty: give at least one turn")
	}
	for _, v := range list.Values {
		var t Turn
		err := p.mapping(v, "a turn", fields{
			"text":       p.text("text", &t.Text),
			"reasoning":  p.text("reasoning", &t.Reasoning),
			"tool_calls": func(n ast.Node) error { return p.calls(n, &t.Calls) },
			"usage":      func(n ast.Node) error { return p.usage(n, &t.Usage) },
			"stop":       func(n ast.Node) error { return p.stop(n, &t.Stop) },
			"when":       func(n ast.Node) error { return p.when(n, &t.When) },
			"error":      func(n ast.Node) error { return p.failure(n, &t) },
			"delay":      p.duration("delay", &t.Delay),
		})
		if err != nil {
			return err
		}
		if t.Error == nil && t.blank() && t.Stop == "" && hasText(v) {
			t.Stop = model.StopEnd // text: "" asks for a blank reply
		}
		if said := t.problem(); said != "" {
			return p.fail(v, "%s", said)
		}
		*into = append(*into, t)
	}
	return nil
}

func (p *file) calls(n ast.Node, into *[]Call) error {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return p.wrong(n, "tool_calls", "a list of {id, name, input}")
	}
	for _, v := range list.Values {
		var c Call
		err := p.mapping(v, "a tool call", fields{
			"id":    p.text("id", &c.ID),
			"name":  p.text("name", &c.Name),
			"input": func(n ast.Node) error { return p.input(n, &c.Input) },
		})
		if err != nil {
			return err
		}
		if c.Name == "" {
			return p.fail(v, "a tool call has no name: give the name of a tool")
		}
		*into = append(*into, c)
	}
	return nil
}

func (p *file) usage(n ast.Node, u *model.Usage) error {
	count := func(name string, into *int) func(ast.Node) error { return p.number(name, 0, math.MaxInt32, into) }
	return p.mapping(n, "usage", fields{
		"input_tokens":       count("input_tokens", &u.Input),
		"output_tokens":      count("output_tokens", &u.Output),
		"cache_read_tokens":  count("cache_read_tokens", &u.CacheRead),
		"cache_write_tokens": count("cache_write_tokens", &u.CacheWrite),
		"reasoning_tokens":   count("reasoning_tokens", &u.Reasoning),
	})
}

var stops = []string{
	string(model.StopEnd), string(model.StopTools), string(model.StopLength), string(model.StopSequence), string(model.StopPause),
	string(model.StopRefusal), string(model.StopFilter), string(model.StopWindow), string(model.StopBadCall),
}

func (p *file) stop(n ast.Node, into *model.StopReason) error {
	var s string
	if err := p.text("stop", &s)(n); err != nil {
		return err
	}
	if !slices.Contains(stops, s) {
		return p.fail(n, "stop: unknown reason %q: give one of %s", s, strings.Join(stops, ", "))
	}
	*into = model.StopReason(s)
	return nil
}

func (p *file) when(n ast.Node, w *When) error {
	err := p.mapping(n, "when", fields{
		"tool_error": p.text("tool_error", &w.ToolError),
		"tool_ok":    p.text("tool_ok", &w.ToolOK),
		"contains":   p.text("contains", &w.Contains),
	})
	if err == nil && *w == (When{}) {
		return p.fail(n, "when has no condition: give tool_error, tool_ok or contains")
	}
	return err
}

func (p *file) failure(n ast.Node, t *Turn) error {
	t.Error = &Failure{}
	return p.mapping(n, "error", fields{
		"status":      p.number("status", 400, 599, &t.Error.Status),
		"retry_after": p.duration("retry_after", &t.Error.RetryAfter),
		"code":        p.text("code", &t.Error.Code),
		"message":     p.text("message", &t.Error.Message),
		"mid_stream":  p.truth("mid_stream", &t.Error.MidStream),
	})
}

// mapping reads n field by field; what is n in words.
func (p *file) mapping(n ast.Node, what string, known fields) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return p.wrong(n, what, "a mapping with "+names(known))
	}
	for _, v := range m.Values {
		read, ok := known[key(v)]
		if !ok {
			return p.fail(v, "unknown field %q in %s: it may have %s", key(v), what, names(known))
		}
		if err := read(v.Value); err != nil {
			return err
		}
	}
	return nil
}

func names(known fields) string {
	list := make([]string, 0, len(known))
	for name := range known {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (p *file) text(name string, into *string) func(ast.Node) error {
	return func(n ast.Node) error {
		switch n := n.(type) {
		case *ast.StringNode:
			*into = n.Value
		case *ast.LiteralNode:
			*into = n.Value.Value
		default:
			return p.wrong(n, name, "a text (in quotes, if need be)")
		}
		return nil
	}
}

func (p *file) number(name string, least, most int64, into *int) func(ast.Node) error {
	return func(n ast.Node) error {
		i, ok := n.(*ast.IntegerNode)
		if !ok {
			return p.wrong(n, name, "a whole number")
		}
		var v int64 = -1
		switch x := i.Value.(type) {
		case int64:
			v = x
		case uint64:
			v = int64(min(x, math.MaxInt64))
		}
		if v < least || v > most {
			return p.fail(n, "%s: %v is out of range: give %d to %d", name, i.Value, least, most)
		}
		*into = int(v)
		return nil
	}
}

func (p *file) truth(name string, into *bool) func(ast.Node) error {
	return func(n ast.Node) error {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return p.wrong(n, name, "true or false")
		}
		*into = b.Value
		return nil
	}
}

func (p *file) duration(name string, into *time.Duration) func(ast.Node) error {
	return func(n ast.Node) error {
		s, ok := n.(*ast.StringNode)
		if !ok {
			return p.wrong(n, name, "a duration such as 200ms or 1.5s")
		}
		d, err := time.ParseDuration(s.Value)
		if err != nil || d < 0 {
			return p.fail(n, "%s: %q is no duration: give one such as 200ms or 1.5s", name, s.Value)
		}
		*into = d
		return nil
	}
}

// wrong is the error for a value of another kind than want.
func (p *file) wrong(n ast.Node, name, want string) error {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return p.fail(n, "%s: anchors, aliases and tags are not for scripts: write the value itself", name)
	}
	return p.fail(n, "%s: %s where %s has to stand", name, kindOf(n), want)
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	}
	return "something else"
}

// key gives the name of a field.
func key(v *ast.MappingValueNode) string {
	switch k := v.Key.(type) {
	case *ast.StringNode:
		return k.Value
	case ast.ScalarNode:
		return k.GetToken().Value
	}
	return v.Key.String()
}

// hasText reports whether a turn has the field text: empty, it makes a blank reply.
func hasText(n ast.Node) bool {
	m, ok := n.(*ast.MappingNode)
	return ok && slices.ContainsFunc(m.Values, func(v *ast.MappingValueNode) bool { return key(v) == "text" })
}
