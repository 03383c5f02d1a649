package graph

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// inner compiles the graph that a node has: a name among Kinds.Graphs, or a definition.
func (s *scope) inner(path string, is any) *graph {
	var d Definition
	switch is := is.(type) {
	case nil:
		s.add(path, "write the name of a graph, or a definition", "it is missing")
		return nil
	case Definition:
		d = is
	case map[string]any:
		before := len(s.all)
		if decode(s.problems, path, is, reflect.ValueOf(&d).Elem()); len(s.all) > before {
			return nil
		}
	case string:
		known, ok := s.kinds.Graphs[is]
		if !ok {
			if s.kinds.Absent {
				return &graph{name: is, byID: map[string]*node{}}
			}
			s.add(path, meant(is, slices.Sorted(maps.Keys(s.kinds.Graphs)), "add it to Kinds.Graphs, or write it here"), "there is no graph %s", quote(is))
			return nil
		}
		if slices.Contains(s.using, is) {
			s.add(path, "take it out", "the graph %s contains itself: %s", is, strings.Join(append(slices.Clone(s.using), is), " → "))
			return nil
		}
		s.using = append(s.using, is)
		defer func() { s.using = s.using[:len(s.using)-1] }()
		d = known
	default:
		s.add(path, "write the name of a graph, or a definition", "it is %s", kindOf(is))
		return nil
	}
	return s.compiler.graph(path, d, s.vars)
}

// known are the vars that an inner graph's nodes set: the graph around it sees them too.
func known(is any, graphs map[string]Definition) []string {
	return knownIn(is, graphs, map[string]bool{}, 0)
}

// knownIn is known; seen are the named graphs that were looked at.
func knownIn(is any, graphs map[string]Definition, seen map[string]bool, depth int) (names []string) {
	var d Definition
	switch is := is.(type) {
	case Definition:
		d = is
	case map[string]any:
		decode(&problems{}, "", is, reflect.ValueOf(&d).Elem())
	case string:
		if seen[is] {
			return nil
		}
		seen[is] = true
		d = graphs[is]
	}
	if depth > deepest {
		return nil
	}
	names = append(names, d.Vars...)
	for _, n := range d.Nodes {
		names = append(names, outputs(n)...)
		if n.Type == "subgraph" {
			names = append(names, knownIn(n.Config["graph"], graphs, seen, depth+1)...)
		}
	}
	return names
}

// outputs are the vars that a node seems to set, whether its config can be read or not.
func outputs(n Node) (names []string) {
	for _, field := range []string{"output", "text"} {
		if name, ok := n.Config[field].(string); ok {
			names = append(names, name)
		}
	}
	list, _ := n.Config["outputs"].([]any)
	for _, name := range list {
		if name, ok := name.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

type subgraphConfig struct {
	none
	Graph any `json:"graph"`
}

func (c subgraphConfig) compile(s *scope, path string, n *node) work {
	n.sub = s.inner(path+".graph", c.Graph)
	return works(func(ctx context.Context, v *visit) error {
		if v.node.sub.entry == nil {
			return errdefs.NotAvailable.Errorf("the graph %s is not here", v.node.sub.name)
		}
		return v.graph(ctx, v.node.sub, v.board)
	})
}

type mapConfig struct {
	Over        string `json:"over"`
	As          string `json:"as"`
	Graph       any    `json:"graph"`
	Result      string `json:"result"`
	Output      string `json:"output"`
	Max         int    `json:"max"`
	Concurrency int    `json:"concurrency"`
}

func (c mapConfig) sets() []output { return []output{{"output", c.Output}} }

// mapMost is how many items there may be, unless the config says otherwise.
const mapMost = 100

func (c mapConfig) compile(s *scope, path string, n *node) work {
	over := s.expr(path+".over", c.Over)
	if c.As == "" {
		s.add(path+".as", "name the var that has the item", "it is missing")
	}
	if c.Max < 0 {
		s.add(path+".max", "write a number from 1", "it is %d", c.Max)
	}
	if c.Concurrency < 0 {
		s.add(path+".concurrency", "write a number from 1", "it is %d", c.Concurrency)
	}
	if (c.Result == "") != (c.Output == "") {
		s.add(path, "write both, or none", "result says what of an item is kept, and output where")
	}
	inside := *s
	inside.vars = slices.Clone(s.vars)
	if c.As != "" {
		inside.declare(path+".as", c.As)
	}
	n.sub = inside.inner(path+".graph", c.Graph)
	m := &mapWork{over: over, as: c.As, output: c.Output, most: c.Max, together: c.Concurrency}
	if m.most == 0 {
		m.most = mapMost
	}
	if c.Result != "" {
		for _, name := range known(c.Graph, s.kinds.Graphs) {
			if varRule.MatchString(name) && !slices.Contains(inside.vars, name) {
				inside.vars = append(inside.vars, name)
			}
		}
		m.result = inside.expr(path+".result", c.Result)
	}
	return m
}

// mapWork runs a graph for each item of a list.
type mapWork struct {
	over     *expr
	as       string
	result   *expr // nil: only what is said is kept
	output   string
	most     int
	together int // 0: as many as Steps.Branch runs
}

func (m *mapWork) do(ctx context.Context, v *visit) error {
	if v.node.sub.entry == nil {
		return errdefs.NotAvailable.Errorf("the graph %s is not here", v.node.sub.name)
	}
	is, err := m.over.value(v.seen)
	if err != nil {
		return err
	}
	items, err := listOf(is)
	if err != nil {
		return errdefs.Validation.Errorf("%s: %w", m.over.path, err)
	}
	if len(items) > m.most {
		return errdefs.BudgetExceeded.Errorf("%s: the list has %d items, the limit is %d: raise max", m.over.path, len(items), m.most)
	}
	legs := make([]*leg, len(items))
	results := make([]any, len(items))
	var branches []engine.Branch
	for i, item := range items {
		l := &leg{node: v.node, name: "[" + strconv.Itoa(i) + "]", board: engine.NewBoard(v.fork)}
		l.board.SetVar(m.as, item)
		legs[i] = l
		branches = append(branches, engine.Branch{Scope: l.name, Run: func(ctx context.Context, do engine.Steps) error {
			in := v.walk
			in.do, in.scope = do, join(v.scope, l.name)
			err := in.graph(ctx, v.node.sub, l.board)
			if err == nil && m.result != nil {
				results[i], err = m.result.value(view{ctx, l.board.Snapshot(), v.seen.visits})
			}
			return v.failed(l.name, err)
		}})
	}
	err = sideBySide(ctx, v.do, m.together, branches)
	said, conflict := said(v.fork, legs)
	if err != nil {
		keep(v.node.sub, v.board, v.fork, legs)
		return err
	}
	if conflict != nil {
		return conflict
	}
	v.board.Apply(said)
	if m.result != nil {
		v.set(m.output, results)
	}
	return nil
}

// said is what items appended to channels, in their order.
func said(fork engine.Snapshot, legs []*leg) (journal.Board, error) {
	changes := make([]journal.Board, len(legs))
	for i, l := range legs {
		changes[i] = journal.Diff(engine.Snapshot{Channels: fork.Channels}, engine.Snapshot{Channels: l.board.Snapshot().Channels})
	}
	m := merger{fork: fork, policy: LastWins, setBy: map[string]int{}, editBy: map[string]int{}}
	err := m.channels(legs, changes)
	return m.out, err
}

// listOf is a list of vars as a list of items.
func listOf(v any) (items []any, err error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case []string:
		return itemsOf(v), nil
	case []int:
		return itemsOf(v), nil
	case []float64:
		return itemsOf(v), nil
	case []message.Message:
		return itemsOf(v), nil
	}
	return nil, fmt.Errorf("it gives %s: want a list", kindOf(v))
}

func itemsOf[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}
