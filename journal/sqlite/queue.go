package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queue makes writers share transactions. Whoever finds nobody writing leads: it begins a transaction, takes all that have queued up until
// then, commits once, and hands the lead to the first of those that came meanwhile. There is no goroutine but the callers' own.
type queue struct {
	mu      sync.Mutex
	leading bool
	waiting []*op // not yet part of a transaction; the leader's own comes first
	commits int64 // transactions tried, for tests
}

// A transaction takes up to so many operations and bytes, so that none waits long for its neighbours.
const (
	maxOps   = 256
	maxBytes = 8 << 20
)

// doer does something inside a transaction. A [refusal] concerns it alone and has changed nothing, any other error ends the transaction.
type doer interface{ do(*writing) error }

type wish func(*writing) error

func (w wish) do(tx *writing) error { return w(tx) }

// op is what one writer wants.
type op struct {
	doer
	size int
	end  time.Time // of its patience

	wake        chan struct{} // closed when err is final, or it is to lead; nil of one that leads at once
	taken, lead bool
	err         error
	alone       [1]*op // the batch of one that leads and has nobody behind it
}

// refusal is an error that SQLite has no part in.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// write does something in a transaction and returns when it is durable. While queued it ends with ctx, and nothing was done; once it is being
// written it ends with what came of it.
func (s *Store) write(ctx context.Context, action string, size int, do doer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(action); err != nil {
		return err
	}
	defer s.users.Done()
	p := &op{doer: do, size: size, end: time.Now().Add(s.patience)}
	if s.queue.enter(ctx, p) {
		s.lead(ctx, p)
	}
	switch err := p.err.(type) { //nolint:errorlint // set by us
	case nil:
		return nil
	case refusal:
		return err.error
	default:
		return s.failed(action, err)
	}
}

// enter queues p, waits, and reports whether p is to lead; if not, its error is final.
func (q *queue) enter(ctx context.Context, p *op) (lead bool) {
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	if !q.leading {
		q.leading = true
		q.mu.Unlock()
		return true
	}
	p.wake = make(chan struct{})
	q.mu.Unlock()
	select {
	case <-p.wake:
	case <-ctx.Done():
		q.mu.Lock()
		if !p.taken && !p.lead {
			q.drop(p)
			q.mu.Unlock()
			p.err = refusal{ctx.Err()}
			return false
		}
		q.mu.Unlock()
		<-p.wake // it is being written, which takes no longer than the disk does; or it is to lead
	}
	return p.lead
}

func (q *queue) drop(p *op) {
	q.waiting = slices.DeleteFunc(q.waiting, func(o *op) bool { return o == p })
}

// lead does p and what has queued up behind it.
func (s *Store) lead(ctx context.Context, p *op) {
	q := &s.queue
	if p.err = s.begin(ctx, p.end); p.err != nil {
		q.mu.Lock()
		q.drop(p)
		q.next()
		q.mu.Unlock()
		return
	}
	batch := q.take(p.alone[:0])
	s.commit(batch) //nolint:contextcheck // a transaction serves many callers: none of theirs may end it
	q.mu.Lock()
	q.next()
	q.mu.Unlock()
	for _, o := range batch {
		if o != p {
			close(o.wake)
		}
	}
}

// take makes the first of those who wait a batch, in room if it suffices.
func (q *queue) take(room []*op) []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && n < maxOps && (n == 0 || size+q.waiting[n].size <= maxBytes) {
		size += q.waiting[n].size
		q.waiting[n].taken = true
		n++
	}
	batch := append(room, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return batch
}

// next hands over the lead. q.mu is held.
func (q *queue) next() {
	if q.leading = len(q.waiting) > 0; q.leading {
		q.waiting[0].lead = true
		close(q.waiting[0].wake)
	}
}

// begin takes the file's write lock, and gives up at end or with ctx. What queues up meanwhile is part of the transaction.
func (s *Store) begin(ctx context.Context, end time.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return refusal{err}
		}
		err := s.tx.begin() //nolint:contextcheck // a transaction serves many callers: none of theirs may end it
		if !locked(err) || time.Now().After(end) {
			return err
		}
	}
}

// commit does a batch in the transaction that was begun. When that fails, each is done again in one of its own, so that nobody suffers from a
// neighbour's entry that the disk has no room for.
func (s *Store) commit(batch []*op) {
	if err := s.try(batch); err == nil {
		return
	} else if len(batch) == 1 {
		batch[0].err = err
		return
	}
	for i, o := range batch {
		if o.err = s.begin(context.Background(), o.end); o.err != nil {
			continue
		}
		if err := s.try(batch[i : i+1]); err != nil {
			o.err = err
		}
	}
}

// try does a batch in the transaction that was begun, and commits it.
func (s *Store) try(batch []*op) (err error) {
	s.queue.commits++
	defer func() {
		if err != nil {
			s.tx.rollback()
		}
	}()
	for _, o := range batch {
		o.err = nil
		if err := o.do(s.tx); err != nil {
			if _, refused := err.(refusal); !refused { //nolint:errorlint // never wrapped
				return err
			}
			o.err = err
		}
	}
	return s.tx.commit()
}
