package stream

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/event"
)

// Batching says when what is said becomes an item. Zero values are the defaults.
type Batching struct {
	// Every is how long it is gathered, from the first delta on. Default 100 ms. Below 0 each delta is an item, put into the store by who says it: for Memory, which takes no time; what is said before an outcome is there before it then.
	Every    time.Duration
	Bytes    int           // or so many of one attempt. Default 16 KiB
	Pending  int           // bytes of one attempt that wait for the store, at most: what comes beyond is lost. Default 1 MiB
	All      int           // bytes of all attempts of a Writer that wait, at most. Default 64 MiB
	Patience time.Duration // how long the store may take for one append before it is tried again. Default 10 s
}

func (b Batching) orDefaults() Batching {
	b.Every, b.Bytes, b.Pending, b.All = cmp.Or(b.Every, 100*time.Millisecond), cmp.Or(b.Bytes, 16<<10), cmp.Or(b.Pending, 1<<20), cmp.Or(b.All, 64<<20)
	b.Patience = cmp.Or(b.Patience, 10*time.Second)
	return b
}

// slowest is how long a store that fails is left alone.
const slowest = 5 * time.Second

// Writer gathers what attempts say and puts it into a store: of all of them together in one append, by a goroutine that is there while there is something to do. Nobody who says something waits for it. Safe for concurrent use.
type Writer struct {
	store Store
	by    Batching
	log   *slog.Logger

	ctx    context.Context // of appends
	cancel func()
	hurry  chan struct{} // somebody has something that is due
	end    chan struct{} // closed by Close
	ending sync.Once
	done   sync.WaitGroup

	mu      sync.Mutex
	waiting []*Attempt // who has something to be written
	bytes   int        // of all of them, with what is on its way
	running bool
	failing bool // the store did not take the last items
	closed  bool
	flying  []chan struct{} // who waits for what is on its way
}

// NewWriter makes a writer. It starts nothing. log may be nil.
func NewWriter(s Store, b Batching, log *slog.Logger) *Writer {
	ctx, cancel := context.WithCancel(context.Background())
	return &Writer{store: s, by: b.orDefaults(), log: cmp.Or(log, slog.Default()), ctx: ctx, cancel: cancel, hurry: make(chan struct{}, 1), end: make(chan struct{})}
}

// Attempt is what an attempt at an effect says. Safe for concurrent use.
type Attempt struct {
	w     *Writer
	head  Item
	data  []byte // to be written
	runs  []Run
	since time.Time // when it began to wait
	next  []chan struct{}
	parts int
	// before is what is missing before data, lost what is missing behind it: once something is, the rest is, up to the next item.
	before, lost int64
	waits, flies bool // it is among those that wait; something of it is on its way
	due, end     bool // to be written at once; it says no more
}

// Begin is for an attempt: of head count what says where it belongs. It writes nothing while nothing is said.
func (w *Writer) Begin(head Item) *Attempt {
	return &Attempt{w: w, head: Item{Session: head.Session, Run: head.Run, Key: head.Key, Seq: head.Seq, Behind: max(head.Behind, head.Seq), ParentRun: head.ParentRun, Attempt: max(head.Attempt, 1), By: rand.Text()}}
}

// Add says what a delta says; whose it is, the attempt knows. It waits for nobody; after End it does nothing.
func (a *Attempt) Add(e event.Event) {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case a.end || w.closed || e.Text == "":
		return
	case a.lost > 0 || len(a.data)+len(e.Text) > w.by.Pending || w.bytes+len(e.Text) > w.by.All:
		a.lost += int64(len(e.Text))
		return
	}
	a.data = append(a.data, e.Text...)
	w.bytes += len(e.Text)
	if n := len(a.runs) - 1; n >= 0 && joins(e.Delta) && a.runs[n].Kind == e.Delta && a.runs[n].Stream == e.Stream && a.runs[n].Try == e.Attempt {
		a.runs[n].Bytes += len(e.Text)
	} else {
		a.runs = append(a.runs, Run{e.Delta, e.Stream, e.Attempt, len(e.Text), e.Wait})
	}
	if w.by.Every < 0 {
		a.now()
		return
	}
	a.wait(len(a.data) >= w.by.Bytes)
}

// now puts what waits into the store. The writer is locked: parts get there in their order.
func (a *Attempt) now() {
	a.w.bytes -= len(a.data)
	if err := a.w.store.Append(a.w.ctx, a.item()); err != nil && a.w.ctx.Err() == nil {
		a.w.log.Warn("the stream can't be written: what is said is missing there; the journal has it all", "error", err)
	}
}

// joins reports whether neighbours of a kind are one.
func joins(kind event.Delta) bool {
	return kind == event.TextDelta || kind == event.ReasoningDelta || kind == event.ToolOutput
}

// End says that the attempt says no more. It waits for nobody: see Flush.
func (a *Attempt) End() {
	w := a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	said := !a.end && !w.closed && (a.parts > 0 || len(a.data) > 0 || a.lost > 0)
	a.end = true
	switch {
	case said && w.by.Every < 0:
		a.now()
	case said:
		a.wait(true)
	}
}

// Flush waits until what was said before is in the store, and reports whether it is. It gives up when ctx ends, and while the store fails.
func (a *Attempt) Flush(ctx context.Context) bool {
	w := a.w
	w.mu.Lock()
	if w.failing && (a.waits || a.flies) {
		w.mu.Unlock()
		return false
	}
	there := make(chan struct{})
	switch {
	case a.waits:
		a.next = append(a.next, there)
		a.wait(true)
	case a.flies:
		w.flying = append(w.flying, there)
	default:
		close(there)
	}
	w.mu.Unlock()
	select {
	case <-there:
		return true
	case <-ctx.Done():
	case <-w.ctx.Done():
	}
	return false
}

// wait has what was said written, when it is due. The writer is locked.
func (a *Attempt) wait(due bool) {
	w := a.w
	if !a.waits {
		a.waits, a.since = true, time.Now()
		w.waiting = append(w.waiting, a)
	}
	if !w.running {
		w.running = true
		w.done.Go(w.run)
	}
	if due && !a.due {
		a.due = true
		select {
		case w.hurry <- struct{}{}:
		default:
		}
	}
}

// run writes while there is something to write.
func (w *Writer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		items, of, wait := w.take()
		switch {
		case len(items) > 0:
			if !w.put(items) {
				return
			}
			w.landed(items, of)
			continue
		case wait < 0:
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-w.hurry:
		case <-w.end: // all is due
		}
	}
}

// take gives what is due, and whose it is; else how long to wait for it. When nothing waits that is negative, and nobody runs any more.
func (w *Writer) take() (items []Item, of []*Attempt, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	wait = -1
	w.waiting = slices.DeleteFunc(w.waiting, func(a *Attempt) bool {
		left := w.by.Every - now.Sub(a.since)
		if !a.due && !w.closed && left > 0 {
			if wait < 0 || left < wait {
				wait = left
			}
			return false
		}
		i := a.item()
		items, of, a.flies = append(items, i), append(of, a), true
		if a.due = a.end && !i.End; a.due { // its end comes with the next one
			return false
		}
		w.flying = append(w.flying, a.next...)
		a.next, a.waits = nil, false
		return true
	})
	w.running = len(items) > 0 || wait >= 0
	return items, of, wait
}

// item makes an item of what waits. The writer is locked.
func (a *Attempt) item() Item {
	i := a.head
	a.parts++
	i.Part, i.Text, i.Runs, i.Lost, i.End = a.parts, string(a.data), slices.Clone(a.runs), a.before, a.end && a.lost == 0
	a.before, a.lost = a.lost, 0
	a.data, a.runs = a.data[:0], a.runs[:0]
	return i
}

// put writes items, again and again until they are there. It reports false when the writer was closed and could not wait for that.
func (w *Writer) put(items []Item) bool {
	for pause := w.by.Every; ; pause = min(2*pause, slowest) {
		ctx, cancel := context.WithTimeout(w.ctx, w.by.Patience)
		err := w.store.Append(ctx, items...)
		cancel()
		if w.says(err); err == nil {
			return true
		}
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
			return false
		}
	}
}

// says notes whether the store takes items, and says so when that changes.
func (w *Writer) says(err error) {
	w.mu.Lock()
	before := w.failing
	w.failing = err != nil
	w.mu.Unlock()
	switch {
	case w.ctx.Err() != nil:
	case err != nil && !before:
		w.log.Warn("the stream can't be written: what is said comes late to those who read it, and with gaps if this lasts; the journal has it all", "error", err)
	case err == nil && before:
		w.log.Info("the stream can be written again")
	}
}

// landed tells those who wait that items are in the store.
func (w *Writer) landed(items []Item, of []*Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, a := range of {
		a.flies = false
		w.bytes -= len(items[n].Text)
	}
	for _, there := range w.flying {
		close(there)
	}
	w.flying = nil
}

// Close takes nothing more, and waits until all is written, at the longest until ctx ends. What is not written then is lost, and the log says so.
func (w *Writer) Close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.ending.Do(func() { close(w.end) })
	over := make(chan struct{})
	go func() { w.done.Wait(); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
	}
	w.cancel()
	<-over
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes > 0 {
		w.log.Warn("the stream lacks what could not be written by the end", "bytes", w.bytes)
		w.bytes = 0
	}
}
