package graph

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// longestWait is the longest that is waited before an attempt.
const longestWait = time.Minute

// past is how much longer a node's questions can be answered than the node has time: it is the time that ends first, whatever was cut off to milliseconds.
const past = 2 * time.Millisecond

// work is what a node does. It writes on the visit's board.
type work interface {
	do(ctx context.Context, v *visit) error
}

// visit is a node at work.
type visit struct {
	walk
	*leg
	fork  engine.Snapshot
	seen  view   // what expressions see
	last  bool   // there is no further attempt
	first string // of an attempt that is not the first: the scope of that
}

// attempts does the node's work, within its time, as often as it may be tried.
func (v *visit) attempts(ctx context.Context) error {
	n := v.node
	if n.timeout > 0 {
		began, err := engine.Do[journal.Timed](ctx, v.do, clock{id: "start"})
		if err != nil {
			return err
		}
		v.do = limited{v.do, began.At.Add(n.timeout)}
		if most := n.timeout + past; v.run.AskTTL == 0 || v.run.AskTTL > most {
			v.run.AskTTL = most
		}
	}
	if v.last = n.retry == nil; v.last {
		return n.work.do(ctx, v)
	}
	for try := 1; ; try++ {
		v.board = engine.NewBoard(v.fork)
		err := v.attempt(ctx, try)
		if err == nil || try == n.retry.Attempts || !v.again(err) {
			return err
		}
		if err := v.wait(ctx, try, time.Duration(n.retry.Wait)<<(try-1)); err != nil {
			return err
		}
	}
}

// attempt is one of several, in a scope of its own from the second on. What fails is on record.
func (v *visit) attempt(ctx context.Context, try int) error {
	one := *v
	one.do, one.last = engine.Keep(v.do), try == v.node.retry.Attempts
	if try == 1 {
		return v.node.work.do(ctx, &one)
	}
	scope := "~" + strconv.Itoa(try)
	one.scope, one.first = join(v.scope, scope), v.scope
	return one.do.Branch(ctx, engine.Branch{Scope: scope, Run: func(ctx context.Context, do engine.Steps) error {
		one.do = do
		return v.node.work.do(ctx, &one)
	}})
}

// again reports whether another attempt may help.
func (v *visit) again(err error) bool {
	if errdefs.Of(err) == nil || errdefs.Interrupted.Is(err) {
		return false
	}
	if call := (*failedCall)(nil); errors.As(err, &call) {
		return call.class != nil && slices.Contains(v.node.classes, call.class)
	}
	return slices.ContainsFunc(v.node.classes, func(c *errdefs.Class) bool { return c.Is(err) }) && !slices.ContainsFunc(final, func(c *errdefs.Class) bool { return c.Is(err) })
}

// wait lets time pass before the next attempt. Its end is on record: a resumed run waits for what is left of it.
func (w walk) wait(ctx context.Context, try int, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	id := strconv.Itoa(try)
	failed, err := engine.Do[journal.Timed](ctx, w.do, clock{id: "attempt-" + id})
	if err != nil {
		return err
	}
	_, err = engine.Do[journal.Timed](ctx, w.do, pause{id: id, Until: failed.At.Add(min(d, longestWait))})
	return err
}

// simple is an effect that may be done again when its end is not on record.
type simple struct{}

// Intent is none.
func (simple) Intent() journal.Data { return nil }

// Lost asks to be done again.
func (simple) Lost() journal.Data { return nil }

// Concurrent is false: a barrier.
func (simple) Concurrent() bool { return false }

// clock looks at the clock. Outcome: journal.Timed.
type clock struct {
	simple
	id string
}

// pause waits. Outcome: journal.Timed.
type pause struct {
	simple
	id    string
	Until time.Time
}

// call runs a function. Outcome: journal.Visited.
type call struct {
	simple
	Node  string
	Board engine.Snapshot `json:"-"`
}

// Key is "clock/ID".
func (c clock) Key() journal.Key { return journal.Key{Op: "clock", ID: c.id} }

// PausesUntil implements [engine.Pausing].
func (p pause) PausesUntil() time.Time { return p.Until }

// Key is "wait/ID".
func (p pause) Key() journal.Key { return journal.Key{Op: "wait", ID: p.id} }

// Key is "visit"; the scope names the node.
func (call) Key() journal.Key { return journal.Key{Op: "visit"} }

// limited are steps that must be over by a moment.
type limited struct {
	engine.Steps
	until time.Time
}

func (l limited) Do(ctx context.Context, effects ...engine.Effect) ([]journal.Data, error) {
	all := make([]engine.Effect, len(effects))
	for i, e := range effects {
		if all[i] = e; !isStore(e) { // what the work came to in time is kept
			all[i] = within{e, l.until}
		}
	}
	return l.Steps.Do(ctx, all...)
}

func (l limited) Branch(ctx context.Context, branches ...engine.Branch) error {
	all := make([]engine.Branch, len(branches))
	for i, b := range branches {
		all[i] = engine.Branch{Scope: b.Scope, Run: func(ctx context.Context, s engine.Steps) error { return b.Run(ctx, limited{s, l.until}) }}
	}
	return l.Steps.Branch(ctx, all...)
}

func isStore(e engine.Effect) bool {
	_, ok := engine.Bare(e).(store)
	return ok
}

// within is an effect that must be over by a moment.
type within struct {
	engine.Effect
	Until time.Time
}

// Unwrap gives the effect without its limit.
func (w within) Unwrap() engine.Effect { return w.Effect }

// Perform does an effect of the graph, and of the loops in it.
func (g *Engine) Perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	until := deadlineOf(e)
	if until.IsZero() {
		return g.perform(ctx, run, host, e)
	}
	inner, cancel := context.WithDeadlineCause(ctx, until, errLate)
	defer cancel()
	if inner.Err() != nil {
		return nil, late(ctx, e)
	}
	d, err := g.perform(inner, run, host, e)
	if err != nil && inner.Err() != nil && ctx.Err() == nil && !errors.As(err, new(engine.InterruptedError)) {
		if d != nil { // what it came to counts, and the next step of the node fails
			return d, nil
		}
		return nil, late(ctx, e)
	}
	return d, err
}

var errLate = errdefs.Timeout.Errorf("graph: the node's time is over")

func late(ctx context.Context, e engine.Effect) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errdefs.Timeout.Errorf("%v: the node's time is over: raise its timeout", e.Key())
}

// deadlineOf is the first moment by which an effect must be over; zero for none.
func deadlineOf(e engine.Effect) (until time.Time) {
	for {
		if w, ok := e.(within); ok && (until.IsZero() || w.Until.Before(until)) {
			until = w.Until
		}
		w, ok := e.(engine.Wrapped)
		if !ok {
			return until
		}
		e = w.Unwrap()
	}
}

func (g *Engine) perform(ctx context.Context, run engine.Run, host engine.Host, e engine.Effect) (journal.Data, error) {
	n := g.at(e.Key().Scope)
	run.Background.Flush(ctx, host) // what functions warn of is heard at the next effect, whatever that is
	switch own := engine.Bare(e).(type) {
	case merged:
		return own.Board, nil
	case look:
		return g.look(ctx, run, own)
	case store:
		return g.keep(ctx, own), nil
	case clock:
		return journal.Timed{At: time.Now().UTC()}, nil
	case pause:
		timer := time.NewTimer(time.Until(own.Until))
		defer timer.Stop()
		select {
		case <-timer.C:
			return journal.Timed{At: time.Now().UTC()}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case call:
		if n == nil || n.fn == nil {
			return nil, errdefs.NotAvailable.Errorf("there is no function of the node %s here", own.Node)
		}
		b, err := n.fn(ctx, own.Board)
		if err != nil {
			return nil, err
		}
		return journal.Visited{Node: own.Node, Board: b}, nil
	}
	if n != nil && n.loop != nil {
		return n.loop.Perform(ctx, run, host, e)
	}
	return g.tools.Perform(ctx, run, host, e)
}

// at finds the node of a scope.
func (g *Engine) at(scope string) (n *node) {
	in := g.root
	for part := range strings.SplitSeq(scope, ":") {
		if part == "" || part[0] == '~' || part[0] == '[' {
			continue
		}
		if in == nil {
			return nil
		}
		id, _, _ := strings.Cut(part, "#")
		if n = in.byID[id]; n == nil {
			return nil
		}
		in = n.sub
	}
	return n
}
