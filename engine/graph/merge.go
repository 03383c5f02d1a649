package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// merge is what a wave changed: the differences of its nodes' boards from the one that they began with, together.
func merge(g *graph, fork engine.Snapshot, legs []*leg) (journal.Board, error) {
	changes := make([]journal.Board, len(legs))
	for i, l := range legs {
		changes[i] = journal.Diff(fork, l.board.Snapshot())
	}
	if len(legs) == 1 {
		return changes[0], nil
	}
	m := merger{fork: fork, policy: g.merge, setBy: map[string]int{}, editBy: map[string]int{}}
	for i, c := range changes {
		if err := m.vars(legs, i, c); err != nil {
			return journal.Board{}, err
		}
	}
	return m.out, m.channels(legs, changes)
}

type merger struct {
	fork   engine.Snapshot
	policy Merge
	out    journal.Board
	setBy  map[string]int // the last node that set or deleted a var
	editBy map[string]int // the node whose edit of a channel counts
}

// vars adds what a node did to vars.
func (m *merger) vars(legs []*leg, i int, c journal.Board) error {
	name := func(v string) string {
		if m.policy == Namespace {
			return legs[i].node.id + "." + v
		}
		return v
	}
	conflict := func(v string, now any, set bool) error {
		by, before := m.setBy[v]
		if m.setBy[v] = i; !before || m.policy != ErrorOnConflict {
			return nil
		}
		was, wasSet := m.out.Set[v]
		if wasSet == set && (!set || equal(was, now)) {
			return nil
		}
		return errdefs.Conflict.Errorf("the nodes %s and %s give the var %s different values: name one of them otherwise, or merge by %s or %s", legs[by].node.id, legs[i].node.id, v, LastWins, Namespace)
	}
	for _, v := range slices.Sorted(maps.Keys(c.Set)) {
		if err := conflict(name(v), c.Set[v], true); err != nil {
			return err
		}
		if m.out.Set == nil {
			m.out.Set = journal.Vars{}
		}
		m.out.Set[name(v)] = c.Set[v]
		m.out.Delete = slices.DeleteFunc(m.out.Delete, func(d string) bool { return d == name(v) })
	}
	for _, v := range c.Delete {
		if m.policy == Namespace { // it is deleted for this node only
			continue
		}
		if err := conflict(v, nil, false); err != nil {
			return err
		}
		delete(m.out.Set, v)
		if !slices.Contains(m.out.Delete, v) {
			m.out.Delete = append(m.out.Delete, v)
		}
	}
	return nil
}

func equal(a, b any) bool {
	return journal.Diff(engine.Snapshot{Vars: journal.Vars{"v": a}}, engine.Snapshot{Vars: journal.Vars{"v": b}}).IsZero()
}

// channels keeps all that nodes appended, in their order. When one of them changed what stood there before, as a compaction does, that counts, with what all appended behind it; of several the last, and with
// error_on_conflict they are one.
func (m *merger) channels(legs []*leg, changes []journal.Board) error {
	tails := map[string][]message.Message{}
	for i, c := range changes {
		for _, name := range slices.Sorted(maps.Keys(c.Edit)) {
			if by, twice := m.editBy[name]; twice && m.policy == ErrorOnConflict {
				return errdefs.Conflict.Errorf("the nodes %s and %s both change what stood on the channel %s: let them talk on channels of their own", legs[by].node.id, legs[i].node.id, name)
			}
			m.editBy[name] = i
			tails[name] = append(tails[name], c.Edit[name].Tail...)
		}
		for name, ms := range c.Append {
			tails[name] = append(tails[name], ms...)
		}
	}
	for name, tail := range tails {
		by, edited := m.editBy[name]
		if !edited {
			if m.out.Append == nil {
				m.out.Append = map[string][]message.Message{}
			}
			m.out.Append[name] = tail
			continue
		}
		if m.out.Edit == nil {
			m.out.Edit = map[string]message.Edit{}
		}
		e := changes[by].Edit[name]
		e.Tail = tail
		m.out.Edit[name] = e
	}
	return nil
}

// keep has the board of a run that ends early show what was done in the last wave: all of the nodes that finished, under the names that the merge would have given it, and what the others had said.
func keep(g *graph, board *engine.Board, fork engine.Snapshot, legs []*leg) {
	for _, l := range legs {
		c := journal.Diff(fork, l.board.Snapshot())
		if !l.done {
			c = journal.Board{Append: c.Append}
		}
		if g.merge == Namespace && len(legs) > 1 {
			set := journal.Vars{}
			for name, v := range c.Set {
				set[l.node.id+"."+name] = v
			}
			c.Set, c.Delete = set, nil
		}
		board.Apply(journal.Board{Append: c.Append, Set: c.Set, Delete: c.Delete})
		for name, e := range c.Edit {
			board.Append(name, e.Tail...)
		}
	}
}

// ids names nodes.
func ids(nodes []*node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.id)
	}
	return strings.Join(all, ", ")
}
