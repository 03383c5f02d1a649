package graph

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// End is where an edge leads that ends its way through the graph. The graph is done when no node is due any more.
const End = "__end__"

// Definition is a graph as data.
type Definition struct {
	Name   string   `json:"name,omitempty"`
	Entry  string   `json:"entry"`          // the node that is due first
	Vars   []string `json:"vars,omitempty"` // that expressions may name, besides the outputs of nodes: those of the request, and what functions set
	Nodes  []Node   `json:"nodes"`
	Edges  []Edge   `json:"edges,omitempty"`
	Merge  Merge    `json:"merge,omitempty"`
	Limits Limits   `json:"limits,omitzero"`

	lines map[string]int // of paths, when it was read from a file
}

// Node is a step of a graph.
type Node struct {
	ID     string         `json:"id"`               // a letter, then letters, digits, - and _; at most 64
	Type   string         `json:"type"`             // see docs/graphs.md, or one of Kinds.Types
	Config map[string]any `json:"config,omitempty"` // of its type, in JSON's types
	// SkipCondition leaves the node out when it holds: the way goes on behind it.
	SkipCondition string   `json:"skip_condition,omitempty"`
	Retry         *Retry   `json:"retry,omitempty"`   // nil: what fails ends the run
	Cache         *Caching `json:"cache,omitempty"`   // nil: each visit does its work
	Timeout       Duration `json:"timeout,omitempty"` // of one visit with all its attempts; 0: none. It then fails with errdefs.Timeout
}

// Edge leads on from a node. Of a node's edges all fire whose Condition holds; those without one fire when none of these did.
type Edge struct {
	From      string `json:"from"`
	To        string `json:"to"` // a node, or End
	Condition string `json:"condition,omitempty"`
}

// Retry has a node done again when it fails. What the failed attempt did to the board is dropped; failures and waits are on record.
type Retry struct {
	Attempts int      `json:"attempts"`       // all in all, 2 to 10
	On       []string `json:"on,omitempty"`   // classes of errdefs that are worth another attempt: rate_limit, not_available and timeout, unless given
	Wait     Duration `json:"wait,omitempty"` // before the second attempt, twice as long before the next, at most a minute; 0: none
}

// Limits bound a graph. 0 is the default that is named.
type Limits struct {
	Nodes    int `json:"nodes,omitempty"`    // visits of nodes, then errdefs.BudgetExceeded: 100. Each graph within a graph has its own, each time that it runs
	Branches int `json:"branches,omitempty"` // nodes of one wave, then errdefs.BudgetExceeded: 10
	// Concurrency is how many nodes of a wave begin together, at most 16; these are waited for before the next begin, and when one fails the next don't. 0: up to 16 run at any time.
	Concurrency int `json:"concurrency,omitempty"`
}

// Merge says what becomes of vars that several nodes of a wave set. Messages that they append are all kept, on every channel, in the order of the edges that led to the nodes.
type Merge string

// The policies; "" is LastWins.
const (
	LastWins        Merge = "last_wins"         // the last of them counts, in the order of the edges
	Namespace       Merge = "namespace"         // each var is NODE.VAR, when the wave has several nodes
	ErrorOnConflict Merge = "error_on_conflict" // two different values are errdefs.Conflict
)

// Duration is a time in texts such as "1.5s".
type Duration time.Duration

// UnmarshalText reads a duration that is not negative.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return errdefs.Validation.Errorf("%s is no duration: write one such as 200ms or 1.5s", quote(string(b)))
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// NodeFunc is the work of a node of the program's own. It is an effect: it runs once, may do anything, and changes the board by what it returns. Safe for concurrent use.
type NodeFunc func(ctx context.Context, b engine.Snapshot) (journal.Board, error)

// Kinds is what nodes are made of.
type Kinds struct {
	Loop   loop.Config                            // what model and tool nodes have: model, tools, hooks, limits; without a Model there can be no model nodes
	Models func(name string) (model.Model, error) // of nodes that name another model; nil: naming one is a problem
	Funcs  map[string]NodeFunc                    // of nodes of the type func
	Types  map[string]Type                        // the program's own types of nodes
	Graphs map[string]Definition                  // that subgraph and map nodes name
	Loops  map[string]loop.Config                 // that model nodes name, to have another model, other tools, hooks and limits than Loop says
	Cache  Cache                                  // of nodes that have one, beyond the run; nil: a run has its own visits alone
	// Absent has names of tools, agents, models, loops, functions and types that are not here be no problem: to look at a definition, or to replay what is on record. A node that comes to
	// need what is absent fails with errdefs.NotAvailable.
	Absent bool
}

// Engine is a compiled graph. It is immutable and serves many runs at once.
type Engine struct {
	def      Definition
	root     *graph
	tools    *loop.Engine // with all tools: what is no model's
	name     string
	version  string
	model    string
	cache    Cache // nil: none
	warnings []Problem
}

// Compile checks a definition against what its nodes are made of. The error is an [*Error] with every problem.
func Compile(d Definition, k Kinds) (*Engine, error) {
	p := &problems{lines: d.lines}
	if k.Loop.Model == nil {
		k.Loop.Model = loop.NoModel()
	}
	k.Loop.Channel = ""
	tools := k.Loop
	tools.Output = nil
	base, err := loop.New(tools)
	if err != nil {
		return nil, fmt.Errorf("graph: %s: %w", d.Name, err)
	}
	set, err := tool.NewSet(k.Loop.Tools...)
	if err != nil {
		return nil, fmt.Errorf("graph: %s: %w", d.Name, err)
	}
	c := &compiler{problems: p, kinds: k, tools: base, set: set, root: d.Name}
	root := c.graph("", d, nil)
	if err := p.err(d.Name); err != nil {
		return nil, err
	}
	g := &Engine{def: d, root: root, tools: base, cache: k.Cache, warnings: p.sorted(), name: "graph:" + d.Name, version: c.fingerprint(d)}
	if c.models {
		g.model = base.Capabilities().Model
	}
	return g, nil
}

// fingerprint tells definitions apart: a run that is under way goes on with the one that it began with.
func (c *compiler) fingerprint(d Definition) string {
	h := fnv.New32a()
	_, _ = h.Write(c.written(d))
	return fmt.Sprintf("%08x", h.Sum32())
}

// Warnings are what may be wrong with the definition.
func (g *Engine) Warnings() []Problem { return g.warnings }

// Definition is what the engine was made of.
func (g *Engine) Definition() Definition { return g.def }

// Capabilities names the engine graph:NAME; its version is a fingerprint of the definition.
func (g *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Name: g.name, Model: g.model, Version: g.version, Resume: true}
}

// CanResume refuses a run that was begun by another definition: its nodes would be taken for those of this one.
func (g *Engine) CanResume(cp engine.Checkpoint) error {
	if cp.SpecVersion != "" && cp.SpecVersion != g.version {
		return errdefs.NotAvailable.Errorf("graph: the run was begun by another definition of %s: resume it with that one", g.name)
	}
	return nil
}

// Execute runs the graph from its entry until no node is due any more. See the package.
func (g *Engine) Execute(ctx context.Context, run engine.Run, host engine.Host, board *engine.Board) (*engine.Board, error) {
	if run.ResumeFrom != nil {
		if err := g.CanResume(*run.ResumeFrom); err != nil {
			return board, err
		}
	}
	w := walk{engine: g, run: run, do: engine.StepsOf(run, host, g), memory: &memory{}}
	return board, w.graph(ctx, g.root, board)
}
