package pawl

import (
	"context"
	"reflect"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
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
	turn    bool         // it has the queue's
	ends    bool         // it is there to end the session
	log     *journal.Log // what it knows of the session; guarded by Runtime.mu
}

type visitKey struct{ rt *Runtime }

// enter waits for the session to be free, or for ctx. An unnamed session is nobody else's.
func (r *Runtime) enter(ctx context.Context, session string) (_ context.Context, leave func(), err error) {
	above, _ := ctx.Value(visitKey{r}).(*visit)
	v := &visit{above: above, session: session}
	leave = func() { r.leave(v) }
	if err := r.arrive(v); err != nil {
		return nil, nil, err
	}
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

var errClosed = errdefs.NotAvailable.Errorf("pawl: the Runtime is closed")

// arrive is the beginning of a visit: from then on Close waits for it.
func (r *Runtime) arrive(v *visit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	for above := v.above; v.session != "" && above != nil; above = above.above {
		if above.session == v.session {
			return errdefs.Conflict.Errorf("pawl: a tool or hook of session %s can't run the same session: it would wait for itself", v.session)
		}
	}
	r.inside[v] = struct{}{}
	if v.session != "" {
		r.join(v)
	}
	return nil
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
	if delete(r.inside, v); r.closed && len(r.inside) == 0 {
		close(r.idle)
	}
	if v.queue == nil {
		return
	}
	if v.turn {
		if !v.ends {
			r.used++
			held := r.holding(v.session)
			if held.used = r.used; v.log != nil {
				held.log = v.log
			}
		}
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
		return nil, errClosed
	case r.queues[session] != nil:
		return nil, errdefs.Conflict.Errorf("pawl: a run is under way in session %s: wait for it, or cancel it", session)
	}
	return r.occupy(session), nil
}

// occupy enters a session that nobody is in. r.mu is held.
func (r *Runtime) occupy(session string) (leave func()) {
	v := &visit{session: session, ends: true}
	r.inside[v] = struct{}{}
	r.join(v)
	<-v.queue.turn
	v.turn = true
	return func() { r.leave(v) }
}

// naming is told the name of a session that began without one: from then on it has a queue like any other. And it notes what the run's beginning told the session of.
type naming struct {
	agent.BaseObserver
	rt       *Runtime
	problems []string
}

// OnRunStart implements agent.Observer.
func (n naming) OnRunStart(ctx context.Context, info agent.RunInfo, _ *agent.Request) {
	v, _ := ctx.Value(visitKey{n.rt}).(*visit)
	n.rt.mu.Lock()
	defer n.rt.mu.Unlock()
	if s := n.rt.held[info.ContextID]; s != nil || len(n.problems) > 0 {
		n.rt.holding(info.ContextID).told = n.problems
	}
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

// reopen opens the session of a run as the run before it left it, and reads only what is new.
func (r *Runtime) reopen(ctx context.Context, store journal.Store, session string) (log *journal.Log, err error) {
	v, _ := ctx.Value(visitKey{r}).(*visit)
	r.mu.Lock()
	if v != nil && (v.ends || v.session != "" && v.session != session) { // a run's own options may name another session, or journal
		v = nil
	}
	if s := r.held[session]; v != nil && s != nil && s.log != nil && alike(s.log.Store(), store) {
		log = s.log
	}
	r.mu.Unlock()
	if log == nil {
		log, err = journal.Open(ctx, store, session)
	} else {
		log, err = log.Reopen(ctx)
	}
	if v != nil && err == nil {
		r.mu.Lock()
		v.log = log
		r.mu.Unlock()
	}
	return log, err
}

// alike reports whether two stores are one; of those that can't be compared nobody knows.
func alike(a, b journal.Store) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}
