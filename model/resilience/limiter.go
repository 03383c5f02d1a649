package resilience

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/model"
)

// LimiterPolicy is what a provider grants a key. A limit of 0 is none.
type LimiterPolicy struct {
	Requests int // a minute
	Tokens   int // a minute, as Count counts them
	// Burst is how much of the rate may be used at once, as the time in which it accrues. The rate is lowered so far that a burst and a minute after it
	// keep to the limits. 0: 6 s, which is an eleventh of a minute's worth at once, and ten elevenths of the rate in the long run; negative: one request, or one token, at once
	Burst time.Duration
	Count func(model.Usage) int // what of a call counts; nil: Usage.Total. Some providers don't count what is read from a cache
}

// Limiter holds calls back so that they keep to rates a minute. One Limiter stands for one key of a provider: all models that its
// Middleware stands around share it, whatever agents they belong to. Who comes first is served first, large or small. Make one with [NewLimiter].
type Limiter struct {
	burst    time.Duration
	count    func(model.Usage) int
	mu       sync.Mutex
	requests bucket
	tokens   bucket
	closed   time.Time // nobody goes before: the provider said so
	queue    []*waiter // the first of it looks at the clock, the others wait for their turn
}

// waiter is a call that is held back.
type waiter struct {
	look chan struct{} // it became the first, or things have changed; holds one
}

// NewLimiter makes a limiter whose buckets are full.
func NewLimiter(p LimiterPolicy) *Limiter {
	l := &Limiter{burst: orDefault(p.Burst, 6*time.Second), count: p.Count}
	l.burst = max(0, l.burst)
	if l.count == nil {
		l.count = model.Usage.Total
	}
	l.requests, l.tokens = newBucket(p.Requests, l.burst), newBucket(p.Tokens, l.burst)
	return l
}

// Middleware holds each call back until there is room for it, which ends at once with the call's context. A request counts when it is let
// through, and its tokens by an estimate, without the reply; once the reply is there, by its usage. Of a call that fails the estimate
// stands. A request that is larger than a burst waits until nothing is in use, and those after it until its tokens have accrued.
//
// When the provider refuses a call with errdefs.RateLimit and a RetryAfter, all calls wait for so long, up to a minute. Limits in replies' headers are not read.
func (l *Limiter) Middleware() model.Middleware {
	return func(m model.Model) model.Model { return forwarding(&limited{m, l}, m) }
}

type limited struct {
	model.Model
	limiter *Limiter
}

// Complete implements model.Model.
func (m *limited) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	n, err := m.begin(ctx, req)
	if err != nil {
		return nil, err
	}
	resp, err := m.Model.Complete(ctx, req)
	m.limiter.settle(n, resp, err)
	return resp, err
}

// CompleteStream implements model.Model.
func (m *limited) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	n, err := m.begin(ctx, req)
	if err != nil {
		return err
	}
	var settled bool
	err = m.Model.CompleteStream(ctx, req, func(s model.StreamResult) error {
		if s.Final && s.Response != nil {
			m.limiter.settle(n, s.Response, nil)
			settled = true
		}
		return cb(s)
	})
	if !settled {
		m.limiter.settle(n, nil, err)
	}
	return err
}

// begin waits for room, and gives what was taken of the tokens.
func (m *limited) begin(ctx context.Context, req model.Request) (n int, err error) {
	if m.limiter.tokens.rate > 0 { // else nobody need know
		n = estimate(req)
	}
	return n, m.limiter.wait(ctx, n)
}

func (l *Limiter) wait(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	if len(l.queue) == 0 && l.take(n) == 0 {
		l.mu.Unlock()
		return nil
	}
	w := &waiter{make(chan struct{}, 1)}
	if l.queue = append(l.queue, w); len(l.queue) == 1 {
		w.look <- struct{}{}
	}
	l.mu.Unlock()
	defer l.leave(w)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for first := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.look:
			first = true
		case <-timer.C:
		}
		if !first {
			continue // an hour in the queue
		}
		l.mu.Lock()
		d := l.take(n)
		l.mu.Unlock()
		if d == 0 {
			return nil
		}
		timer.Reset(d)
	}
}

// leave takes w out of the queue, and tells who is first then.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	l.queue = slices.Delete(l.queue, i, i+1)
	if i == 0 {
		l.wake()
	}
}

// wake has the first one look. l.mu is held.
func (l *Limiter) wake() {
	if len(l.queue) == 0 {
		return
	}
	select {
	case l.queue[0].look <- struct{}{}:
	default: // it is about to
	}
}

// take takes a request and n tokens, or gives how long that has to wait as things stand. l.mu is held.
func (l *Limiter) take(n int) time.Duration {
	now := time.Now()
	d := max(l.closed.Sub(now), l.requests.due(now, 1), l.tokens.due(now, float64(n)))
	if d > 0 {
		return d
	}
	l.requests.level--
	l.tokens.level -= float64(n)
	return 0
}

// settle puts what a call took in place of the estimate.
func (l *Limiter) settle(n int, resp *model.Response, err error) {
	var e *model.Error
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && resp != nil && resp.Usage != (model.Usage{}):
		l.tokens.level += float64(n - max(0, l.count(resp.Usage)))
	case errors.As(err, &e) && errdefs.RateLimit.Is(err) && e.RetryAfter > 0:
		if until := time.Now().Add(min(e.RetryAfter, time.Minute)); until.After(l.closed) {
			l.closed = until
		}
	}
	l.wake()
}

// bucket fills with time.
type bucket struct {
	rate  float64 // a second; 0: no limit
	size  float64
	level float64 // below 0: more was used than there was
	at    time.Time
}

func newBucket(perMinute int, burst time.Duration) bucket {
	if perMinute <= 0 {
		return bucket{}
	}
	rate := float64(perMinute) / (time.Minute + burst).Seconds()
	size := max(1, rate*burst.Seconds())
	return bucket{rate: rate, size: size, level: size, at: time.Now()}
}

// due is how long it takes until n can be taken; what is larger than the bucket, when that is full.
func (b *bucket) due(now time.Time, n float64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.level = min(b.size, b.level+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	lack := min(n, b.size) - b.level
	if lack <= 1e-9 { // what is lost in sums of floating point
		return 0
	}
	return time.Duration(lack/b.rate*float64(time.Second)) + 1
}
