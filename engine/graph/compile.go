package graph

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/tool"
)

// graph is a compiled definition.
type graph struct {
	name   string
	nodes  []*node
	byID   map[string]*node
	entry  *node
	limits Limits
	merge  Merge
}

// node is a compiled node.
type node struct {
	id, path string
	at       int // among the nodes
	work     work
	skip     *expr
	edges    []edge
	first    bool // of the edges with a condition the first that holds is taken, not all
	retry    *Retry
	classes  []*errdefs.Class // that are worth another attempt
	timeout  time.Duration
	cache    *cache
	given    string // of a model node: the model and its tools

	loop *loop.Engine // of a model node
	fn   NodeFunc     // of a function
	sub  *graph       // of a subgraph, and of a map
}

// edge leads on; to is nil for End. divert edges are taken when the node's work says so, and no other is then.
type edge struct {
	to     *node
	when   *expr
	divert bool
	back   bool // to a node that the graph comes through before
}

// compiler compiles a definition with all that it names.
type compiler struct {
	*problems
	kinds  Kinds
	tools  *loop.Engine
	set    tool.Set
	root   string   // the name of the whole graph
	models bool     // there are model nodes
	using  []string // named graphs that are being compiled
	depth  int
	nodes  int  // so far, each as often as it stands in a graph
	full   bool // these are too many
}

// scope is what expressions and nodes of one graph know.
type scope struct {
	*compiler
	vars   []string
	def    *Definition
	graph  *graph
	broken bool // what leads where is not known
}

// mostTogether is how many branches run at the same time: engine.Steps bounds it.
const mostTogether = 16

// deepest is how far graphs may lie in graphs, and mostNodes how many nodes there may be in all: graphs that use graphs several times multiply.
const (
	deepest   = 10
	mostNodes = 100_000
)

var (
	idRule  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)
	varRule = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
)

// keywords are no names of vars.
var keywords = []string{
	"and", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or", "pass", "return", "while", "as", "assert", "async", "await", "class", "del", "except", "finally", "from",
	"global", "import", "is", "nonlocal", "raise", "try", "with", "yield", "True", "False", "None", nameVars, nameLast, nameVisits,
}

// graph compiles a definition that stands at path; above are the vars of the graph around it. It is nil when there is a problem.
func (c *compiler) graph(path string, d Definition, above []string) *graph {
	in := func(rest string) string { return member(path, rest) }
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > deepest {
		c.add(orWhole(path), "make it flatter", "graphs lie more than %d deep in graphs", deepest)
		return nil
	}
	if c.nodes += len(d.Nodes); c.nodes > mostNodes {
		if c.nodes -= len(d.Nodes); !c.full {
			c.full = true
			c.add(in("nodes"), "make the graphs smaller, or use them less often", "there are more than %d nodes, each counted as often as its graph is used", mostNodes)
		}
		return nil
	}
	g := &graph{name: d.Name, byID: map[string]*node{}, limits: d.Limits, merge: d.Merge}
	s := &scope{compiler: c, def: &d, graph: g, vars: slices.Clone(above)}
	for i, name := range d.Vars {
		s.declare(in(fmt.Sprintf("vars[%d]", i)), name)
	}
	switch {
	case d.Limits.Nodes < 0:
		c.add(in("limits.nodes"), "write a number from 1", "it is %d", d.Limits.Nodes)
	case d.Limits.Branches < 0:
		c.add(in("limits.branches"), "write a number from 1", "it is %d", d.Limits.Branches)
	case d.Limits.Concurrency < 0 || d.Limits.Concurrency > mostTogether:
		c.add(in("limits.concurrency"), fmt.Sprintf("write a number from 1 to %d", mostTogether), "it is %d", d.Limits.Concurrency)
	}
	if g.limits.Nodes == 0 {
		g.limits.Nodes = 100
	}
	if g.limits.Branches == 0 {
		g.limits.Branches = 10
	}
	switch d.Merge {
	case "":
		g.merge = LastWins
	case LastWins, Namespace, ErrorOnConflict:
	default:
		c.add(in("merge"), fmt.Sprintf("write %s, %s or %s", LastWins, Namespace, ErrorOnConflict), "there is no way to merge called %s", quote(string(d.Merge)))
	}
	if len(d.Nodes) == 0 {
		c.add(in("nodes"), "write at least one", "there are no nodes")
		return nil
	}
	specs := s.nodes(in("nodes"))
	s.entry(in("entry"))
	for i, n := range g.nodes {
		if specs[i] != nil {
			n.work = specs[i].compile(s, n.path+".config", n)
			s.cache(n, d.Nodes[i])
		}
	}
	s.edges(in("edges"))
	if !s.broken {
		s.structure()
	}
	if c.failed() {
		return nil
	}
	return g
}

func orWhole(path string) string {
	if path == "" {
		return "$"
	}
	return path
}

// declare makes a name known.
func (s *scope) declare(path, name string) {
	switch {
	case !varRule.MatchString(name):
		s.add(path, "write a letter or _, then letters, digits and _, at most 64", "%s is no name of a var", quote(name))
	case slices.Contains(keywords, name):
		s.add(path, "take another name", "%s has a meaning of its own in expressions", name)
	case !slices.Contains(s.vars, name):
		s.vars = append(s.vars, name)
	}
}

// admit makes names known that are told of elsewhere when they are wrong.
func (s *scope) admit(names []string) {
	for _, name := range names {
		if varRule.MatchString(name) && !slices.Contains(keywords, name) && !slices.Contains(s.vars, name) {
			s.vars = append(s.vars, name)
		}
	}
}

// nodes makes the nodes, and declares what they set.
func (s *scope) nodes(path string) []spec {
	specs := make([]spec, len(s.def.Nodes))
	for i, def := range s.def.Nodes {
		n := &node{id: def.ID, at: i, path: fmt.Sprintf("%s[%d]", path, i)}
		s.graph.nodes = append(s.graph.nodes, n)
		before := len(s.all)
		switch {
		case def.ID == End:
			s.add(n.path+".id", "take another name", "%s is where edges lead that end the graph", End)
		case !idRule.MatchString(def.ID):
			s.add(n.path+".id", "write a letter, then letters, digits, - and _, at most 64", "%s is no id of a node", quote(def.ID))
		case s.graph.byID[def.ID] != nil:
			s.add(n.path+".id", "take another one", "the id %s is that of %s, too", def.ID, s.graph.byID[def.ID].path)
		default:
			s.graph.byID[def.ID] = n
		}
		s.broken = s.broken || len(s.all) > before
		if specs[i] = s.spec(n.path, def); specs[i] != nil {
			for _, set := range specs[i].sets() {
				if set.name != "" {
					s.declare(n.path+".config."+set.field, set.name)
				}
			}
		} else {
			s.broken = s.broken || def.Type == "router" || def.Type == "gate"
			s.admit(outputs(def)) // that its config is wrong is told once
		}
		if def.Type == "subgraph" { // it works on the same board
			s.admit(known(def.Config["graph"], s.kinds.Graphs))
		}
	}
	for i, def := range s.def.Nodes {
		s.node(s.graph.nodes[i], def)
	}
	return specs
}

// aNode is a type of nodes with its article.
func aNode(kind string) string {
	if strings.IndexAny(kind, "aeio") == 0 {
		return "an " + kind + " node"
	}
	return "a " + kind + " node"
}

// node compiles what all nodes have.
func (s *scope) node(n *node, def Node) {
	if def.SkipCondition != "" {
		n.skip = s.expr(n.path+".skip_condition", def.SkipCondition)
	}
	idle := slices.Contains(pure, def.Type)
	if n.timeout = time.Duration(def.Timeout); n.timeout < 0 {
		s.add(n.path+".timeout", "write one such as 30s", "it is negative")
	} else if n.timeout > 0 && idle {
		s.add(n.path+".timeout", "leave it out", "%s does nothing that takes time", aNode(def.Type))
	}
	if n.retry = def.Retry; n.retry == nil {
		return
	}
	path := n.path + ".retry"
	switch {
	case idle || def.Type == "approval":
		s.add(path, "leave it out", "%s does nothing that another attempt would change", aNode(def.Type))
	case def.Type == "tool":
		if d, ok := s.toolOf(def); ok && !d.Repeatable() {
			s.add(path, "declare it so if it is; else leave retry out, go on after a failure by on_error, and have an edge with a condition lead back", "the tool %s is neither read-only nor idempotent: a call that failed may have taken effect", d.Name)
		}
	case def.Type == "agent" || def.Type == "handoff":
		s.add(path, "leave it out", "what %s fails with may have taken effect: it is not tried again by itself", aNode(def.Type))
	}
	if n.retry.Attempts < 2 || n.retry.Attempts > 10 {
		s.add(path+".attempts", "write 2 to 10", "it is %d", n.retry.Attempts)
	}
	if n.retry.Wait < 0 || time.Duration(n.retry.Wait) > longestWait {
		s.add(path+".wait", "write one from 0s to 1m", "it is %v", time.Duration(n.retry.Wait))
	}
	if n.classes = []*errdefs.Class{errdefs.RateLimit, errdefs.NotAvailable, errdefs.Timeout}; n.retry.On == nil {
		return
	}
	n.classes = nil
	if len(n.retry.On) == 0 {
		s.add(path+".on", "name classes of errors, or leave it out", "it is empty")
	}
	for i, name := range n.retry.On {
		class := errdefs.Named(name)
		at := fmt.Sprintf("%s.on[%d]", path, i)
		switch {
		case class == nil:
			s.add(at, "write one such as rate_limit", "no error has the class %s", quote(name))
		case slices.Contains(final, class):
			s.add(at, "leave it out", "what fails as %s is not tried again: it would fail again, or must not be repeated", name)
		}
		n.classes = append(n.classes, class)
	}
}

// final are the classes of errors that no attempt changes.
var final = []*errdefs.Class{errdefs.Validation, errdefs.BudgetExceeded, errdefs.PolicyDenied, errdefs.Interrupted, errdefs.Conflict, errdefs.Aborted}

// spec reads a node's config; nil with a problem.
func (s *scope) spec(path string, def Node) spec {
	make, ok := specs[def.Type]
	if own, is := s.kinds.Types[def.Type]; is && !ok {
		make, ok = func() spec { return &typedSpec{own: own} }, true
	}
	if !ok {
		names := slices.Sorted(maps.Keys(specs))
		names = append(names, slices.Sorted(maps.Keys(s.kinds.Types))...)
		if s.kinds.Absent && def.Type != "" && len(near.Names(def.Type, names)) == 0 {
			s.warn(path+".type", "", "there is no type of nodes called %s here: only a program that brings it can run this", quote(def.Type))
			return &typedSpec{}
		}
		s.add(path+".type", meant(def.Type, names, "write one of "+strings.Join(names, ", ")), "there is no type of nodes called %s", quote(def.Type))
		return nil
	}
	out := make()
	return out.read(s.problems, path+".config", def.Config)
}

func (s *scope) entry(path string) {
	if s.graph.entry = s.graph.byID[s.def.Entry]; s.graph.entry == nil {
		s.unknownNode(path, s.def.Entry)
	}
}

func (s *scope) unknownNode(path, id string) {
	s.broken = true
	fix := "write the id of a node"
	if id == "" {
		s.add(path, fix, "it is missing")
		return
	}
	s.add(path, meant(id, append(slices.Sorted(maps.Keys(s.graph.byID)), End), fix), "there is no node %s", quote(id))
}

// target is the node of an edge; ok is false with a problem.
func (s *scope) target(path, id string) (to *node, ok bool) {
	if id == End {
		return nil, true
	}
	if to = s.graph.byID[id]; to == nil {
		s.unknownNode(path, id)
		return nil, false
	}
	return to, true
}

// edges adds the definition's to those that nodes have by their config.
func (s *scope) edges(path string) {
	for i, def := range s.def.Edges {
		at := fmt.Sprintf("%s[%d]", path, i)
		from := s.graph.byID[def.From]
		if from == nil {
			s.unknownNode(at+".from", def.From)
			continue
		}
		if from.first {
			s.add(at+".from", "put it among its routes", "the node %s is a router: its routes say where it leads", def.From)
		}
		to, ok := s.target(at+".to", def.To)
		if !ok {
			continue
		}
		e := edge{to: to}
		if def.Condition != "" {
			e.when = s.expr(at+".condition", def.Condition)
		} else if slices.ContainsFunc(from.edges, func(have edge) bool { return !have.divert && have.when == nil && have.to == to }) {
			s.add(at, "leave one", "there is such an edge already")
		}
		from.edges = append(from.edges, e)
	}
}

// structure looks at the graph as a whole.
func (s *scope) structure() {
	g := s.graph
	reached, ends := map[*node]bool{}, map[*node]bool{}
	for todo := []*node{g.entry}; len(todo) > 0; {
		n := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; reached[n] {
			continue
		}
		reached[n] = true
		for _, e := range n.edges {
			if e.to != nil {
				todo = append(todo, e.to)
			}
		}
	}
	into := map[*node][]*node{}
	var last []*node
	for _, n := range g.nodes {
		for _, e := range n.edges {
			if e.to == nil {
				last = append(last, n)
			} else {
				into[e.to] = append(into[e.to], n)
			}
		}
	}
	for len(last) > 0 {
		n := last[len(last)-1]
		if last = last[:len(last)-1]; !ends[n] {
			ends[n] = true
			last = append(last, into[n]...)
		}
	}
	circle := s.circles()
	for _, n := range g.nodes {
		conditional, otherwise := false, false
		for _, e := range n.edges {
			conditional = conditional || e.when != nil
			otherwise = otherwise || e.when == nil && !e.divert
		}
		switch {
		case !reached[n]:
			s.add(n.path, "add an edge that leads to it, or leave it out", "nothing leads to the node %s", n.id)
		case len(n.edges) == 0:
			s.add(n.path, "add an edge to the next node, or to "+End, "nothing leads on from the node %s", n.id)
		case !ends[n] && !circle[n]:
			s.add(n.path, "add an edge that leads out, in the end to "+End, "no way leads from the node %s to %s", n.id, End)
		case conditional && !otherwise:
			s.warn(n.path, "add an edge without a condition, or an else to a router", "when no condition holds nothing leads on from the node %s: the run fails there", n.id)
		}
	}
	s.order()
}

// circles finds those that nothing ever leads out of: all their edges fire always.
func (s *scope) circles() map[*node]bool {
	const fresh, open, closed = 0, 1, 2
	state, found := map[*node]int{}, map[*node]bool{}
	type step struct {
		n    *node
		next int
	}
	for _, root := range s.graph.nodes {
		if state[root] != fresh {
			continue
		}
		state[root] = open
		for way := []step{{root, 0}}; len(way) > 0; {
			at := &way[len(way)-1]
			if at.next == len(at.n.edges) || slices.ContainsFunc(at.n.edges, func(e edge) bool { return e.when != nil || e.divert }) {
				state[at.n] = closed
				way = way[:len(way)-1]
				continue
			}
			to := at.n.edges[at.next].to
			at.next++
			switch {
			case to == nil || state[to] == closed:
			case state[to] == fresh:
				state[to] = open
				way = append(way, step{to, 0})
			default:
				var ids []string
				for i := slices.IndexFunc(way, func(w step) bool { return w.n == to }); i < len(way); i++ {
					found[way[i].n] = true
					ids = append(ids, way[i].n.id)
				}
				s.add(to.path, "give one of its edges a condition", "the nodes %s are a circle that runs without end", strings.Join(append(ids, to.id), " → "))
			}
		}
	}
	return found
}

// order finds the edges that lead back: those to a node on the way from the entry, edges taken in their order.
func (s *scope) order() {
	const fresh, open, closed = 0, 1, 2
	state := make([]int, len(s.graph.nodes))
	type step struct {
		n    *node
		next int
	}
	state[s.graph.entry.at] = open
	for way := []step{{s.graph.entry, 0}}; len(way) > 0; {
		at := &way[len(way)-1]
		if at.next == len(at.n.edges) {
			state[at.n.at] = closed
			way = way[:len(way)-1]
			continue
		}
		e := &at.n.edges[at.next]
		at.next++
		switch {
		case e.to == nil || state[e.to.at] == closed:
		case state[e.to.at] == open:
			e.back = true
		default:
			state[e.to.at] = open
			way = append(way, step{e.to, 0})
		}
	}
}

// ready parts nodes that are due: those that run now, and those that wait, because another one that is due can still lead to them. Ways forward have no circles, so a node does not lead to itself.
func (g *graph) ready(due []*node) (now, later []*node) {
	if len(due) == 1 {
		return due, nil
	}
	led := make([]bool, len(g.nodes)) // to these a way leads from one that is due
	for todo := slices.Clone(due); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, e := range n.edges {
			if e.to != nil && !e.back && !led[e.to.at] {
				led[e.to.at] = true
				todo = append(todo, e.to)
			}
		}
	}
	for _, n := range due {
		if led[n.at] {
			later = append(later, n)
		} else {
			now = append(now, n)
		}
	}
	return now, later
}

// written is all of a definition, with the graphs that it names.
func (c *compiler) written(d Definition) []byte {
	b, err := marshal(d)
	if err != nil {
		b = fmt.Appendf(nil, "%+v", d) // a config in Go's own types
	}
	for _, name := range slices.Sorted(maps.Keys(c.kinds.Graphs)) {
		more, err := marshal(c.kinds.Graphs[name])
		if err != nil {
			more = fmt.Appendf(nil, "%+v", c.kinds.Graphs[name])
		}
		b = append(append(b, name...), more...)
	}
	return b
}
