package pawl

import (
	"context"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
)

// queue lets the runs of one session in one after the other, in the order of their calls.
type queue struct {
	turn    chan struct{} // holds a token while nobody runs
	waiting int           // who runs and who waits; guarded by Runtime.mu
}

// visit is a run's stay in its session. Its context has it, so that a run which would wait for itself is refused.
type visit struct {
	above   *visit // of the run whose tool or hook this one is in
	session string // of an unnamed one "" until it has its name; guarded by Runtime.mu, like what follows
	queue   *queue
	turn    bool // it has the queue's
}

type visitKey struct{ rt *Runtime }

// enter waits for the session to be free, or for ctx. An unnamed session is nobody else's.
func (r *Runtime) enter(ctx context.Context, session string) (_ context.Context, leave func(), err error) {
	above, _ := ctx.Value(visitKey{r}).(*visit)
	v := &visit{above: above, session: session}
	leave = func() { r.leave(v) }
	r.mu.Lock()
	for ; session != "" && above != nil; above = above.above {
		if above.session == session {
			r.mu.Unlock()
			return nil, nil, errdefs.Conflict.Errorf("pawl: a tool or hook of session %s can't run the same session: it would wait for itself", session)
		}
	}
	if session != "" {
		r.join(v)
	}
	r.mu.Unlock()
	if session != "" {
		select {
		case <-v.queue.turn: // waiters on a channel are served in the order they came
			v.turn = true
		case <-ctx.Done():
			leave()
			return nil, nil, ctx.Err()
		}
	}
	return context.WithValue(ctx, visitKey{r}, v), leave, nil
}

// join stands in the session's queue. r.mu is held.
func (r *Runtime) join(v *visit) {
	v.queue = r.queues[v.session]
	if v.queue == nil {
		v.queue = &queue{turn: make(chan struct{}, 1)}
		v.queue.turn <- struct{}{}
		r.queues[v.session] = v.queue
	}
	v.queue.waiting++
}

func (r *Runtime) leave(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.queue == nil {
		return
	}
	if v.turn {
		v.queue.turn <- struct{}{}
	}
	if v.queue.waiting--; v.queue.waiting == 0 {
		delete(r.queues, v.session)
	}
}

// alone enters a session that nobody is in, and nobody waits for.
func (r *Runtime) alone(session string) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errdefs.NotAvailable.Errorf("pawl: the Runtime is closed")
	case r.queues[session] != nil:
		return nil, errdefs.Conflict.Errorf("pawl: a run is under way in session %s: wait for it, or cancel it", session)
	}
	v := &visit{session: session}
	r.join(v)
	<-v.queue.turn
	v.turn = true
	r.running.Add(1)
	return func() { r.leave(v); r.running.Done() }, nil
}

// naming is told the name of a session that began without one: from then on it has a queue like any other.
type naming struct {
	agent.BaseObserver
	rt *Runtime
}

// OnRunStart implements agent.Observer.
func (n naming) OnRunStart(ctx context.Context, info agent.RunInfo, _ *agent.Request) {
	v, _ := ctx.Value(visitKey{n.rt}).(*visit)
	n.rt.mu.Lock()
	defer n.rt.mu.Unlock()
	if v == nil || v.session != "" {
		return
	}
	v.session = info.ContextID
	n.rt.join(v)
	select {
	case <-v.queue.turn:
		v.turn = true
	default: // the run's id is the name of a session that somebody else waits for: the journal lets one of them drive
	}
}
