package resilience

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// RetryPolicy says what is tried again, and how often. The zero value has the defaults given here.
type RetryPolicy struct {
	On       []*errdefs.Class // what is worth another attempt; nil: RateLimit, NotAvailable and Timeout
	Attempts int              // at most, the first one included; 0: 4; 1: nothing is tried again
	// Wait is the longest wait before the second attempt; it doubles before each next one, up to MaxWait. How long it really is
	// is chance, from 0 on, so that callers that failed together don't come back together. 0: 500 ms and 30 s.
	Wait, MaxWait time.Duration
	// MaxRetryAfter is the longest that a provider's own Retry-After is heeded: what it asks for beyond is cut. The wait by chance comes on top
	// of it. 0: a minute; negative: it is not heeded.
	MaxRetryAfter time.Duration
	Total         time.Duration  // no attempt begins later than this after the call did; an attempt under way is not cut off. 0: 2 minutes; negative: no limit
	Budget        *RetryBudget   // nil: one of the middleware's own, for all models that it stands around
	Restart       bool           // also after text or reasoning was shown: for handlers that heed model.StreamResult.Void
	Rand          func() float64 // chance, from 0 to below 1, safe for concurrent use; nil: math/rand/v2
}

// Retry tries a request again that failed for a reason that may pass. Attempts have [model.WithAttempt]. What the last one failed with is
// returned, with the number of attempts before it and the same class. A cancelled context ends a wait at once. A quota that is used up (code
// insufficient_quota) is not waited for.
func Retry(p RetryPolicy) model.Middleware {
	if p.On == nil {
		p.On = transient
	}
	p.On = slices.Clone(p.On)
	p.Attempts = orDefault(p.Attempts, 4)
	p.Wait, p.MaxWait = orDefault(p.Wait, 500*time.Millisecond), orDefault(p.MaxWait, 30*time.Second)
	p.MaxRetryAfter, p.Total = orDefault(p.MaxRetryAfter, time.Minute), orDefault(p.Total, 2*time.Minute)
	if p.Total < 0 {
		p.Total = math.MaxInt64
	}
	if p.Budget == nil {
		p.Budget = new(RetryBudget)
	}
	if p.Rand == nil {
		p.Rand = rand.Float64 // #nosec G404: it spreads waits, and keeps no secret
	}
	return func(m model.Model) model.Model { return forwarding(&retrying{m, p}, m) }
}

type withoutKey struct{}

// WithoutRetries has [Retry] try nothing again in ctx: whoever made it tries again, with an attempt of its own for each try. It is for places that are told of each failure, and wait without holding anything.
func WithoutRetries(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutKey{}, true)
}

// orDefault gives n, or what stands for 0.
func orDefault[N int | float64 | time.Duration](n, zero N) N {
	if n == 0 {
		return zero
	}
	return n
}

type retrying struct {
	model.Model
	RetryPolicy
}

// Complete implements model.Model.
func (r *retrying) Complete(ctx context.Context, req model.Request) (resp *model.Response, err error) {
	err = r.attempts(ctx, nil, func(ctx context.Context) (err error) {
		resp, err = r.Model.Complete(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// CompleteStream implements model.Model.
func (r *retrying) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	w := &watch{to: cb}
	return r.attempts(ctx, w, func(ctx context.Context) error { return w.stream(ctx, r.Model, req, w.take) })
}

func (r *retrying) attempts(ctx context.Context, w *watch, try func(context.Context) error) error {
	if ctx.Value(withoutKey{}) != nil {
		return try(ctx)
	}
	began, before := time.Now(), model.Attempt(ctx)
	r.Budget.called()
	for n := 1; ; n++ {
		attempt := ctx
		if n > 1 {
			attempt = model.WithAttempt(ctx, before+n-1)
		}
		err := try(attempt)
		if err == nil || ctx.Err() != nil || w.done(r.Restart) || !r.passing(err) {
			return err
		}
		wait := r.wait(n, err)
		switch {
		case n >= r.Attempts:
			return gaveUp(n, began, "", err)
		case wait > r.Total-time.Since(began):
			return gaveUp(n, began, " (the next one would be too late)", err)
		case !r.Budget.take():
			return gaveUp(n, began, " (the retry budget is spent)", err)
		}
		if err := w.void(err, wait); err != nil {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// passing reports whether err may be over in a moment.
func (r *retrying) passing(err error) bool {
	var e *model.Error
	if errors.As(err, &e) && e.Code == "insufficient_quota" {
		return false
	}
	return slices.Contains(r.On, classOf(err))
}

// wait is how long after the n-th attempt the next one begins.
func (r *retrying) wait(n int, err error) (d time.Duration) {
	var e *model.Error
	if errors.As(err, &e) {
		d = max(0, min(e.RetryAfter, r.MaxRetryAfter))
	}
	most := min(float64(r.Wait)*math.Exp2(float64(n-1)), float64(r.MaxWait))
	chance := time.Duration(r.Rand() * max(0, most))
	return min(d, math.MaxInt64-chance) + chance
}

func gaveUp(attempts int, began time.Time, why string, err error) error {
	if attempts == 1 {
		return err
	}
	return fmt.Errorf("resilience: gave up after %d attempts in %v%s: %w", attempts, time.Since(began).Round(time.Millisecond), why, err)
}

// RetryBudget is how many retries a program may make, so that an outage does not multiply its calls: of n calls in t minutes at most
// Burst + Ratio·n + PerMinute·t are retries. When it is spent, calls fail with what their first attempt failed with. Several middlewares may share one. The zero
// value has the defaults given here; negative values are none. Don't copy it, or change it while it is in use.
type RetryBudget struct {
	Burst     float64 // retries at the beginning, and the most that are saved up; 0: 20
	Ratio     float64 // retries that each call adds; 0: 0.2
	PerMinute float64 // retries that each minute adds; 0: 10

	mu   sync.Mutex
	left float64
	at   time.Time // zero: not used yet
}

// called adds what a call brings.
func (b *RetryBudget) called() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(orDefault(b.Ratio, 0.2))
}

// take takes a retry, if there is one.
func (b *RetryBudget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(0)
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

func (b *RetryBudget) refill(more float64) {
	burst, now := max(0, orDefault(b.Burst, 20)), time.Now()
	if b.at.IsZero() {
		b.left, b.at = burst, now
	}
	b.left = min(burst, b.left+max(0, more)+max(0, orDefault(b.PerMinute, 10))*max(0, now.Sub(b.at).Minutes()))
	b.at = now
}
