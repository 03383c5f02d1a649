package journal

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Store keeps entries. Safe for concurrent use, by goroutines and, where it is persistent, by processes.
type Store interface {
	// Append adds entries in one piece, numbered after+1 …, and returns when they are durable. It fails with
	// errdefs.Conflict, and adds nothing, unless the session's last entry is number after. This is the only fence there is. Session and
	// Seq are set by the store, in its own copy; a Time that is zero too. The caller may use the slice again once Append has returned. When ctx ends first, its error comes back and nothing was added.
	//
	// A first entry that is a SessionCreated with a Parent makes a fork: after is then its At, the position that it shares up to. A
	// parent that has no such entry is NotFound, a session that exists already Conflict. No session name, no entries, or data that is
	// none of this package's types is Validation.
	Append(ctx context.Context, session string, after int64, entries ...Entry) error
	// Read yields the session's entries after a position, in order; a fork's begin with those that it shares, which bear the name of
	// the session that they were written to. A session that isn't there yields nothing. An error is the last thing that it yields. It
	// holds nothing while the consumer works: the consumer may append, and may stop at any entry. The sequence may be
	// ranged over again.
	Read(ctx context.Context, session string, after int64) iter.Seq2[Entry, error]
	// Sessions lists sessions, the one with the newest last entry first; of two of the same time by name.
	Sessions(ctx context.Context, q Query) iter.Seq2[Info, error]
	// Delete removes a session and its lease; entries that a fork shares stay as long as the fork. NotFound when there is none. A
	// session made again under the name is a new one. Don't delete a session that is being driven.
	Delete(ctx context.Context, session string) error
	// Lease says that owner is alive and driving, until the time given; Conflict while another's lease runs, NotFound when there is no
	// such session. A time that has passed gives it up. A store that can tell that the owner's process died ends it then; one that can't has a [*Leased] in its Conflict.
	// It keeps two live processes from fighting; that a stale one can do no harm is Append's promise, not the lease's.
	Lease(ctx context.Context, session, owner string, until time.Time) error
}

// Leased says whose lease runs, and for how long, where that does not say that its owner is alive. One that is alive renews it.
type Leased struct {
	Owner string
	Left  time.Duration
}

// Error is for people.
func (l *Leased) Error() string {
	return fmt.Sprintf("%s may be gone: then its lease ends in %v", l.Owner, l.Left.Round(time.Second))
}

// Query narrows Sessions; the zero Query lists all.
type Query struct {
	Session             string // that one alone, which a store finds without looking at others
	Agent, User, Status string
	Dir                 string // exactly: "/a" is neither "/a/" nor "/a/b"
	Limit               int    // 0: no limit
}

// Info is one line of Sessions: what stores keep beside the entries, so that listing doesn't read them.
type Info struct {
	Session, Agent, User string // Agent and User of the last run
	Dir                  string // that the last run worked in; "" when it had none, or there is no run. Of a fork without a run, likewise what was shared says
	Status               string // of the last run: "running" until it is over, then as in RunFinished, or "interrupted"
	Parent               string // of a fork
	Seq                  int64
	Created, Updated     time.Time
}

// Apply notes an entry of the session.
func (i *Info) Apply(e Entry) { i.apply(&e) }

// apply is Apply of an entry where it lies.
func (i *Info) apply(e *Entry) {
	if i.Session == "" {
		i.Session, i.Created = e.Session, e.Time
	}
	i.Seq, i.Updated = e.Seq, e.Time
	switch d := e.Data.(type) {
	case SessionCreated:
		if i.Parent, i.Created = d.Parent, e.Time; d.Parent != "" {
			i.Status = "" // the parent's run is not the fork's
		}
	case RunStarted:
		i.Agent, i.User, i.Dir, i.Status = d.Agent, d.User, d.Dir, "running"
	case Resumed:
		i.Status = "running"
	case Parked:
		i.Status = "interrupted"
	case RunFinished:
		i.Status = d.Status
	}
}

// Matches reports whether q lists i.
func (q Query) Matches(i Info) bool {
	return (q.Session == "" || q.Session == i.Session) && (q.Agent == "" || q.Agent == i.Agent) && (q.User == "" || q.User == i.User) && (q.Status == "" || q.Status == i.Status) &&
		(q.Dir == "" || q.Dir == i.Dir)
}
