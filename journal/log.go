package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
)

// Log is one session, open in this process: its entries kept folded, and the way to add more. Safe for concurrent use.
type Log struct {
	*folded
	owner  string // the driver that this Log is; guarded by mu, as failed is
	failed error
	queue  queue
}

// folded is what the Logs of one session share that were opened one behind the other.
type folded struct {
	store   Store
	session string
	mu      sync.Mutex
	st      State
}

// Open reads a session and folds it; a session that isn't there yet is empty. Cost: linear in its entries, once.
func Open(ctx context.Context, s Store, session string) (*Log, error) {
	if session == "" {
		return nil, errdefs.Validation.Errorf("journal: a session needs a name")
	}
	l := &Log{folded: &folded{store: s, session: session}}
	if err := l.catchUp(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Reopen opens the session once more, as [Open] does, for another driver or to look at it: the Log that it gives knows what l has read, and reads only what came since. Nothing that l was told of its driver, or of failures, is the
// new one's. A session that was deleted since, and may have begun anew, is read from its beginning.
func (l *Log) Reopen(ctx context.Context) (*Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		same, err := l.same(ctx)
		if err != nil {
			return nil, err
		}
		if same {
			return &Log{folded: l.folded}, nil
		}
	}
	return Open(ctx, l.store, l.session)
}

// As is the Log for somebody who acts for the driver of that name, which is elsewhere: what he appends is Conflict once another one drives. It knows what l has read, and nothing of l's failures.
func (l *Log) As(owner string) *Log { return &Log{folded: l.folded, owner: owner} }

// same folds in what came since, unless the last entry is another one than it was. l.mu is held.
func (l *Log) same(ctx context.Context) (bool, error) {
	if l.st.Seq == 0 {
		return true, l.catchUp(ctx)
	}
	found := false
	for e, err := range l.store.Read(ctx, l.session, l.st.Seq-1) {
		switch {
		case err != nil:
			return false, err
		case found:
			if err := l.next(e); err != nil {
				return false, err
			}
		case e.Seq != l.st.Seq || !e.Time.Equal(l.st.Updated):
			return false, nil
		}
		found = true
	}
	return found, nil
}

func (l *Log) catchUp(ctx context.Context) error {
	for e, err := range l.store.Read(ctx, l.session, l.st.Seq) {
		if err != nil {
			return err
		}
		if err := l.next(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) next(e Entry) error {
	if e.Seq != l.st.Seq+1 {
		return errdefs.Internal.Errorf("journal: session %s: after entry %d its store gives entry %d", l.session, l.st.Seq, e.Seq)
	}
	l.st.apply(&e)
	return nil
}

// Drive makes owner the driver of the session by appending first (a RunStarted or a Resumed of owner, and what goes with it). From
// then on the driver before it gets Conflict. An owner is one attempt to drive, in one process: name it uniquely. NotFound for a Resumed of a run that has ended,
// Conflict for a RunStarted of one that somebody else began since the Log was read.
func (l *Log) Drive(ctx context.Context, owner string, first ...Entry) error {
	return l.drive(ctx, owner, func(st *State) error { return st.free(first) }, first)
}

// DriveBehind is Drive for one who goes on from what he has seen: Conflict unless entry seq is the session's last.
func (l *Log) DriveBehind(ctx context.Context, owner string, seq int64, first ...Entry) error {
	return l.drive(ctx, owner, func(st *State) error {
		if st.Seq != seq {
			return errdefs.Conflict.Errorf("journal: session %s has got to entry %d meanwhile: somebody else went on from entry %d", l.session, st.Seq, seq)
		}
		return st.free(first)
	}, first)
}

func (l *Log) drive(ctx context.Context, owner string, also func(*State) error, first []Entry) error {
	resumes := func(e Entry) bool { _, ok := e.Data.(Resumed); return ok }
	var seen map[string]bool // runs that the caller may know of
	decide := func(st *State) error {
		for _, e := range first { // somebody else may have finished it meanwhile: behind the end of a run nothing is resumed
			if resumes(e) && st.Run != e.Run {
				return errdefs.NotFound.Errorf("journal: session %s has no unfinished run %s: the last one is %s", l.session, e.Run, st.Status)
			}
			d, begins := e.Data.(RunStarted)
			if begins && d.Attempt <= 1 && st.runs[e.Run] && !seen[e.Run] { // somebody else began it meanwhile: its effects, and the keys that tools have, are that one's
				return errdefs.Conflict.Errorf("journal: session %s has a run %s already: it goes on by being resumed, if it has not ended", l.session, e.Run)
			}
			if begins && d.Attempt > 1 && (st.Run != e.Run || st.Driver != l.owner) { // only who drives a run begins it again
				return errdefs.Conflict.Errorf("journal: run %s of session %s is not driven from here any more: the session is with %s", e.Run, l.session, st.Driver)
			}
		}
		return also(st)
	}
	if got := driver(first); got != owner || owner == "" {
		return errdefs.Validation.Errorf("journal: to drive session %s as %q takes a run.started or resumed of that owner, not of %q", l.session, owner, got)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range first {
		if l.st.runs[e.Run] {
			seen = map[string]bool{e.Run: true}
		}
	}
	if slices.ContainsFunc(first, resumes) {
		if err := l.catchUp(ctx); err != nil {
			return err
		}
	}
	return l.note(ctx, l.append(ctx, decide, func() { l.owner = owner }, first))
}

// driver is who drives after entries.
func driver(entries []Entry) (owner string) {
	for _, e := range entries {
		switch d := e.Data.(type) {
		case RunStarted:
			owner = d.Owner
		case Resumed:
			owner = d.Owner
		}
	}
	return owner
}

// Append adds entries of the driver and returns when they are durable; Seq, Time and Session are filled in. What other processes wrote
// in between (answers) is folded in and the append tried again. It fails with errdefs.Conflict when another driver took over, or
// when a key has such an entry already. Appends of this Log that come while one is under way, and whose contexts have no end, are made durable together.
func (l *Log) Append(ctx context.Context, entries ...Entry) error {
	if !l.mu.TryLock() {
		if ctx.Done() == nil {
			return l.join(ctx, entries)
		}
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	return l.add(ctx, entries)
}

// Failed gives the first error of Drive or Append that was the store's own: not a Conflict, not a Validation, not that of a context that ended; or what
// [Log.Fail] was told before.
// What has happened since, and was to be put on record, may not be there, even if later appends succeed. So begin nothing more, don't
// close the run, and let whoever opens the session next go on from what is there. Nil: there was none.
func (l *Log) Failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Fail has [Log.Failed] give err, unless it gives one already: for what the driver depends on in another session, such as that of a run below, and what
// could not be put on record there.
func (l *Log) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
}

// note keeps what Failed gives. l.mu is held.
func (l *Log) note(ctx context.Context, err error) error {
	refused := errdefs.Conflict.Is(err) || errdefs.Validation.Is(err) || ctx.Err() != nil && errdefs.Canceled(err)
	if l.failed == nil && err != nil && !refused {
		l.failed = err
	}
	return err
}

// Answer answers a pending question, from any process, whenever this Log was opened. The first wins; a later one, or one to nothing,
// gets errdefs.Conflict.
func (l *Log) Answer(ctx context.Context, a Answered) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.catchUp(ctx); err != nil { // the question may be newer than what was read
		return err
	}
	entry := []Entry{{Data: a}}
	return l.append(ctx, func(st *State) error {
		i := slices.IndexFunc(st.Pending, func(p Pending) bool { return p.ID == a.ID })
		if i < 0 {
			return errdefs.Conflict.Errorf("journal: %s is not pending: it was answered, or never asked", a.ID)
		}
		if p := st.Pending[i]; p.Expired(time.Now()) {
			return errdefs.Conflict.Errorf("journal: %s could be answered until %s: resume the run, which takes that for a no", p.ID, p.Deadline().Format(time.RFC3339))
		}
		entry[0].Run, entry[0].Key, entry[0].Data = st.Run, st.Pending[i].Key, a.To(st.Pending[i].Asked)
		return nil
	}, nil, entry)
}

// append is the one way in: decide on the folded state, append if nobody came between, else fold and decide again. l.mu is held.
func (l *Log) append(ctx context.Context, decide func(*State) error, done func(), entries []Entry) error {
	for {
		if err := decide(&l.st); err != nil {
			return err
		}
		now := time.Now().UTC().Round(0)
		for i := range entries {
			entries[i].Time, entries[i].Session, entries[i].Seq = now, l.session, l.st.Seq+int64(i)+1
		}
		err := l.store.Append(ctx, l.session, l.st.Seq, entries...)
		if err == nil {
			for i := range entries {
				l.st.apply(&entries[i])
			}
			if done != nil {
				done()
			}
			return nil
		}
		if !errdefs.Conflict.Is(err) {
			return err
		}
		before := l.st.Seq
		if err := l.catchUp(ctx); err != nil {
			return err
		}
		if l.st.Seq == before {
			return err // a Conflict that reading does not explain
		}
	}
}

// Refresh folds in what other processes appended.
func (l *Log) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.catchUp(ctx)
}

// Recorded gives the outcome on record of an effect (nil: none), and whether it was begun. Only the unfinished run is kept indexed.
func (l *Log) Recorded(key Key) (outcome Data, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.st.effects.of(key)
	return r.outcome, r.begun > 0
}

// Begun gives the number of the entry that began an effect; 0 when none did.
func (l *Log) Begun(key Key) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.effects.of(key).begun
}

// HasCall reports whether a tool call of that id was ever made in the session.
func (l *Log) HasCall(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.calls[id]
}

// State is the session now. The value is the caller's; what it refers to is immutable. O(1), but while tool calls are open one word a
// message: use Seq where only the position matters.
func (l *Log) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.st
	st.clip()
	st.show()
	st.live = &l.mu
	return st
}

// Moves says how often the beginning of what is said in a scope was changed on purpose: in "", the session's transcript, by compactions, a seeder's or an engine's own edit of it, a
// further attempt, a run that was discarded, and hooks that say so ([Prepared]); in any other scope in the attempt under way. Between two moves each request of the conversation begins with the one before.
func (l *Log) Moves(scope string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.moves[scope]
}

// Driver is what State has of it, for nothing.
func (l *Log) Driver() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.Driver
}

// Run is the unfinished run, or "": what State has of it, for nothing.
func (l *Log) Run() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.Run
}

// Dir is what State has of it, for nothing.
func (l *Log) Dir() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.Dir
}

// Transcript is what State has as Messages. O(1), but while tool calls are open one word a message.
func (l *Log) Transcript() message.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.st.open.calls) == 0 {
		return l.st.Messages
	}
	return l.st.Messages.Append(l.st.open.message())
}

// Expect tells of the message that the driver has made of the results of the last reply's calls, before they are on record: if they come to the same there, the transcript has this very message, so that the run and its record have one and not two. A nil Log takes no
// notice.
func (l *Log) Expect(m message.Message) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.st.expected = m
}

// Mark says how far the last run is.
type Mark struct {
	Seq     int64     // the number of the session's last entry
	Steps   int       // model calls that gave a reply
	Started time.Time // when its first attempt began
}

// Mark is what State has of it, for nothing.
func (l *Log) Mark() Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Mark{l.st.Seq, l.st.RunSpent.Steps, l.st.Started}
}

// Granted is what State has of it, for nothing. It must not be changed.
func (l *Log) Granted() []Granted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.st.Granted)
}

// Untrusted is what State has of it, for nothing.
func (l *Log) Untrusted() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.Untrusted
}

// Ran reports whether the session has a run of that id, finished or not.
func (l *Log) Ran(run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.runs[run]
}

// Seq is the number of the last entry; 0 for none.
func (l *Log) Seq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.st.Seq
}

// Store is the store that the session is in.
func (l *Log) Store() Store { return l.store }

// Session is the session's name.
func (l *Log) Session() string { return l.session }
