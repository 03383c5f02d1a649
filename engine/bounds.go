package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model"
)

// Bounds is what binds a run and everything below it. It travels in the context, so that no tool, node or script can forget it.
type Bounds struct {
	Hooks  []hook.Middleware // all four points for the run itself, the tool points (hook.Gates) for its children
	Budget *Budget
	// Tracers stand around the run and its effects, and around those below; the first is the outermost.
	Tracers []Tracer
	Depth   int // 0 for a run that no run started
}

// Child gives the bounds of a run below b: b's gates first, then its own hooks; a share of the budget.
func (b Bounds) Child(own Bounds) Bounds {
	out := Bounds{Hooks: append(hook.Gates(b.Hooks), own.Hooks...), Budget: own.Budget, Tracers: slices.Concat(b.Tracers, own.Tracers), Depth: b.Depth + 1}
	out.Budget = out.Budget.under(b.Budget)
	return out
}

type boundsKey struct{}

// WithBounds binds everything below; only agent.Run needs it.
func WithBounds(ctx context.Context, b Bounds) context.Context {
	return &bound{ctx, b}
}

// bound is a context with bounds, in one piece.
type bound struct {
	context.Context
	bounds Bounds
}

func (c *bound) Value(key any) any {
	if _, ok := key.(boundsKey); ok {
		return &c.bounds
	}
	return c.Context.Value(key)
}

// BoundsFrom gives the bounds in force; ok is false when nothing binds yet.
func BoundsFrom(ctx context.Context) (b Bounds, ok bool) {
	if p, is := ctx.Value(boundsKey{}).(*Bounds); is {
		b = *p
		b.Hooks, b.Tracers = slices.Clip(b.Hooks), slices.Clip(b.Tracers)
		return b, true
	}
	return b, false
}

// Budget limits a whole tree of runs. It is shared and so not deterministic: it is only looked at inside effects.
// A zero limit is none. Safe for concurrent use; the limits must not be changed while a run uses it. A Budget may bind any number of runs, and
// nil is one without limits.
type Budget struct {
	Calls      int64         // model calls
	Tokens     int64         // input, output and cached tokens together
	CostMicros int64         // millionths of a dollar
	Time       time.Duration // wall time since the first run that it binds began in this process

	calls, tokens, cost atomic.Int64
	began               atomic.Pointer[time.Time]
	own, above          *Budget // of a link in a chain, which is made by under: a caller's own Budget is never changed
	mu                  sync.Mutex
	runs                map[string]bool // unfinished runs that are counted here
}

// Anew is a budget of the same limits of which nothing is spent, and whose first run began then. What is above b is not above it.
func (b *Budget) Anew(began time.Time) *Budget {
	b = b.self()
	n := &Budget{Calls: b.Calls, Tokens: b.Tokens, CostMicros: b.CostMicros, Time: b.Time}
	n.began.Store(&began)
	return n
}

// under gives b with what is above it: everything counts in both. What is above b already is not counted twice.
func (b *Budget) under(above *Budget) *Budget {
	if above == nil {
		return b
	}
	for _, l := range slices.Backward(slices.Collect(b.levels)) {
		if !above.has(l) {
			above = &Budget{own: l, above: above}
		}
	}
	return above
}

// levels yields the budgets of a chain, from the bottom up.
func (b *Budget) levels(yield func(*Budget) bool) {
	for ; b != nil; b = b.above {
		if !yield(b.self()) {
			return
		}
	}
}

func (b *Budget) self() *Budget {
	if b.own != nil {
		return b.own
	}
	return b
}

func (b *Budget) has(level *Budget) bool {
	for l := range b.levels {
		if l == level {
			return true
		}
	}
	return false
}

// Enter says that a run begins to spend, here and above. A resumed run brings what it has spent so far; that counts unless the run spent it here: it
// is known by its id until it leaves.
func (b *Budget) Enter(run string, spent journal.Spent) {
	for l := range b.levels {
		l.mu.Lock()
		if now := time.Now(); l.began.Load() == nil {
			l.began.Store(&now)
		}
		if !l.runs[run] {
			l.calls.Add(int64(spent.Steps))
			l.spend(spent.Usage, spent.CostMicros)
		}
		if l.runs == nil {
			l.runs = map[string]bool{}
		}
		l.runs[run] = true
		l.mu.Unlock()
	}
}

// Leave says that a run is over and will not be resumed.
func (b *Budget) Leave(run string) {
	for l := range b.levels {
		l.mu.Lock()
		delete(l.runs, run)
		l.mu.Unlock()
	}
}

// Call counts a model call that is about to begin, here and above; errdefs.BudgetExceeded, and nothing counted, when this budget or one above is used up.
// What a call takes is known when it is over: the last one may go over a limit of tokens or money, and so may those that run beside it.
func (b *Budget) Call() error {
	var counted []*Budget
	for b := range b.levels {
		err := b.check()
		if n := b.calls.Add(1); err == nil && b.Calls > 0 && n > b.Calls {
			err = errdefs.BudgetExceeded.Errorf("the budget of %d model calls is used up", b.Calls)
		}
		if counted = append(counted, b); err != nil {
			for _, b := range counted {
				b.calls.Add(-1)
			}
			return err
		}
	}
	return nil
}

func (b *Budget) check() error {
	if t := b.tokens.Load(); b.Tokens > 0 && t >= b.Tokens {
		return errdefs.BudgetExceeded.Errorf("the budget of %d tokens is used up: %d were used", b.Tokens, t)
	}
	if c := b.cost.Load(); b.CostMicros > 0 && c >= b.CostMicros {
		return errdefs.BudgetExceeded.Errorf("the budget of $%.6g is used up: $%.6g were spent", float64(b.CostMicros)/1e6, float64(c)/1e6)
	}
	if began := b.began.Load(); b.Time > 0 && began != nil && time.Since(*began) >= b.Time {
		return errdefs.BudgetExceeded.Errorf("the budget of %v is used up: the first run began %v ago", b.Time, time.Since(*began).Round(time.Second))
	}
	return nil
}

// Left is what a budget and those above it leave; -1 is no limit. Limits that were gone over leave 0.
type Left struct {
	Calls, Tokens, CostMicros int64
	Time                      time.Duration
}

// Left is what runs below may still take, all together. They count in the same budget: there is nothing to hand out.
func (b *Budget) Left() Left {
	left := Left{-1, -1, -1, -1}
	least := func(to *int64, limit, used int64) {
		if rest := max(0, limit-used); limit > 0 && (*to < 0 || rest < *to) {
			*to = rest
		}
	}
	for b := range b.levels {
		least(&left.Calls, b.Calls, b.calls.Load())
		least(&left.Tokens, b.Tokens, b.tokens.Load())
		least(&left.CostMicros, b.CostMicros, b.cost.Load())
		var used time.Duration
		if began := b.began.Load(); began != nil {
			used = time.Since(*began)
		}
		least((*int64)(&left.Time), int64(b.Time), int64(used))
	}
	return left
}

// LimitsCost reports whether this budget or one above limits money, so that a model without a known price must be refused.
func (b *Budget) LimitsCost() bool {
	for b := range b.levels {
		if b.CostMicros > 0 {
			return true
		}
	}
	return false
}

// Spend counts a call, here and above.
func (b *Budget) Spend(u model.Usage, costMicros int64) {
	for b := range b.levels {
		b.spend(u, costMicros)
	}
}

func (b *Budget) spend(u model.Usage, costMicros int64) {
	b.tokens.Add(int64(u.Total()))
	b.cost.Add(costMicros)
}

// Spent is what was counted so far; 0 for nil.
func (b *Budget) Spent() (tokens, costMicros int64) {
	if b == nil {
		return 0, 0
	}
	b = b.self()
	return b.tokens.Load(), b.cost.Load()
}
