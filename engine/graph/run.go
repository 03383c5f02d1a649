package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// walk is a run on its way through a graph.
type walk struct {
	engine *Engine
	run    engine.Run
	do     engine.Steps
	scope  string // of the steps; "" at the top
	memory *memory
}

// leg is a node's part of a wave.
type leg struct {
	node     *node
	name     string // of the visit: NODE, NODE#2
	board    *engine.Board
	done     bool
	skipped  bool
	diverted bool
}

// graph runs wave after wave: the nodes that are due, then the merge of what they did, then the edges.
func (w walk) graph(ctx context.Context, g *graph, board *engine.Board) error {
	visits, total := newCounts(), 0
	for n, due := 1, []*node{g.entry}; len(due) > 0; n++ {
		now, later := g.ready(due)
		if total += len(now); total > g.limits.Nodes {
			return w.failed("", errdefs.BudgetExceeded.Errorf("the limit of %d visits of nodes is reached, with %s due: raise limits.nodes, or look whether it goes in circles", g.limits.Nodes, ids(due)))
		}
		if len(now) > g.limits.Branches {
			return w.failed("", errdefs.BudgetExceeded.Errorf("%d nodes are due at once (%s), the limit is %d: raise limits.branches", len(now), ids(now), g.limits.Branches))
		}
		fork := board.Snapshot()
		legs, err := w.wave(ctx, g, now, fork, visits)
		if err != nil {
			keep(g, board, fork, legs)
			return err
		}
		change, err := merge(g, fork, legs)
		if err != nil {
			keep(g, board, fork, legs)
			return w.failed("", err)
		}
		if w.scope == "" { // on record, for the transcript; within a node the graph around it has it
			if change, err = engine.Do[journal.Board](ctx, w.do, merged{Wave: n, Board: change}); err != nil {
				keep(g, board, fork, legs)
				return err
			}
		}
		board.Apply(change)
		if due, err = w.next(later, legs, view{ctx, board.Snapshot(), visits}); err != nil {
			return err
		}
	}
	return nil
}

// wave runs nodes side by side, each on a board of its own.
func (w walk) wave(ctx context.Context, g *graph, now []*node, fork engine.Snapshot, visits *counts) ([]*leg, error) {
	legs := make([]*leg, len(now))
	for i, n := range now {
		legs[i] = &leg{node: n, name: n.id, board: engine.NewBoard(fork)}
		if times := visits.add(n.id); times > 1 {
			legs[i].name += "#" + strconv.Itoa(times)
		}
	}
	seen := view{ctx, fork, visits}
	var branches []engine.Branch
	for _, l := range legs {
		if l.node.skip != nil {
			skip, err := l.node.skip.holds(seen)
			if err != nil {
				return legs, w.failed(l.name, err)
			}
			if l.skipped = skip; skip {
				l.done = true
				continue
			}
		}
		branches = append(branches, engine.Branch{Scope: l.name, Run: func(ctx context.Context, do engine.Steps) error {
			v := &visit{walk: walk{w.engine, w.run, do, join(w.scope, l.name), w.memory}, leg: l, fork: fork, seen: seen}
			if err := v.attempts(ctx); err != nil {
				return w.failed(l.name, err)
			}
			l.done = true
			return nil
		}})
	}
	return legs, sideBySide(ctx, w.do, g.limits.Concurrency, branches)
}

// sideBySide runs branches, so many of them together; 0 leaves that to the steps. These are waited for before the next begin. When one failed the next don't begin; when one waits for a person they do, so
// that all questions are pending. What failed counts more than what waits: a run that has failed asks nobody.
func sideBySide(ctx context.Context, do engine.Steps, together int, branches []engine.Branch) error {
	if len(branches) == 0 {
		return nil
	}
	if together == 0 {
		together = len(branches)
	}
	var failed, waiting []error
	for some := range slices.Chunk(branches, together) {
		for _, err := range each(do.Branch(ctx, some...)) {
			if errdefs.Interrupted.Is(err) {
				waiting = append(waiting, err)
			} else {
				failed = append(failed, err)
			}
		}
		if len(failed) > 0 {
			return one(failed)
		}
	}
	return one(waiting)
}

// one joins errors; a single one stays what it is.
func one(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// each are the errors that branches were joined to.
func each(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		return several.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// next are the nodes that are due: those that waited, and where the edges lead.
func (w walk) next(later []*node, legs []*leg, v view) ([]*node, error) {
	due := later
	for _, l := range legs {
		targets, err := l.targets(v)
		if err != nil {
			return nil, w.failed(l.name, err)
		}
		for _, n := range targets {
			if n != nil && !slices.Contains(due, n) {
				due = append(due, n)
			}
		}
	}
	return due, nil
}

// targets are where a node leads on: all edges whose condition holds, of a router the first; else those without a condition.
func (l *leg) targets(v view) (to []*node, err error) {
	var otherwise []*node
	for _, e := range l.node.edges {
		switch {
		case e.divert != l.diverted:
		case e.when == nil:
			otherwise = append(otherwise, e.to)
		case l.node.first && len(to) > 0:
		default:
			holds, err := e.when.holds(v)
			if err != nil {
				return nil, err
			}
			if holds {
				to = append(to, e.to)
			}
		}
	}
	if len(to) == 0 {
		to = otherwise
	}
	if len(to) == 0 {
		return nil, errdefs.Validation.Errorf("none of its conditions holds, and no edge without one leads on: add such an edge")
	}
	return to, nil
}

// nodeError is what a node failed with, and which.
type nodeError struct {
	scope string
	err   error
}

func (e *nodeError) Error() string {
	if e.scope == "" {
		return fmt.Sprintf("graph: %v", e.err)
	}
	return fmt.Sprintf("graph: node %s: %v", e.scope, e.err)
}

func (e *nodeError) Unwrap() error { return e.err }

// failed says where an error comes from, unless that is said already. A cancel and an interrupt stay what they are.
func (w walk) failed(scope string, err error) error {
	if err == nil || errdefs.Interrupted.Is(err) || errdefs.Of(err) == nil && errdefs.Canceled(err) || errors.As(err, new(*nodeError)) {
		return err
	}
	return &nodeError{join(w.scope, scope), err}
}

func join(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + ":" + inner
}

// merged puts on record what a wave came to. Outcome: the Board, which the transcript is read from.
type merged struct {
	simple
	Wave  int
	Board journal.Board `json:"-"`
}

// Key is "wave/N".
func (m merged) Key() journal.Key { return journal.Key{Op: "wave", ID: strconv.Itoa(m.Wave)} }
