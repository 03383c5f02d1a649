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

// LimiterPolicy is what a provider grants a key. A limit of 0 is the one that the provider announces, or none.
type LimiterPolicy struct {
	Requests int // a minute
	Tokens   int // a minute, as Count counts them
	// Burst is how much of the rate may be used at once, as the time in which it accrues. The rate is lowered so far that a burst and a minute after it
	// keep to the limits. 0: 6 s, which is an eleventh of a minute's worth at once, and ten elevenths of the rate in the long run; negative: one request, or one token, at once
	Burst time.Duration
	Count func(model.Usage) int // what of a call counts; nil: Usage.Total. Some providers, such as Anthropic for most models, don't count what is read from a cache
}

// Limiter holds calls back so that they keep to rates a minute. One Limiter stands for one key of a provider: all models that its
// Middleware stands around share it, whatever agents they belong to. Who comes first is served first, large or small. Make one with [NewLimiter].
//
// It learns from what replies and refusals say ([model.Rate]). A limit below that of the policy counts in its place, until the provider announces another one, or
// none for five minutes; one above never does. When little remains, no more than that is let through at once; when nothing does, all calls wait for the reset, up
// to a minute. Nor does an announced limit, however small, hold the next call back for more than two.
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
// stands. To whoever streams, a call that is held back for more than a second says so ([model.StreamResult].Held). A request that is larger than a burst waits until nothing is in use, and those after it until its tokens have accrued.
//
// When the provider refuses a call with errdefs.RateLimit and a RetryAfter, all calls wait for so long, up to a minute.
func (l *Limiter) Middleware() model.Middleware {
	return func(m model.Model) model.Model { return forwarding(&limited{m, l}, m) }
}

type limited struct {
	model.Model
	limiter *Limiter
}

// Complete implements model.Model.
func (m *limited) Complete(ctx context.Context, req model.Request) (*model.Response, error) {
	n, err := m.begin(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	resp, err := m.Model.Complete(ctx, req)
	m.limiter.settle(n, resp, err)
	return resp, err
}

// CompleteStream implements model.Model.
func (m *limited) CompleteStream(ctx context.Context, req model.Request, cb model.StreamHandler) error {
	n, err := m.begin(ctx, req, cb)
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

// sized is a request whose size is estimated when somebody needs it.
type sized struct {
	model.Request
	tokens int // below 0: not yet
}

// begin waits for room, and gives what was taken of the tokens. cb is told of a long wait; nil: nobody is.
func (m *limited) begin(ctx context.Context, req model.Request, cb model.StreamHandler) (n int, err error) {
	s := sized{req, -1}
	told, err := m.limiter.wait(ctx, &s, cb)
	if told && err == nil {
		err = cb(model.StreamResult{}) // it is sent now
	}
	return max(0, s.tokens), err
}

// longHeld is when whoever waits for a call is told that it is held back.
const longHeld = time.Second

// lock locks, with the size of s known if it is needed. Estimating is outside of the lock: it may take a while.
func (l *Limiter) lock(s *sized) {
	for l.mu.Lock(); l.tokens.rate > 0 && s.tokens < 0; l.mu.Lock() {
		l.mu.Unlock()
		s.tokens = estimate(s.Request)
	}
}

// wait waits until the call may go, and reports whether cb was told.
func (l *Limiter) wait(ctx context.Context, s *sized, cb model.StreamHandler) (told bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	l.lock(s)
	if len(l.queue) == 0 && l.take(s.tokens) == 0 {
		l.mu.Unlock()
		return false, nil
	}
	w := &waiter{make(chan struct{}, 1)}
	if l.queue = append(l.queue, w); len(l.queue) == 1 {
		w.look <- struct{}{}
	}
	l.mu.Unlock()
	defer l.leave(w)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	long := time.NewTimer(longHeld)
	defer long.Stop()
	var until time.Time // it may go, as things stand; zero: others are before it
	for first := false; ; {
		select {
		case <-ctx.Done():
			return told, ctx.Err()
		case <-w.look:
			first = true
		case <-timer.C:
		case <-long.C:
			if told = cb != nil; told {
				if err := cb(model.StreamResult{Held: true, Wait: max(0, time.Until(until))}); err != nil {
					return told, err
				}
			}
			continue
		}
		if !first {
			continue // an hour in the queue
		}
		if err := ctx.Err(); err != nil { // both came at once
			return told, err
		}
		l.lock(s)
		d := l.take(s.tokens)
		l.mu.Unlock()
		if d == 0 {
			return told, nil
		}
		timer.Reset(d)
		until = time.Now().Add(d)
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
	for _, b := range []*bucket{&l.requests, &l.tokens} {
		b.forget(now, l.burst)
	}
	d := max(l.closed.Sub(now), l.requests.due(now, 1), l.tokens.due(now, float64(max(0, n))))
	if d > 0 {
		return d
	}
	l.requests.level--
	l.tokens.level -= float64(max(0, n))
	return 0
}

// settle puts what a call took in place of the estimate, and learns what the provider said beside it.
func (l *Limiter) settle(n int, resp *model.Response, err error) {
	var said model.Rate
	var e *model.Error
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil && resp != nil:
		if said = resp.Rate; resp.Usage != (model.Usage{}) {
			l.tokens.level += float64(n - max(0, l.count(resp.Usage)))
		}
	case errors.As(err, &e):
		if said = e.Rate; errdefs.RateLimit.Is(err) {
			l.close(now, e.RetryAfter)
		}
	}
	l.requests.learn(now, said.Requests, l.burst)
	l.tokens.learn(now, said.Tokens, l.burst)
	for _, q := range []model.Quota{said.Requests, said.Tokens} {
		if q.Spent {
			l.close(now, q.Reset)
		}
	}
	l.wake()
}

// longest is the longest that a provider's word holds all calls back.
const longest = time.Minute

// close holds all calls back for d. l.mu is held.
func (l *Limiter) close(now time.Time, d time.Duration) {
	if until := now.Add(min(d, longest)); until.After(l.closed) {
		l.closed = until
	}
}

// memory is how long a limit counts that a provider has announced: one that was wrong must not last.
const memory = 5 * time.Minute

// bucket fills with time.
type bucket struct {
	own   int       // the limit of the policy, a minute; 0: none
	heard time.Time // when the provider announced the one that counts; zero: own does
	rate  float64   // a second; 0: no limit
	size  float64
	level float64 // below 0: more was used than there was
	at    time.Time
}

func newBucket(perMinute int, burst time.Duration) bucket {
	b := bucket{own: max(0, perMinute)}
	b.limit(time.Now(), b.own, burst)
	return b
}

// limit sets the limit a minute. What was used stays used.
func (b *bucket) limit(now time.Time, perMinute int, burst time.Duration) {
	b.fill(now)
	before := b.rate
	b.rate = float64(perMinute) / (time.Minute + burst).Seconds()
	if b.size = max(1, b.rate*burst.Seconds()); before == 0 {
		b.level = b.size
	}
	b.level = min(b.level, b.size)
}

// learn heeds what the provider says.
func (b *bucket) learn(now time.Time, q model.Quota, burst time.Duration) {
	if q.Limit > 0 {
		b.heard = now
		if b.own > 0 && q.Limit >= b.own {
			q.Limit, b.heard = b.own, time.Time{}
		}
		b.limit(now, q.Limit, burst)
	}
	if q.Spent || q.Remaining > 0 {
		b.fill(now)
		b.level = min(b.level, float64(max(0, q.Remaining)))
	}
}

// forget goes back to the limit of the policy when the provider's was not announced for long.
func (b *bucket) forget(now time.Time, burst time.Duration) {
	if !b.heard.IsZero() && now.Sub(b.heard) > memory {
		b.heard = time.Time{}
		b.limit(now, b.own, burst)
	}
}

// fill adds what has accrued. No more than a minute's worth is owed where the limit is only what somebody said.
func (b *bucket) fill(now time.Time) {
	b.level = min(b.size, b.level+b.rate*max(0, now.Sub(b.at).Seconds()))
	if !b.heard.IsZero() {
		b.level = max(b.level, -b.rate*longest.Seconds())
	}
	b.at = now
}

// due is how long it takes until n can be taken; what is larger than the bucket, when that is full.
func (b *bucket) due(now time.Time, n float64) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.fill(now)
	lack := min(n, b.size) - b.level
	if lack <= 1e-9 { // what is lost in sums of floating point
		return 0
	}
	return time.Duration(lack/b.rate*float64(time.Second)) + 1
}
