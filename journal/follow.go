package journal

import (
	"context"
	"iter"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Watcher is a Store that can tell when a session got longer, or was deleted. That is a hint and nothing more: who is woken reads, and may find nothing new; and
// where a hint is lost, or comes late, [Follow] looks by itself in the end.
type Watcher interface {
	// Watch gives a channel that has something in it once there may be news of the session, whoever made them, from the moment when Watch
	// returns until stop is called. A session that isn't there yet can be watched. Watch waits no longer than ctx lasts; stop, which may be called again, leaves nothing running.
	Watch(ctx context.Context, session string) (woken <-chan struct{}, stop func())
}

const (
	// pollEvery is how often Follow looks into a store that is no Watcher.
	pollEvery = 250 * time.Millisecond
	// Of one that is, it waits so long to be woken before it looks by itself: the first time, and twice as long each time that there was nothing, up to the most.
	leastWait, mostWait = time.Second, 10 * time.Second
)

// Follow yields the session's entries after a position, and then each further one as it gets on record, whichever process appends it: in order, none missed, none twice.
// Who stops, or is cut off, goes on with the Seq of the last entry that he has. It yields as [Store.Read] does, in the consumer's own goroutine; a consumer that is slow keeps nobody waiting.
//
// It ends without an error when ctx does, which is how one stops waiting, and when the consumer stops. A session that isn't there yet is waited for. One that was deleted, though another may have
// its name by now, ends it with errdefs.NotFound; so does an after that the session has not got to. The store's own errors end it too: follow again.
//
// A store that is a [Watcher] wakes it, and it looks by itself after 1 s without news, then after ever longer ones, up to 10 s. Any other store is looked into 4 times a second.
// A look without news reads the last entry once more.
func Follow(ctx context.Context, s Store, session string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var woken <-chan struct{} // of no Watcher: never
		least, most := pollEvery, pollEvery
		if w, ok := s.(Watcher); ok {
			var stop func()
			woken, stop = w.Watch(ctx, session)
			defer stop()
			least, most = leastWait, mostWait
		}
		f := follower{store: s, session: session, last: max(after, 0)}
		timer := time.NewTimer(0)
		defer timer.Stop()
		for wait := least; ; wait = min(2*wait, most) {
			before := f.last
			if !f.look(ctx, yield) {
				return
			}
			if f.last > before {
				wait = least
			}
			timer.Reset(wait)
			select {
			case <-woken:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// follower is how far Follow is.
type follower struct {
	store   Store
	session string
	last    int64     // the entry that the consumer has
	at      time.Time // when that was; zero of one that he had before
}

// look yields what is new, and reports whether to go on. It reads from the entry that the consumer has: where that is another one, or none, so is the session.
func (f *follower) look(ctx context.Context, yield func(Entry, error) bool) bool {
	same := f.last == 0
	for e, err := range f.store.Read(ctx, f.session, max(f.last-1, 0)) {
		switch {
		case err != nil:
			if ctx.Err() == nil {
				yield(Entry{}, err)
			}
			return false
		case same && e.Seq != f.last+1:
			yield(Entry{}, errdefs.Internal.Errorf("journal: follow session %s: after entry %d its store gives entry %d", f.session, f.last, e.Seq))
			return false
		case same:
			f.last, f.at = e.Seq, e.Time
			if !yield(e, nil) {
				return false
			}
		case e.Seq == f.last && (f.at.IsZero() || e.Time.Equal(f.at)):
			same, f.at = true, e.Time
		default:
			return f.gone(yield)
		}
	}
	return same || f.gone(yield)
}

func (f *follower) gone(yield func(Entry, error) bool) bool {
	return yield(Entry{}, errdefs.NotFound.Errorf("journal: follow session %s: entry %d is not there any more, or never was: the session was deleted, and another of that name has to be followed from its beginning", f.session, f.last)) && false
}
