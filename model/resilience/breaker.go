package resilience

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// BreakerPolicy says when a model is left alone, and how long. The zero value has the defaults given here.
type BreakerPolicy struct {
	Failures int              // so many failures …; 0: 5; negative: it is never left alone
	Calls    int              // … among the last so many calls …; 0: 10; at least Failures
	Window   time.Duration    // … of this time; 0: a minute
	Open     time.Duration    // how long it is left alone; 0: 30 s
	On       []*errdefs.Class // what counts as a failure; nil: RateLimit, NotAvailable and Timeout
}

// Breaker leaves a model alone that fails too often: calls fail at once with errdefs.NotAvailable, code circuit_open, and RetryAfter says for how long. Then
// one call is let through: if it fails, the time begins anew; if not, all are; while it says neither, another one is let through each time that the time is over. Calls that were cancelled, or whose handler failed, don't count. Each model
// that the middleware stands around has a circuit of its own, which all calls of what it gives share.
func Breaker(p BreakerPolicy) model.Middleware {
	p.Failures, p.Window, p.Open = orDefault(p.Failures, 5), orDefault(p.Window, time.Minute), orDefault(p.Open, 30*time.Second)
	p.Calls = max(orDefault(p.Calls, 10), p.Failures)
	if p.On == nil {
		p.On = transient
	}
	p.On = slices.Clone(p.On)
	return func(m model.Model) model.Model {
		if p.Failures < 0 {
			return m
		}
		return forwarding(&circuit{inner: m, policy: p}, m)
	}
}

// circuit is a model behind a breaker.
type circuit struct {
	inner  model.Model
	policy BreakerPolicy

	mu     sync.Mutex
	era    int         // grows when the circuit opens or closes: what began before says nothing of now
	until  time.Time   // left alone until then; zero: closed
	failed []time.Time // of the last calls; zero: it did not fail
}

// Complete implements model.Model.
func (c *circuit) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	era, err := c.begin()
	if err != nil {
		return nil, err
	}
	v := unknown
	defer func() { c.end(era, v) }()
	resp, err = c.inner.Complete(ctx, req)
	v = c.judge(ctx, nil, err)
	return resp, err
}

// CompleteStream implements model.Model.
func (c *circuit) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	era, err := c.begin()
	if err != nil {
		return err
	}
	v := unknown
	defer func() { c.end(era, v) }()
	w := &watch{to: cb}
	err = w.stream(ctx, c.inner, req, w.take)
	v = c.judge(ctx, w, err)
	return err
}

// verdict is what a call says of the model.
type verdict int

const (
	unknown verdict = iota
	sound
	broken
)

func (c *circuit) judge(ctx context.Context, w *watch, err error) verdict {
	switch {
	case err == nil:
		return sound
	case ctx.Err() != nil, w != nil && w.err != nil, classOf(err) == nil:
		return unknown
	case slices.Contains(c.policy.On, classOf(err)):
		return broken
	}
	return sound // it answered: the request was at fault
}

func (c *circuit) begin() (era int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		return c.era, nil
	}
	now := time.Now()
	left := c.until.Sub(now)
	if left <= 0 {
		c.until = now.Add(c.policy.Open) // the others wait for what it finds, though not for ever
		return c.era, nil
	}
	return 0, &model.Error{
		Provider: "resilience", Kind: errdefs.NotAvailable, Code: "circuit_open", RetryAfter: left,
		Message: fmt.Sprintf("%s failed too often: it is left alone for %v", nameOf(c.inner), left.Round(time.Millisecond)),
	}
}

func (c *circuit) end(era int, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case era != c.era:
	case c.until.IsZero():
		if v == unknown {
			return
		}
		var at time.Time
		if v == broken {
			at = now
		}
		if c.failed = append(c.failed, at); len(c.failed) > c.policy.Calls {
			c.failed = slices.Delete(c.failed, 0, 1)
		}
		n := 0
		for _, t := range c.failed {
			if !t.IsZero() && now.Sub(t) <= c.policy.Window {
				n++
			}
		}
		if n >= c.policy.Failures {
			c.turn(now.Add(c.policy.Open))
		}
	case v == sound:
		c.turn(time.Time{})
	case v == broken:
		c.turn(now.Add(c.policy.Open))
	default:
		c.until = now // the next call may find out
	}
}

// turn opens the circuit until then, or closes it.
func (c *circuit) turn(until time.Time) {
	c.until, c.failed = until, c.failed[:0]
	c.era++
}
