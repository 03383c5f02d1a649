package stream

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

// News is one thing that happened: an entry of the journal, as one event, or what an item says.
type News struct {
	Events []event.Event
	At     Position // from here it goes on when all of the events were taken
}

// Position is how far somebody is who follows a session: in its journal, and in its stream. It can be kept as JSON. The zero Position is the beginning of the journal, and of what there is of the stream. Who begins at another place gives Seq and Offset.
type Position struct {
	Seq    int64   `json:"seq,omitempty"`
	Offset int64   `json:"offset,omitempty"`
	Under  []Under `json:"under,omitempty"` // effects of which something was said that have no outcome yet. Shared: read it only
}

// Under is how far an effect under way was followed.
type Under struct {
	Run     string      `json:"run"`
	Key     journal.Key `json:"key"`
	By      string      `json:"by,omitempty"`      // the attempt that counts
	Attempt int         `json:"attempt,omitempty"` // its number
	Part    int         `json:"part,omitempty"`    // its newest
	First   int         `json:"first,omitempty"`   // event.Event.Attempt of its first try
	Top     int         `json:"top,omitempty"`     // the highest that there was
	Why     string      `json:"why,omitempty"`     // what the attempt failed with
}

// Follow yields a session's entries and what its effects say, as the events of a run that is done here, from a position on and as they come: each once, in an order that a local listener may find, too. What an effect says comes behind the entry that begins the effect and before its outcome, or not at all; when an
// attempt at it starts over, an event.Retry says so. Where something is missing of what a listener gets (it was deleted before he came back, or never could be written) an event.Warning with the effect's key says so.
//
// It waits, ends and fails as journal.Follow does. Where the stream can't be read, entries come all the same, and what is said comes when it can be read again, unless there is an outcome by then.
func Follow(ctx context.Context, j journal.Store, s Store, session string, from Position) iter.Seq2[News, error] {
	return func(yield func(News, error) bool) {
		said, stop := s.Watch(ctx, session)
		defer stop()
		var noted <-chan struct{}
		least, most := 250*time.Millisecond, 250*time.Millisecond // of a journal that is no Watcher
		if w, ok := j.(journal.Watcher); ok {
			woken, stop := w.Watch(ctx, session)
			defer stop()
			noted, least, most = woken, leastWait, mostWait
		}
		f := newFollower(j, s, session, from)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for wait := least; ; wait = min(2*wait, most) {
			news, on := f.look(ctx, yield)
			if !on {
				return
			}
			if news {
				wait = least
			}
			timer.Reset(wait)
			select {
			case <-noted:
			case <-said:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// There yields what [Follow] would, as far as it is there now.
func There(ctx context.Context, j journal.Store, s Store, session string, from Position) iter.Seq2[News, error] {
	return func(yield func(News, error) bool) { newFollower(j, s, session, from).look(ctx, yield) }
}

type follower struct {
	journal journal.Store
	stream  Store
	session string
	at      Position
	time    time.Time // of entry at.Seq; zero: not known
	read    int64     // the newest item that is in pending, or was
	pending []Item    // that wait for the entries before them

	done  map[effect]int64 // its outcome, among the entries from known on to at.Seq
	known int64

	pause time.Duration // the stream can't be read, and is left alone until then
	until time.Time
}

type effect struct {
	run string
	key journal.Key
}

func newFollower(j journal.Store, s Store, session string, from Position) *follower {
	from.Seq, from.Offset = max(from.Seq, 0), max(from.Offset, 0)
	return &follower{journal: j, stream: s, session: session, at: from, read: from.Offset, done: map[effect]int64{}, known: from.Seq + 1}
}

const (
	// atOnce is how many entries are read before the items are that belong among them.
	atOnce = 64
	// mostDone is how many effects' ends are kept in mind. Of others the journal is asked.
	mostDone = 4096
	// streamPatience is how long the stream may keep the journal's entries waiting.
	streamPatience = 2 * time.Second
)

// look yields what is new. It reports whether there was anything, and whether to go on.
func (f *follower) look(ctx context.Context, yield func(News, error) bool) (news, on bool) {
	for again := true; ; {
		entries, err := f.entries(ctx)
		if err != nil {
			if ctx.Err() == nil {
				yield(News{}, err)
			}
			return news, false
		}
		f.items(ctx) // after the entries: whatever was said before an outcome is here now
		before := f.at
		for _, e := range entries {
			if !f.said(ctx, e.Seq-1, yield) || !f.entry(e, yield) {
				return news, false
			}
		}
		if len(entries) < atOnce && !f.said(ctx, f.at.Seq, yield) {
			return news, false
		}
		news = news || f.at.Seq > before.Seq || f.at.Offset > before.Offset
		switch {
		case ctx.Err() != nil:
			return news, false
		case len(entries) > 0:
			again = true
		case len(f.pending) > 0 && again: // what began its effect is there by now
			again = false
		default:
			return news, true
		}
	}
}

// entries reads the next ones. It begins with the one that is known: where that is another one, or none, so is the session.
func (f *follower) entries(ctx context.Context) (next []journal.Entry, err error) {
	same := f.at.Seq == 0
	for e, err := range f.journal.Read(ctx, f.session, max(f.at.Seq-1, 0)) {
		switch {
		case err != nil:
			return nil, err
		case same:
			next = append(next, e)
		case e.Seq == f.at.Seq && (f.time.IsZero() || e.Time.Equal(f.time)):
			same, f.time = true, e.Time
		default:
			return nil, f.gone()
		}
		if len(next) == atOnce {
			break
		}
	}
	if !same {
		return nil, f.gone()
	}
	return next, nil
}

func (f *follower) gone() error {
	return errdefs.NotFound.Errorf("stream: follow session %s: entry %d is not there any more, or never was: the session was deleted, and another of that name has to be followed from its beginning", f.session, f.at.Seq)
}

// items reads what there is of the stream. When it can't, it is left alone for a while.
func (f *follower) items(ctx context.Context) {
	if time.Now().Before(f.until) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, streamPatience)
	defer cancel()
	for {
		items, err := f.stream.Read(ctx, f.session, f.read)
		var gone GoneError
		switch {
		case errors.As(err, &gone) && gone.From != f.read:
			f.read = gone.From
			continue
		case err != nil:
			f.pause = min(max(2*f.pause, leastWait), mostWait)
			f.until = time.Now().Add(f.pause)
			return
		case len(items) == 0:
			f.pause = 0
			return
		}
		f.pending, f.read = append(f.pending, items...), items[len(items)-1].Offset
	}
}

// said yields what is pending of effects that began up to an entry.
func (f *follower) said(ctx context.Context, upto int64, yield func(News, error) bool) bool {
	for len(f.pending) > 0 && f.pending[0].Behind <= upto {
		i := f.pending[0]
		f.pending = f.pending[1:]
		f.at.Offset = i.Offset
		if events := f.events(ctx, i); len(events) > 0 && !yield(News{events, f.at}, nil) {
			return false
		}
	}
	return true
}

// entry yields an entry.
func (f *follower) entry(e journal.Entry, yield func(News, error) bool) bool {
	f.at.Seq, f.time = e.Seq, e.Time
	at := effect{e.Run, e.Key}
	switch d := e.Data.(type) {
	case journal.ModelFailed:
		f.each(func(u *Under) {
			if u.Run == e.Run && u.Key == e.Key {
				u.Why = d.Error
			}
		})
	case journal.RunFinished:
		f.forget(func(u Under) bool { return u.Run == e.Run })
	case journal.Resumed: // what was under way is begun anew, and counts from 1
		f.each(func(u *Under) {
			if u.Run == e.Run {
				u.By, u.Attempt, u.Part = "", 0, 0
			}
		})
	}
	if Ends(e) {
		if len(f.done) >= mostDone {
			clear(f.done)
			f.known = e.Seq
		}
		f.done[at] = e.Seq
		f.forget(func(u Under) bool { return u.Run == e.Run && u.Key == e.Key })
	}
	return yield(News{[]event.Event{{Entry: e}}, f.at}, nil)
}

// each changes what is under way. Who was given a position keeps it as it was.
func (f *follower) each(change func(*Under)) {
	f.at.Under = slices.Clone(f.at.Under)
	for i := range f.at.Under {
		change(&f.at.Under[i])
	}
}

// forget takes effects out of what is under way.
func (f *follower) forget(which func(Under) bool) {
	if slices.ContainsFunc(f.at.Under, which) {
		f.at.Under = slices.DeleteFunc(slices.Clone(f.at.Under), which)
	}
}

// Ends reports whether an entry is the outcome of an effect: nothing is said of that behind it.
func Ends(e journal.Entry) bool {
	switch e.Data.(type) {
	case journal.ModelStarted, journal.ToolStarted, journal.CommandStarted, journal.Asked, journal.ModelFailed:
		return false
	}
	return e.Key != (journal.Key{})
}

// over reports whether the effect of an item has its outcome.
func (f *follower) over(ctx context.Context, i Item) bool {
	at := effect{i.Run, i.Key}
	if f.done[at] > i.Seq { // the same key has another outcome in each attempt at a run
		return true
	}
	if i.Seq == 0 || i.Seq >= f.known {
		return false
	}
	upto := f.known
	for e, err := range f.journal.Read(ctx, f.session, i.Seq-1) {
		if err != nil || e.Seq >= upto {
			break
		}
		if Ends(e) {
			f.done[effect{e.Run, e.Key}] = max(e.Seq, f.done[effect{e.Run, e.Key}])
		}
	}
	f.known = i.Seq
	return f.done[at] > i.Seq
}

// events are what an item says to a listener.
func (f *follower) events(ctx context.Context, i Item) []event.Event {
	if f.over(ctx, i) {
		return nil
	}
	like := event.Event{Entry: journal.Entry{Session: i.Session, Run: i.Run, Key: i.Key, Seq: i.Seq}, ParentRun: i.ParentRun}
	events := make([]event.Event, 0, len(i.Runs)+1)
	add := func(d Delta, attempt int) {
		e := like
		e.Delta, e.Stream, e.Attempt, e.Text, e.Wait = d.Kind, d.Stream, attempt, d.Text, d.Wait
		events = append(events, e)
	}
	if i.Key == (journal.Key{}) { // no effect's: a warning, or the session is waited for
		for d := range i.Deltas() {
			add(d, d.Try)
		}
		return events
	}
	u, known := f.under(i)
	whole := i.Lost == 0 && i.Part == u.Part+1
	switch {
	case !known:
	case i.By == u.By && i.Part <= u.Part:
		return nil
	case i.By == u.By:
	case i.Attempt < u.Attempt: // of a worker that was given up, and does not know it yet
		return nil
	case i.Attempt == u.Attempt && i.Part > 1:
		return nil
	default:
		whole = i.Lost == 0 && i.Part == 1
		u.First = u.Top + 1
		u.Top = u.First
		add(Delta{Run{Kind: event.Retry}, cmp.Or(u.Why, "another worker took it up")}, u.First)
		u.Why = ""
	}
	u.By, u.Attempt, u.Part = i.By, i.Attempt, i.Part
	if !whole {
		add(Delta{Run{Kind: event.Warning}, "Some of what was said here is missing. The outcome will have it."}, u.Top)
	}
	for d := range i.Deltas() {
		u.Top = max(u.Top, u.First+d.Try)
		add(d, u.First+d.Try)
	}
	f.keep(u)
	return events
}

// under is how far the effect of an item was followed.
func (f *follower) under(i Item) (u Under, known bool) {
	for _, u := range f.at.Under {
		if u.Run == i.Run && u.Key == i.Key {
			return u, true
		}
	}
	return Under{Run: i.Run, Key: i.Key}, false
}

func (f *follower) keep(u Under) {
	f.at.Under = slices.Clone(f.at.Under) // who was given the last position has it
	for n := range f.at.Under {
		if f.at.Under[n].Run == u.Run && f.at.Under[n].Key == u.Key {
			f.at.Under[n] = u
			return
		}
	}
	f.at.Under = append(f.at.Under, u)
}
