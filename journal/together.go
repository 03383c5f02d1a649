package journal

import (
	"context"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
)

// queue has appends that came while another one of the Log was under way: the next one takes them all along, so that what ends at the same time waits for the disk together.
type queue struct {
	mu  sync.Mutex
	all []*queued
}

type queued struct {
	entries []Entry
	done    bool // guarded by the Log's mu, as err is
	err     error
}

func (q *queue) add(w *queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, w)
}

func (q *queue) take() []*queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.all
	q.all = nil
	return all
}

// join appends entries together with those that others brought meanwhile. ctx has no end: nobody's cancel is another one's.
func (l *Log) join(ctx context.Context, entries []Entry) error {
	w := &queued{entries: entries}
	l.queue.add(w)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.done {
		l.appendAll(ctx, l.queue.take())
	}
	return w.err
}

// appendAll appends what is queued, in one piece. When that is refused, each is appended by itself, so that nobody suffers from another one's. l.mu is held.
func (l *Log) appendAll(ctx context.Context, all []*queued) {
	var entries []Entry
	for _, w := range all {
		w.done, w.err = true, errSilent
		entries = append(entries, w.entries...)
	}
	err := l.add(ctx, entries)
	if refused := errdefs.Conflict.Is(err) || errdefs.Validation.Is(err); refused && len(all) > 1 {
		for _, w := range all {
			w.err = l.add(ctx, w.entries)
		}
		return
	}
	for _, w := range all {
		w.err = err
		entries = entries[copy(w.entries, entries):] // with their numbers
	}
}

// errSilent is the error of an append whose store panicked, or ended the goroutine: nobody knows what is there.
var errSilent = errdefs.Internal.Errorf("journal: the store ended an append without saying what came of it: whether its entries are there is not known")

// add appends entries of the driver. l.mu is held.
func (l *Log) add(ctx context.Context, entries []Entry) (err error) {
	err = errSilent
	defer func() { _ = l.note(ctx, err) }()
	err = l.append(ctx, func(st *State) error {
		if l.owner != "" && st.Driver != l.owner {
			return errdefs.Conflict.Errorf("journal: session %s is driven by %s now", l.session, st.Driver)
		}
		for i := range entries { // one driver may be several processes: only the first ends it
			if _, ends := entries[i].Data.(RunFinished); ends && l.owner != "" && st.Run != entries[i].Run {
				return errdefs.Conflict.Errorf("journal: run %s of session %s has ended: %s", entries[i].Run, l.session, st.Status)
			}
		}
		return st.free(entries)
	}, nil, entries)
	return err
}
