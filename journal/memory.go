package journal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/wake"
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

func (m *memory) Append(ctx context.Context, session string, after int64, entries ...Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if session == "" || len(entries) == 0 {
		return errdefs.Validation.Errorf("journal: append needs a session and entries")
	}
	for i := range entries {
		if err := known(entries[i].Data); err != nil {
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
		s = &memorySession{stretch: stretch{shared: parent.upTo(fork.At), after: fork.At, session: session}}
		s.info = Info{Session: session, Agent: parent.info.Agent, User: parent.info.User, Dir: parent.info.Dir}
		if fork.At < parent.last() {
			run := s.lastRun()
			s.info.Agent, s.info.User, s.info.Dir = run.Agent, run.User, run.Dir
		}
	}
	if have != after {
		return errdefs.Conflict.Errorf("journal: append to %s after entry %d: its last is %d", session, after, have)
	}
	if s == nil {
		s = &memorySession{stretch: stretch{session: session}}
	}
	m.sessions[session] = s
	var now time.Time // when an entry does not say it
	for i := range entries {
		e := entries[i]
		e.Seq, e.Session = after+int64(i)+1, session
		if e.Time = e.Time.UTC().Round(0); e.Time.IsZero() {
			if now.IsZero() {
				now = time.Now().UTC().Round(0)
			}
			e.Time = now
		}
		s.info.apply(&e)
		s.add(&e)
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
		var have []stretch
		if s := m.sessions[session]; s != nil {
			have = s.behind(after)
		}
		m.mu.Unlock()
		for i := range have {
			for k := max(after-have[i].after, 0); k < int64(len(have[i].entries)); k++ {
				if err := ctx.Err(); err != nil {
					yield(Entry{}, err)
					return
				}
				if !yield(have[i].entry(k), nil) {
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
