package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
)

// Names that every expression has, besides those of vars.
const (
	nameVars   = "vars"   // all vars, a dict
	nameLast   = "last"   // the last message of the main channel
	nameVisits = "visits" // how often each node was visited, a dict
)

var ownNames = []string{nameVars, nameLast, nameVisits}

// view is what an expression sees.
type view struct {
	ctx    context.Context //nolint:containedctx // of the walk, with which an evaluation ends
	board  engine.Snapshot
	visits *counts
}

// counts are visits of nodes. They are counted between waves, and only looked at within one.
type counts struct{ of map[string]int }

func newCounts() *counts { return &counts{map[string]int{}} }

// add counts a visit, and says the how manieth it is.
func (c *counts) add(id string) int {
	c.of[id]++
	return c.of[id]
}

// expr is a compiled expression, or the body of a function.
type expr struct {
	star *star.Expr
	path string
	bare string // the one name that it consists of
}

// values of the names that the expression uses. What is not set is errdefs.Validation.
func (e *expr) values(v view) (map[string]starlark.Value, error) {
	out := map[string]starlark.Value{}
	for _, name := range e.star.Names() {
		var is any
		switch name {
		case nameVars:
			is = map[string]any(v.board.Vars)
		case nameLast:
			is = v.board.Channels[engine.MainChannel].Last()
		case nameVisits:
			all := make(map[string]any, len(v.visits.of))
			for id, n := range v.visits.of {
				all[id] = n
			}
			is = all
		default:
			var set bool
			if is, set = v.board.Vars[name]; !set {
				return nil, errdefs.Validation.Errorf("%s: the var %s is not set here: set it before, or ask for vars.get(%q)", e.path, name, name)
			}
		}
		val, err := star.To(is)
		if err != nil {
			return nil, errdefs.Validation.Errorf("%s: %s: %w", e.path, name, err)
		}
		out[name] = val
	}
	return out, nil
}

func (e *expr) eval(v view) (starlark.Value, error) {
	names, err := e.values(v)
	if err != nil {
		return nil, err
	}
	return e.star.Call(v.ctx, star.NewMeter(limits), names)
}

// limits of an evaluation.
var limits = star.Limits{Steps: 100_000, Bytes: 256 << 20}

// holds evaluates a condition.
func (e *expr) holds(v view) (bool, error) {
	val, err := e.eval(v)
	if err != nil {
		return false, err
	}
	b, ok := val.(starlark.Bool)
	if !ok {
		return false, errdefs.Validation.Errorf("%s: the condition is a %s: make it a bool, by a comparison or bool(…)", e.path, val.Type())
	}
	return bool(b), nil
}

// value is what the expression gives, as vars have it. A var by itself stays the value that it is.
func (e *expr) value(v view) (any, error) {
	if is, set := v.board.Vars[e.bare]; e.bare != "" && set {
		return is, nil
	}
	val, err := e.eval(v)
	if err != nil {
		return nil, err
	}
	out, err := star.From(val)
	if err != nil {
		return nil, errdefs.Validation.Errorf("%s: %w", e.path, err)
	}
	return out, nil
}

// text is what the expression gives, for a text.
func (e *expr) text(v view) (string, error) {
	val, err := e.eval(v)
	if err != nil {
		return "", err
	}
	switch val := val.(type) {
	case starlark.NoneType:
		return "", nil
	case starlark.String:
		return string(val), nil
	case star.Message:
		return val.Text(), nil
	case *starlark.Dict, *starlark.List, starlark.Tuple:
		out, err := star.From(val)
		if err != nil {
			return "", errdefs.Validation.Errorf("%s: %w", e.path, err)
		}
		b, err := marshal(out)
		return string(b), err
	}
	return val.String(), nil
}

// marshal is json.Marshal without HTML escapes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errdefs.Validation.Errorf("graph: as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// expr compiles an expression; nil with a problem.
func (c *scope) expr(path, source string) *expr {
	return c.starlark(path, source, star.Compile)
}

// body compiles the body of a function.
func (c *scope) body(path, source string) *expr { return c.starlark(path, source, star.CompileBody) }

func (c *scope) starlark(path, source string, compile func(where, source string, names ...string) (*star.Expr, error)) *expr {
	if strings.TrimSpace(source) == "" {
		c.add(path, "write an expression", "it is empty")
		return nil
	}
	if len(source) > 100_000 {
		c.add(path, "make it smaller", "it is over 100,000 bytes")
		return nil
	}
	e := &expr{path: path}
	var names []string
	for _, name := range freeNames(source) {
		if slices.Contains(ownNames, name) || slices.Contains(c.vars, name) {
			names = append(names, name)
		}
	}
	var err error
	if e.star, err = compile(path, source, names...); err != nil {
		c.wrongSource(path, err)
		return nil
	}
	if trimmed := strings.TrimSpace(source); slices.Contains(c.vars, trimmed) {
		e.bare = trimmed
	}
	return e
}

// wrongSource makes problems of what is wrong with a source.
func (c *scope) wrongSource(path string, err error) {
	var all *star.Error
	if !errors.As(err, &all) {
		c.add(path, "", "%v", err)
		return
	}
	for _, p := range all.Problems {
		fix := ""
		if name, ok := strings.CutPrefix(p.Reason, "undefined: "); ok {
			known := slices.Concat(c.vars, ownNames)
			fix = meant(name, known, "declare it in vars, or name it as the output of a node")
		}
		at := strings.TrimPrefix(p.Place, path+":")
		c.add(path, fix, "%s: %s", at, p.Reason)
	}
}

// freeNames are the identifiers of a source that may be names from outside: not fields, not names of arguments, and none that the source gives a value itself.
func freeNames(source string) []string {
	opts := &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
	f, err := opts.Parse("", source, 0)
	if err != nil {
		return nil // it is found wrong
	}
	found, own := map[string]bool{}, map[string]bool{}
	binds := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Ident:
				own[n.Name] = true
			case *syntax.IndexExpr, *syntax.DotExpr:
				return false
			}
			return true
		})
	}
	var look func(n syntax.Node) bool
	look = func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Ident:
			found[n.Name] = true
		case *syntax.AssignStmt:
			binds(n.LHS)
		case *syntax.ForStmt:
			binds(n.Vars)
		case *syntax.ForClause:
			binds(n.Vars)
		case *syntax.DefStmt:
			own[n.Name.Name] = true
			for _, p := range n.Params {
				binds(p)
			}
		case *syntax.LambdaExpr:
			for _, p := range n.Params {
				binds(p)
			}
		case *syntax.DotExpr:
			syntax.Walk(n.X, look)
			return false
		case *syntax.CallExpr:
			syntax.Walk(n.Fn, look)
			for _, a := range n.Args {
				if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
					a = b.Y
				}
				syntax.Walk(a, look)
			}
			return false
		}
		return true
	}
	for _, s := range f.Stmts {
		syntax.Walk(s, look)
	}
	maps.DeleteFunc(found, func(name string, _ bool) bool { return own[name] })
	return slices.Sorted(maps.Keys(found))
}

// template is a text with expressions in it.
type template struct {
	parts []part
	whole *expr // it is this expression and nothing else
}

type part struct {
	text string
	expr *expr // nil: text
}

// template compiles a text in which ${EXPRESSION} stands for a value, and $${ for itself.
func (c *scope) template(path, text string) (t template) {
	plain := ""
	for text != "" {
		i := strings.Index(text, "${")
		if i < 0 {
			break
		}
		if i > 0 && text[i-1] == '$' {
			plain, text = plain+text[:i-1]+"${", text[i+2:]
			continue
		}
		n := closing(text[i+2:])
		if n < 0 {
			c.add(path, "write ${EXPRESSION}, and $${ for the characters themselves", "%s has no end", quote(text[i:]))
			return t
		}
		if plain += text[:i]; plain != "" {
			t.parts = append(t.parts, part{text: plain})
		}
		e := c.expr(path, text[i+2:i+2+n])
		t.parts = append(t.parts, part{expr: e})
		plain, text = "", text[i+2+n+1:]
	}
	if plain += text; plain != "" {
		t.parts = append(t.parts, part{text: plain})
	}
	if len(t.parts) == 1 {
		t.whole = t.parts[0].expr
	}
	return t
}

// closing is where the bracket is that ends an expression; -1 when there is none.
func closing(s string) int {
	depth, quoted := 0, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted != 0 && c == '\\':
			i++
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == '{' || c == '[' || c == '(':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}' || c == ']' || c == ')':
			depth--
		}
	}
	return -1
}

// text is the template with its values in it.
func (t template) text(v view) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.text)
			continue
		}
		s, err := p.expr.text(v)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// value is the text, or, where the template is one expression, its value with its type.
func (t template) value(v view) (any, error) {
	if t.whole != nil {
		return t.whole.value(v)
	}
	return t.text(v)
}

// tree is a value of a config in which every text is a template.
type tree struct {
	text   *template
	list   []tree
	fields []field
	other  any
	kind   byte // 't', '[', '{' or 0
}

type field struct {
	name string
	tree tree
}

func (c *scope) tree(path string, v any) tree {
	switch v := v.(type) {
	case string:
		t := c.template(path, v)
		return tree{text: &t, kind: 't'}
	case []any:
		out := tree{kind: '['}
		for i, x := range v {
			out.list = append(out.list, c.tree(fmt.Sprintf("%s[%d]", path, i), x))
		}
		return out
	case map[string]any:
		out := tree{kind: '{'}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out.fields = append(out.fields, field{name, c.tree(path+"."+name, v[name])})
		}
		return out
	}
	return tree{other: v}
}

func (t tree) value(v view) (any, error) {
	switch t.kind {
	case 't':
		return t.text.value(v)
	case '[':
		out := make([]any, len(t.list))
		for i, x := range t.list {
			var err error
			if out[i], err = x.value(v); err != nil {
				return nil, err
			}
		}
		return out, nil
	case '{':
		out := make(map[string]any, len(t.fields))
		for _, f := range t.fields {
			var err error
			if out[f.name], err = f.tree.value(v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return t.other, nil
}
