package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/star"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// part is the program's path, or that of a function that runs beside others: one thread, with its own steps, board and counts.
type part struct {
	engine *Engine
	ctx    context.Context //nolint:containedctx // of the path: builtins have no other way to it
	run    engine.Run
	do     engine.Steps
	scope  string // "" on the program's own path
	board  *engine.Board
	counts map[string]int
	depth  int // of parallel in parallel
}

const partKey = "pawl.script"

func partOf(t *starlark.Thread) *part { return t.Local(partKey).(*part) }

// thread runs f on a thread of its own, and makes an error of the engine of what it fails with.
func (p *part) thread(meter *star.Meter, name string, f func(t *starlark.Thread) error) error {
	t, done := meter.Thread(p.ctx, name)
	t.SetLocal(partKey, p)
	t.SetLocal(meterKey, meter)
	err := f(t)
	over := done()
	if err == nil && over == nil {
		return nil
	}
	return explain(err, over)
}

const meterKey = "pawl.meter"

// explain keeps an interrupt and a cancel as they are: they are no errors of the program.
func explain(err, over error) error {
	var intr engine.InterruptedError
	if errors.As(err, &intr) {
		return intr
	}
	if c := canceled(err); c != nil {
		return c
	}
	return fmt.Errorf("script: %w", star.Explain(err, over))
}

// canceled is the cancel that err is, nil when it is none.
func canceled(err error) error {
	var e *ends
	if errors.As(err, &e) && errdefs.Of(e.error) == nil && errdefs.Canceled(e.error) {
		return e.error
	}
	return nil
}

// ends is an error of an effect, or of several that ran beside each other, as the engine's steps gave it.
type ends struct{ error }

func (e *ends) Unwrap() error { return e.error }

// next counts what the path does: "generate", then "generate#2": names that are the same at every run.
func (p *part) next(what string) string {
	p.counts[what]++
	if n := p.counts[what]; n > 1 {
		return what + "#" + strconv.Itoa(n)
	}
	return what
}

// name is next with the scope: unique in the run.
func (p *part) name(what string) string {
	n := p.next(what)
	if p.scope != "" {
		return p.scope + ":" + n
	}
	return n
}

// keep puts what the program's path did to the main channel on record, in the path's order. In a function that runs beside others it stays on that one's board until all are done.
func (p *part) keep(all journal.Board) error {
	if p.scope != "" {
		p.board.Apply(all)
		return nil
	}
	main := journal.Board{}
	if ms := all.Append[engine.MainChannel]; len(ms) > 0 {
		main.Append = map[string][]message.Message{engine.MainChannel: ms}
	}
	if e, ok := all.Edit[engine.MainChannel]; ok {
		main.Edit = map[string]message.Edit{engine.MainChannel: e}
	}
	if main.IsZero() {
		p.board.Apply(all)
		return nil
	}
	d, err := engine.Do[journal.Board](p.ctx, p.do, change{n: p.number("board"), board: main})
	if err != nil {
		p.board.Apply(all) // it was said all the same
		return &ends{err}
	}
	rest := all
	rest.Append, rest.Edit = without(all.Append), without(all.Edit)
	p.board.Apply(d) // as it is on record: the same messages, after a crash too
	p.board.Apply(rest)
	return nil
}

// say appends what the program itself says: on its own path by an effect.
func (p *part) say(channel string, m message.Message) error {
	if p.scope != "" || channel != engine.MainChannel {
		p.board.Append(channel, m)
		return nil
	}
	d, err := engine.Do[journal.Said](p.ctx, p.do, say{n: p.number("say"), message: m})
	if err != nil {
		p.board.Append(channel, m)
		return &ends{err}
	}
	p.board.Append(channel, d.Message)
	return nil
}

// number counts effects of one kind: 1, 2, …
func (p *part) number(of string) string {
	p.counts["number of "+of]++
	return strconv.Itoa(p.counts["number of "+of])
}

func without[V any](all map[string]V) map[string]V {
	var rest map[string]V
	for name, v := range all {
		if name == engine.MainChannel {
			continue
		}
		if rest == nil {
			rest = map[string]V{}
		}
		rest[name] = v
	}
	return rest
}
