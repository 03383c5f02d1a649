package pawl

import (
	"context"

	"github.com/pawl-dev/pawl/errdefs"
)

// queue lets the runs of one session in one after the other, in the order of their calls.
type queue struct {
	turn    chan struct{} // holds a token while nobody runs
	waiting int           // who runs and who waits; guarded by Runtime.mu
}

// inside marks a context as one of a run, so that a run which would wait for itself is refused.
type inside struct {
	rt      *Runtime
	session string
}

// enter waits for the session to be free, or for ctx. An unnamed session is nobody else's.
func (r *Runtime) enter(ctx context.Context, session string) (leave func(), err error) {
	if session == "" {
		return func() {}, nil
	}
	if ctx.Value(inside{r, session}) != nil {
		return nil, errdefs.Conflict.Errorf("pawl: a tool or hook of session %s can't run the same session: it would wait for itself", session)
	}
	r.mu.Lock()
	q := r.queues[session]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		q.turn <- struct{}{}
		r.queues[session] = q
	}
	q.waiting++
	r.mu.Unlock()
	gone := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if q.waiting--; q.waiting == 0 {
			delete(r.queues, session)
		}
	}
	select {
	case <-q.turn: // waiters on a channel are served in the order they came
		return func() { q.turn <- struct{}{}; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}
