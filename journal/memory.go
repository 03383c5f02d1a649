package journal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal/internal/wake"
)

// Memory is a Store for tests and for those who want no persistence. A fork shares its parent's entries by reference. It has no Close:
// dropping it frees it. It is a [Watcher].
func Memory() Store { return &memory{sessions: map[string]*memorySession{}} }

type memory struct {
	mu       sync.Mutex
	sessions map[string]*memorySession
	bell     wake.Bell
}

// Watch implements [Watcher]: an append wakes at once.
func (m *memory) Watch(_ context.Context, session string) (<-chan struct{}, func()) {
	return m.bell.Watch(session) //nolint:contextcheck // it takes no time
}

type memorySession struct {
	stretch
	info  Info
	owner string
	until time.Time
}

// stretch are entries of a session, behind those before, which it shares with the sessions that are forks of it, or that it is a fork of.
type stretch struct {
	shared  *stretch // nil: none; full, or the other session's
	after   int64    // how many these are
	entries []Entry  // immutable once appended
}

// most is how many entries a stretch takes before the next one begins: what a session has is not moved when it grows.
const most = 64

// add puts an entry behind the last, and gives it.
func (s *stretch) add(e *Entry) *Entry {
	if len(s.entries) == most {
		full := *s
		*s = stretch{&full, full.last(), make([]Entry, 0, most)}
	}
	s.entries = append(s.entries, *e)
	return &s.entries[len(s.entries)-1]
}

// upTo gives the entries up to number at, which is not behind the last.
func (s *stretch) upTo(at int64) *stretch {
	for s.shared != nil && at <= s.after { // what is shared of these the session shares itself
		s = s.shared
	}
	return &stretch{s.shared, s.after, s.entries[: at-s.after : at-s.after]}
}

// last is the number of the last entry.
func (s *stretch) last() int64 { return s.after + int64(len(s.entries)) }

// behind gives the entries behind number after, in stretches, the first of them first.
func (s *stretch) behind(after int64) (all [][]Entry) {
	for ; s != nil && after < s.last(); s = s.shared {
		all = append(all, s.entries[max(after-s.after, 0):])
	}
	slices.Reverse(all)
	return all
}

// lastRun is the last run that was opened.
func (s *stretch) lastRun() (run RunStarted) {
	for ; s != nil; s = s.shared {
		for _, e := range slices.Backward(s.entries) {
			if d, ok := e.Data.(RunStarted); ok {
				return d
			}
		}
	}
	return run
}

func (m *memory) Append(ctx context.Context, session string, after int64, entries ...Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if session == "" || len(entries) == 0 {
		return errdefs.Validation.Errorf("journal: append needs a session and entries")
	}
	for _, e := range entries {
		if err := known(e.Data); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	have := int64(0)
	if s != nil {
		have = s.last()
	}
	if fork, ok := entries[0].Data.(SessionCreated); ok && fork.Parent != "" {
		if s != nil {
			return errdefs.Conflict.Errorf("journal: fork of %s to %s: there is a session of that name", fork.Parent, session)
		}
		parent := m.sessions[fork.Parent]
		if parent == nil || fork.At < 0 || fork.At > parent.last() {
			return errdefs.NotFound.Errorf("journal: fork of %s at %d: there is no such entry", fork.Parent, fork.At)
		}
		have = fork.At
		s = &memorySession{stretch: stretch{shared: parent.upTo(fork.At), after: fork.At}}
		s.info = Info{Session: session, Agent: parent.info.Agent, User: parent.info.User}
		if fork.At < parent.last() {
			run := s.lastRun()
			s.info.Agent, s.info.User = run.Agent, run.User
		}
	}
	if have != after {
		return errdefs.Conflict.Errorf("journal: append to %s after entry %d: its last is %d", session, after, have)
	}
	if s == nil {
		s = &memorySession{}
	}
	m.sessions[session] = s
	var now time.Time // when an entry does not say it
	for i := range entries {
		e := s.add(&entries[i])
		e.Seq, e.Session = after+int64(i)+1, session
		if e.Time = e.Time.UTC().Round(0); e.Time.IsZero() {
			if now.IsZero() {
				now = time.Now().UTC().Round(0)
			}
			e.Time = now
		}
		s.info.Apply(*e)
	}
	m.bell.Ring(session)
	return nil
}

func (m *memory) Read(ctx context.Context, session string, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Entry{}, err)
			return
		}
		m.mu.Lock()
		var have [][]Entry
		if s := m.sessions[session]; s != nil {
			have = s.behind(after)
		}
		m.mu.Unlock()
		for _, entries := range have {
			for _, e := range entries {
				if err := ctx.Err(); err != nil {
					yield(Entry{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func (m *memory) Sessions(ctx context.Context, q Query) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Info{}, err)
			return
		}
		m.mu.Lock()
		var all []Info
		if q.Session != "" {
			if s := m.sessions[q.Session]; s != nil && q.Matches(s.info) {
				all = append(all, s.info)
			}
		} else {
			for _, s := range m.sessions {
				if q.Matches(s.info) {
					all = append(all, s.info)
				}
			}
		}
		m.mu.Unlock()
		slices.SortFunc(all, func(a, b Info) int {
			return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Session, b.Session))
		})
		for n, i := range all {
			if q.Limit > 0 && n == q.Limit || !yield(i, nil) {
				return
			}
		}
	}
}

func (m *memory) Delete(ctx context.Context, session string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[session] == nil {
		return errdefs.NotFound.Errorf("journal: there is no session %q", session)
	}
	delete(m.sessions, session)
	m.bell.Ring(session)
	return nil
}

func (m *memory) Lease(ctx context.Context, session, owner string, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	if s == nil {
		return errdefs.NotFound.Errorf("journal: there is no session %q", session)
	}
	if s.owner != owner && s.until.After(time.Now()) {
		return errdefs.Conflict.Errorf("journal: session %s is driven by %s", session, s.owner)
	}
	s.owner, s.until = owner, until
	return nil
}
