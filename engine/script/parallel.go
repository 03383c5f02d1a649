package script

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

const (
	mostParts = 1000 // of one parallel
	deepest   = 8    // parallel in parallel
)

// parallel runs functions beside each other. Each has a board of its own, as it was; when all are done, what they said and set comes onto the board in their order.
func parallel(t *starlark.Thread, b *starlark.Builtin, as args, kws kwargs) (starlark.Value, error) {
	var list starlark.Value
	if err := starlark.UnpackArgs(b.Name(), as, kws, "functions", &list); err != nil {
		return nil, err
	}
	fs, err := functions(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	p := partOf(t)
	if p.depth >= deepest {
		return nil, fmt.Errorf("%s: parallel in parallel, more than %d deep", b.Name(), deepest)
	}
	if err := errors.Join(star.CountSteps(t, effectSteps*len(fs)), star.CountBytes(t, effectBytes*len(fs))); err != nil {
		return nil, err
	}
	if err := freeze(fs); err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	scope, before := p.next("parallel"), p.board.Snapshot()
	parts, results := make([]*part, len(fs)), make([]starlark.Value, len(fs))
	errs, branches := make([]error, len(fs)), make([]engine.Branch, len(fs))
	meter := t.Local(meterKey).(*star.Meter)
	for i, f := range fs {
		name := scope + "." + strconv.Itoa(i+1)
		parts[i] = &part{engine: p.engine, run: p.run, scope: name, board: engine.NewBoard(before), counts: map[string]int{}, depth: p.depth + 1}
		if p.scope != "" {
			parts[i].scope = p.scope + ":" + name
		}
		branches[i] = engine.Branch{Scope: name, Run: func(ctx context.Context, do engine.Steps) error {
			part := parts[i]
			part.ctx, part.do = ctx, do
			errs[i] = part.beside(meter, f, &results[i])
			return nil // the errors are looked at below, in order
		}}
	}
	if err := p.do.Branch(p.ctx, branches...); err != nil { // a panic
		return nil, &ends{err}
	}
	change, err := merged(before, parts)
	if failed := first(scope, errs); failed != nil {
		if err == nil {
			p.board.Apply(change)
		}
		return nil, failed
	}
	if err != nil {
		return nil, err
	}
	if err := p.keep(change); err != nil {
		return nil, err
	}
	return starlark.NewList(results), nil
}

// beside runs a function on a thread of its own.
func (p *part) beside(meter *star.Meter, f starlark.Value, result *starlark.Value) error {
	t, done := meter.Thread(p.ctx, p.scope)
	t.SetLocal(partKey, p)
	t.SetLocal(meterKey, meter)
	v, err := starlark.Call(t, f, nil, nil)
	*result = v
	if over := done(); over != nil && err == nil {
		err = &ends{over}
	}
	return err
}

func functions(list starlark.Value) ([]starlark.Value, error) {
	l, ok := list.(starlark.Indexable)
	if _, isText := list.(starlark.String); !ok || isText {
		return nil, fmt.Errorf("got a %s, want a list of functions", list.Type())
	}
	if l.Len() > mostParts {
		return nil, fmt.Errorf("%d functions: at most %d run beside each other", l.Len(), mostParts)
	}
	fs := make([]starlark.Value, l.Len())
	for i := range fs {
		fs[i] = l.Index(i)
		if _, ok := fs[i].(starlark.Callable); !ok {
			return nil, fmt.Errorf("functions[%d] is a %s, want a function", i, fs[i].Type())
		}
	}
	return fs, nil
}

// freeze keeps functions that run beside each other from changing what they share.
func freeze(fs []starlark.Value) error {
	all := fs
	for _, f := range fs {
		if f, ok := f.(*starlark.Function); ok {
			all = append(all[:len(all):len(all)], star.Globals(f)...) // of one file: the same for all
			break
		}
	}
	return star.Freeze(all...)
}

// merged is what the parts did, in their order. What a part compacted, it compacted for itself.
func merged(before engine.Snapshot, parts []*part) (all journal.Board, err error) {
	setBy := map[string]int{}
	for i, p := range parts {
		d := journal.Diff(before, p.board.Snapshot())
		for name, ms := range d.Append {
			add(&all, name, ms)
		}
		for name, e := range d.Edit {
			add(&all, name, e.Tail)
		}
		for _, name := range slices.Sorted(maps.Keys(d.Set)) {
			if other, dup := setBy[name]; dup && !journal.Diff(engine.Snapshot{Vars: journal.Vars{name: all.Set[name]}}, engine.Snapshot{Vars: journal.Vars{name: d.Set[name]}}).IsZero() {
				if err == nil {
					err = errdefs.Conflict.Errorf("functions %d and %d both set the var %s, to different values", other+1, i+1, name)
				}
				continue
			}
			if all.Set == nil {
				all.Set = journal.Vars{}
			}
			setBy[name], all.Set[name] = i, d.Set[name]
		}
	}
	return all, err
}

func add(all *journal.Board, channel string, ms []message.Message) {
	if len(ms) == 0 {
		return
	}
	if all.Append == nil {
		all.Append = map[string][]message.Message{}
	}
	all.Append[channel] = append(all.Append[channel], ms...)
}

// first is the error that the functions fail with: a cancel or an interrupt before anything else, as the run ends or goes on by these, and otherwise that of the first function that
// failed.
func first(scope string, errs []error) error {
	at := -1
	for i, err := range errs {
		if err == nil {
			continue
		}
		if canceled(err) != nil || errdefs.Interrupted.Is(err) {
			at = i
			break
		}
		if at < 0 {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	return &star.Elsewhere{In: fmt.Sprintf("%s.%d", scope, at+1), Err: errs[at]}
}
