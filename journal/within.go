package journal

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Within is what a store has of one project: the sessions whose last run worked in dir, which is compared as [Info.Dir] has it, those that their tasks and forks are, and the names that no run has begun under yet. Any other session, also one whose
// runs say no directory, is as if it were not there: it is neither listed nor read, and can't be appended to, leased or deleted. An append that would begin one, whose name is taken by such a session, is Conflict.
// A fork that would be cut where another directory's run was the last, so that it would be that one's, is Validation.
//
// What dir's run went on with is dir's, with all that other directories' runs said in it before. Once another directory's run goes on with it, it is that one's.
//
// It is a [Watcher] if store is one, and has its Path, if store has one. A hint of a Watcher's may be of a session that is not to be seen.
func Within(store Store, dir string) Store {
	w := &within{Store: store, dir: dir, driven: map[string]struct{}{}}
	watcher, watches := store.(Watcher)
	file, is := store.(filed)
	switch {
	case watches && is:
		return struct {
			*within
			Watcher
			filed
		}{w, watcher, file}
	case watches:
		return struct {
			*within
			Watcher
		}{w, watcher}
	case is:
		return struct {
			*within
			filed
		}{w, file}
	}
	return w
}

// filed is a store in a file.
type filed interface{ Path() string }

type within struct {
	Store
	dir string

	// driven are sessions that were found to be the project's when they were appended to, while a run is under way in them, so that a step costs no look into the list. That another process may begin another directory's run in one since
	// needs no look either: who appends names the entry before, which he has not read here, so that the store's own fence keeps him out.
	mu     sync.Mutex
	driven map[string]struct{}
}

// mostDriven bounds driven, of which runs that were left to other processes are never taken out: beyond that each is looked up once more.
const mostDriven = 1 << 14

// sees reports whether a session is to be seen: the project's, or one in which no run has begun, such as it is made in a moment before that, and left when a process dies there. there is false of a name that nobody has.
func (w *within) sees(ctx context.Context, session string) (sees, there bool, err error) {
	if session == "" { // the store's to refuse
		return true, false, nil
	}
	i, err := find(ctx, w.Store, session)
	return w.has(i), i.Seq > 0, err
}

func (w *within) has(i Info) bool {
	return i.Dir == w.dir && w.dir != "" || i.Dir == "" && i.Agent == "" && i.Status == ""
}

func (w *within) Append(ctx context.Context, session string, after int64, entries ...Entry) error {
	if !w.drives(session) {
		sees, there, err := w.sees(ctx, session)
		if err != nil {
			return err
		}
		if there && !sees {
			return errdefs.Conflict.Errorf("journal: append to %s: a session of another project has that name: choose another name for this one, or none", session)
		}
	}
	if len(entries) > 0 {
		if fork, ok := entries[0].Data.(SessionCreated); ok && fork.Parent != "" {
			return w.fork(ctx, fork, session, after, entries)
		}
	}
	err := w.Store.Append(ctx, session, after, entries...)
	if err == nil {
		w.note(session, entries)
	}
	return err
}

// fork appends what makes a fork, if both it and its parent are the project's.
func (w *within) fork(ctx context.Context, fork SessionCreated, session string, after int64, entries []Entry) error {
	if sees, _, err := w.sees(ctx, fork.Parent); err != nil {
		return err
	} else if !sees {
		return errdefs.NotFound.Errorf("journal: fork of %s at %d: there is no such entry", fork.Parent, fork.At)
	}
	if err := w.Store.Append(ctx, session, after, entries...); err != nil {
		return err
	}
	if sees, there, err := w.sees(ctx, session); err != nil || sees || !there {
		w.note(session, entries)
		return err
	}
	if err := w.Store.Delete(ctx, session); err != nil && !errdefs.NotFound.Is(err) { // the store alone knows whose it is, and only once it is made
		return err
	}
	return errdefs.Validation.Errorf("journal: fork of %s at %d: the last run there was another project's: fork it there, or at a later entry", fork.Parent, fork.At)
}

// drives reports whether a run is under way in a session of the project's, as far as it was appended to here.
func (w *within) drives(session string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.driven[session]
	return ok
}

// note keeps what an append says of a session: whose it is from a run's beginning on, and that nobody drives it from its end on.
func (w *within) note(session string, entries []Entry) {
	for i := range entries {
		switch d := entries[i].Data.(type) {
		case RunStarted:
			w.keep(session, d.Dir == w.dir)
		case Resumed:
			w.keep(session, true)
		case Parked, RunFinished:
			w.keep(session, false)
		}
	}
}

func (w *within) keep(session string, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !is {
		delete(w.driven, session)
		return
	}
	if len(w.driven) >= mostDriven {
		clear(w.driven)
	}
	w.driven[session] = struct{}{}
}

func (w *within) Read(ctx context.Context, session string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if sees, _, err := w.sees(ctx, session); err != nil {
			yield(Entry{}, err)
		} else if sees {
			w.Store.Read(ctx, session, after)(yield)
		}
	}
}

func (w *within) Sessions(ctx context.Context, q Query) iter.Seq2[Info, error] {
	switch {
	case q.Dir != "" && q.Dir != w.dir, w.dir == "":
		return func(func(Info, error) bool) {}
	case q.Session != "" && q.Dir == "": // which may have no run yet
		return func(yield func(Info, error) bool) {
			for i, err := range w.Store.Sessions(ctx, q) {
				if (err != nil || w.has(i)) && !yield(i, err) {
					return
				}
			}
		}
	}
	q.Dir = w.dir
	return w.Store.Sessions(ctx, q)
}

func (w *within) Delete(ctx context.Context, session string) error {
	if err := w.mustSee(ctx, session); err != nil {
		return err
	}
	w.keep(session, false)
	return w.Store.Delete(ctx, session)
}

func (w *within) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if err := w.mustSee(ctx, session); err != nil {
		return err
	}
	return w.Store.Lease(ctx, session, owner, until)
}

func (w *within) mustSee(ctx context.Context, session string) error {
	sees, there, err := w.sees(ctx, session)
	if err == nil && there && !sees {
		err = errdefs.NotFound.Errorf("journal: there is no session %q", session)
	}
	return err
}
