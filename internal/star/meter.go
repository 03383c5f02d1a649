package star

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
)

// Limits bound what a program computes. They count the same at every run, so what once went through goes through again.
type Limits struct {
	// Steps is how many steps the interpreter takes at most; an operation that works on much at once (comparing, sorting, joining) counts as many as it is worth.
	Steps int64
	// Bytes is how much a program makes at most, all in all: strings, lists, dicts and numbers, by an estimate; nothing is given back for what it drops. No single
	// value is larger than a quarter of it, counting what it has more than once as often as it has it.
	Bytes int64
}

// A Meter counts what the threads of one program take together. Safe for concurrent use.
type Meter struct {
	limits       Limits
	steps, bytes atomic.Int64
}

// NewMeter begins at 0.
func NewMeter(l Limits) *Meter { return &Meter{limits: l} }

// Used is what was taken so far.
func (m *Meter) Used() Limits { return Limits{m.steps.Load(), m.bytes.Load()} }

// Thread makes a thread that counts on m and ends with ctx. Whoever made it calls done when it is over, and gets what was wrong: the limit that was passed, or why ctx
// ended. Not safe for concurrent use: a thread for each goroutine.
func (m *Meter) Thread(ctx context.Context, name string) (t *starlark.Thread, done func() error) {
	c := &counter{m: m, ctx: ctx}
	t = &starlark.Thread{Name: name, Print: func(*starlark.Thread, string) {}}
	t.SetLocal(counterKey, c)
	t.SetMaxExecutionSteps(chunk)
	t.OnMaxSteps = c.tick
	return t, func() error {
		c.count(t)
		return c.failed
	}
}

const (
	counterKey = "pawl.counter"
	chunk      = 512 // steps between two looks at the limits and the context
)

// counter is a thread's part of the meter.
type counter struct {
	m       *Meter
	ctx     context.Context //nolint:containedctx // of the thread: the interpreter's callback has no other way to it
	counted uint64          // of the thread's steps
	failed  error
}

// tick is called by the interpreter now and then.
func (c *counter) tick(t *starlark.Thread) {
	c.count(t)
	if c.failed != nil {
		t.Cancel(c.failed.Error())
		return
	}
	t.SetMaxExecutionSteps(t.Steps + chunk)
}

func (c *counter) count(t *starlark.Thread) {
	n := t.Steps - c.counted
	c.counted = t.Steps
	_ = c.work(int64(n)) //nolint:gosec // steps of a chunk
	if c.failed == nil && c.ctx.Err() != nil {
		c.failed = c.ctx.Err()
	}
}

// work counts what one operation is worth, before it is done.
func (c *counter) work(steps int64) error {
	if now := c.m.steps.Add(steps); now > c.m.limits.Steps && c.failed == nil {
		c.failed = errdefs.BudgetExceeded.Errorf("more than %d steps: the limit", c.m.limits.Steps)
	}
	return c.failed
}

// busy counts what a sort has compared since it was last asked, and ends it with the context.
func (c *counter) busy() error {
	if c.failed == nil {
		c.failed = c.ctx.Err()
	}
	return c.work(compares / 8)
}

// make counts bytes, before they are made.
func (c *counter) make(bytes int64) error {
	if bytes > c.largest() {
		c.failed = errdefs.BudgetExceeded.Errorf("a value of more than %d bytes: the limit of one value", c.largest())
	} else if now := c.m.bytes.Add(bytes); now > c.m.limits.Bytes && c.failed == nil {
		c.failed = errdefs.BudgetExceeded.Errorf("more than %d bytes made: the limit", c.m.limits.Bytes)
	}
	return c.failed
}

func (c *counter) largest() int64 { return c.m.limits.Bytes / 4 }

// look counts the work of going through values with all that is in them, and gives their size.
func (c *counter) look(vs ...starlark.Value) (size int64, err error) {
	for _, v := range vs {
		n, err := measure(v, c.largest())
		if err != nil {
			c.failed = errdefs.BudgetExceeded.Errorf("%w", err)
			return 0, c.failed
		}
		size += n
	}
	return size, c.work(size / 64)
}

// counterOf is nil in a thread of somebody else's.
func counterOf(t *starlark.Thread) *counter {
	c, _ := t.Local(counterKey).(*counter)
	return c
}

// These are estimates of what values take.
const (
	word    = 16  // one that stands for itself
	perItem = 16  // a place in a list
	perKey  = 100 // an entry of a dict or a set
	perDict = 500
)

// measure is the size of a value with all that is in it, what is in it twice counted twice: that is what printing, comparing, hashing, freezing or copying it takes.
// It is an error to be larger than most, or to nest deeper than 1000: a list that contains itself does.
func measure(v starlark.Value, most int64) (int64, error) {
	s := sizer{left: most}
	if err := s.add(v, 0); err != nil {
		return 0, err
	}
	return most - s.left, nil
}

type sizer struct{ left int64 }

func (s *sizer) take(n int) error {
	if s.left -= int64(n); s.left < 0 {
		return fmt.Errorf("a value is too large, with all that it contains")
	}
	return nil
}

func (s *sizer) add(v starlark.Value, depth int) error {
	if depth > 1000 {
		return fmt.Errorf("a value nests deeper than 1000, or contains itself")
	}
	each := func(perItem int, l starlark.Indexable) error {
		if err := s.take(word + perItem*l.Len()); err != nil {
			return err
		}
		for i := range l.Len() {
			if err := s.add(l.Index(i), depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := v.(type) {
	case starlark.String:
		return s.take(word + len(v))
	case starlark.Bytes:
		return s.take(word + len(v))
	case starlark.Int:
		return s.take(word + bits(v)/8)
	case *starlark.List:
		return each(perItem, v)
	case starlark.Tuple:
		return each(perItem, v)
	case *starlark.Dict:
		if err := s.take(perDict); err != nil {
			return err
		}
		for k, x := range v.Entries() {
			if err := s.take(perKey); err != nil {
				return err
			}
			if err := s.add(k, depth+1); err != nil {
				return err
			}
			if err := s.add(x, depth+1); err != nil {
				return err
			}
		}
		return nil
	case *starlark.Set:
		if err := s.take(perDict); err != nil {
			return err
		}
		for x := range v.Elements() {
			if err := s.take(perKey); err != nil {
				return err
			}
			if err := s.add(x, depth+1); err != nil {
				return err
			}
		}
		return nil
	case *Struct:
		return each(perItem, starlark.Tuple(v.values))
	case Message:
		return s.take(word + len(v.Text()))
	}
	return s.take(word)
}

// bits is the length of an int; 0 for one that fits a word.
func bits(i starlark.Int) int {
	if _, small := i.Int64(); small {
		return 0
	}
	return i.BigInt().BitLen()
}
