package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
)

// Background is the work of a run that goes on beside its path: calls whose results come later, as messages. It ends with the attempt: whoever makes it calls
// End. Safe for concurrent use.
type Background struct {
	ctx    context.Context //nolint:containedctx // of all that runs here: it begins in one effect and goes on beside others
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	intr   *latch // of the run, and of those below

	mu      sync.Mutex
	running map[string]bool   // made by the first Start, as the next one
	over    map[string]bool   // what has ended in this process
	parked  *InterruptedError // what keeps a call from going on in this process
	failed  error             // what kept a result from getting on record
	events  []event.Event
	changed chan struct{} // closed, and made anew, whenever something here changes
	apart   *apart        // nil: work is done here
}

// apart is of a Background whose work is done elsewhere.
type apart struct {
	only  string // but for this
	work  func(ctx context.Context) error
	noted []string
}

// NewBackground makes room for the background work of an attempt.
func NewBackground(ctx context.Context, host Host) *Background {
	b := &Background{changed: make(chan struct{}), intr: latchOf(host)}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	return b
}

// BackgroundElsewhere makes the Background of a process that does one effect of a run whose path is elsewhere: what is started is noted, for others to do ([Background.Noted]), and waiting for it is an InterruptedError with [CauseBackground]. The
// work of that one name, if it has one, is for this process to do: see [Background.Do].
func BackgroundElsewhere(ctx context.Context, only string) *Background {
	b := &Background{changed: make(chan struct{}), intr: &latch{}, apart: &apart{only: only}}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	return b
}

// Noted gives the names of what was started, and is to be done elsewhere.
func (b *Background) Noted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.apart.noted)
}

// Do does the work that this process is to do. Without such work there is nothing to do: it is over.
func (b *Background) Do(ctx context.Context) (err error) {
	b.mu.Lock()
	work := b.apart.work
	b.mu.Unlock()
	if work == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = errdefs.Recovered("the background call "+b.apart.only, p)
		}
	}()
	return work(ctx)
}

// note notes what is started. b.mu is held.
func (a *apart) note(name string, work func(ctx context.Context) error) {
	if name == a.only {
		a.work = work
	} else if !slices.Contains(a.noted, name) {
		a.noted = append(a.noted, name)
	}
}

// Continuer is a [Performer] whose run may have something going on in the background.
type Continuer interface {
	// GoOn starts, in run.Background, what by the record goes on there, unless it runs already.
	GoOn(run Run, host Host)
}

// Start runs work under a name, unless it runs already or has ended in this process. An InterruptedError of it parks the run, any other error fails it.
func (b *Background) Start(name string, work func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.apart != nil {
		b.apart.note(name, work)
		return
	}
	if b.running[name] || b.over[name] || b.ctx.Err() != nil {
		return
	}
	if b.running == nil {
		b.running, b.over = map[string]bool{}, map[string]bool{}
	}
	b.running[name] = true
	b.wg.Go(func() {
		err := errGone
		defer func() {
			if p := recover(); p != nil {
				err = errdefs.Recovered("the background call "+name, p)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.running, name)
			b.over[name] = true // its result is on record, or on its way: who looked before must not begin it again
			var parked InterruptedError
			switch {
			case errors.As(err, &parked):
				b.parked = &parked
			case b.ctx.Err() == nil && b.failed == nil:
				b.failed = err
			}
			b.change()
		}()
		err = work(b.ctx)
	})
}

// change wakes those who wait. b.mu is held.
func (b *Background) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Publish keeps an event until the run's own goroutine gets to it, in [Background.Flush].
func (b *Background) Publish(e event.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	b.change()
}

// Flush hands what was published to host.
func (b *Background) Flush(ctx context.Context, host Host) {
	if b == nil {
		return
	}
	b.mu.Lock()
	events := b.events
	b.events = nil
	b.mu.Unlock()
	for _, e := range events {
		publish(ctx, host, e)
	}
}

// Wait waits until ready says so, or nothing runs any more, and flushes meanwhile. It gives an InterruptedError when work waits for something outside of this
// process, and the error of work that failed.
func (b *Background) Wait(ctx context.Context, host Host, ready func() bool) error {
	if b.apart != nil {
		if ready() || len(b.Noted()) == 0 {
			return nil
		}
		return InterruptedError{Interrupt{Cause: CauseBackground}}
	}
	var end error
	err := b.await(ctx, host, func(running int, parked *InterruptedError, failed error) bool {
		switch {
		case ready():
		case failed != nil:
			end = failed
		case running > 0:
			return false
		case parked != nil:
			end = *parked
		}
		return true
	})
	return cmp.Or(err, end)
}

// Park is for a run that was interrupted: runs below are interrupted too, and waited for. Those above and beside it go on: they may have other work.
func (b *Background) Park(ctx context.Context, host Host, i Interrupt) {
	b.intr.set(i)
	_ = b.await(ctx, host, func(running int, _ *InterruptedError, _ error) bool { return running == 0 }) // the run has its end already
}

// await flushes until over says so, which is asked whenever something here changes, and now and then: other processes change things too.
func (b *Background) await(ctx context.Context, host Host, over func(running int, parked *InterruptedError, failed error) bool) error {
	var tick *time.Ticker // mostly there is nothing to wait for
	for {
		b.Flush(ctx, host)
		b.mu.Lock()
		changed, running, parked, failed := b.changed, len(b.running), b.parked, b.failed
		b.mu.Unlock()
		if over(running, parked, failed) {
			return nil
		}
		if tick == nil {
			tick = time.NewTicker(time.Second)
			defer tick.Stop()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-tick.C:
		}
	}
}

// End cancels what runs, and waits for it.
func (b *Background) End() {
	b.cancel(nil)
	b.wg.Wait()
}

// Leave ends what runs here, and leaves it unfinished on record: the run goes on elsewhere, or later.
func (b *Background) Leave() {
	b.cancel(ErrLeft)
	b.wg.Wait()
}

// ErrLeft is the cause that a context ends with when a run above is left unfinished, without having been cancelled: what is below leaves its record as it is. An engine that returns it leaves its run so: it goes on elsewhere.
var ErrLeft = errdefs.Interrupted.Errorf("engine: the run above is left unfinished")
