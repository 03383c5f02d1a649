package stream

import (
	"context"
	"iter"
	"time"
)

// A reader waits so long to be woken before it looks by itself: the first time, and twice as long each time that there was nothing, up to the most.
const leastWait, mostWait = time.Second, 10 * time.Second

// Read yields the items of a session after an offset, and then each further one as it comes: in order, none missed, none twice. Who stops, or is cut off, goes on with the Offset of the last item that it has. 0 is the oldest there is, [Store.Last] what comes from now on.
//
// It yields in the consumer's own goroutine; a consumer that is slow keeps nobody waiting, but may find its next items deleted: see [GoneError], which ends it, as other errors of the store do. It ends without an error when ctx does, and when the consumer stops.
func Read(ctx context.Context, s Store, session string, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		woken, stop := s.Watch(ctx, session)
		defer stop()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for wait := leastWait; ; wait = min(2*wait, mostWait) {
			items, err := s.Read(ctx, session, after)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(Item{}, err)
				return
			}
			for _, i := range items {
				if !yield(i, nil) {
					return
				}
				after = i.Offset
			}
			if len(items) > 0 { // there may be more
				wait = leastWait / 2
				continue
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
