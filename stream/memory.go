package stream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/wake"
	"github.com/pawl-dev/pawl/journal"
)

// Memory keeps streams in this process, and for it.
func Memory(keep Retention) Store {
	return &memory{keep: keep.OrDefaults(), sessions: map[string]*memorySession{}}
}

type memory struct {
	keep     Retention
	mu       sync.Mutex
	sessions map[string]*memorySession
	cleaned  time.Time // when all were looked at
	bell     wake.Bell
}

type memorySession struct {
	items         []Item
	last, trimmed int64
	bytes         int64
	said          time.Time      // the newest item
	parts         map[string]int // the newest part of each attempt
}

// page is how many items a Read gives at most.
const page = 256

func (m *memory) Append(ctx context.Context, items ...Item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, i := range items {
		if err := i.Check(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	now := time.Now()
	for _, i := range items {
		s := m.sessions[i.Session]
		if s == nil {
			base := now.UnixMicro() // behind all that a stream of this name ever had
			s = &memorySession{last: base, trimmed: base, parts: map[string]int{}}
			m.sessions[i.Session] = s
		}
		if i.Part <= s.parts[i.By] {
			continue
		}
		s.last++
		i.Offset, i.Time = s.last, now
		s.items, s.parts[i.By], s.bytes, s.said = append(s.items, i), i.Part, s.bytes+i.size(), now
		if s.bytes > m.keep.Bytes+m.keep.Bytes/4 { // not with each item
			s.trim(m.keep, now)
		}
	}
	if now.Sub(m.cleaned) > m.keep.Ended/2 {
		m.cleaned = now
		for name, s := range m.sessions {
			if s.trim(m.keep, now); len(s.items) == 0 && now.Sub(s.said) > m.keep.Names {
				delete(m.sessions, name)
			}
		}
	}
	m.mu.Unlock()
	for _, i := range items {
		m.bell.Ring(i.Session)
	}
	return nil
}

// trim deletes from the front what is beyond retention.
func (s *memorySession) trim(keep Retention, now time.Time) {
	type effect struct {
		run string
		key journal.Key
	}
	ended, over := map[effect]bool{}, make([]bool, len(s.items))
	bytes := int64(0)
	for n, i := range slices.Backward(s.items) {
		e := effect{i.Run, i.Key}
		age := now.Sub(i.Time)
		if i.End && age > keep.Ended {
			ended[e] = true
		}
		bytes += i.size()
		over[n] = ended[e] || age > keep.Age || bytes > keep.Bytes
	}
	n := slices.Index(over, false)
	if n < 0 {
		n = len(s.items)
	}
	for _, i := range s.items[:n] {
		s.trimmed, s.bytes = i.Offset, s.bytes-i.size()
		if i.End {
			delete(s.parts, i.By)
		}
	}
	s.items = slices.Clone(s.items[n:])
	if len(s.items) == 0 {
		clear(s.parts)
	}
}

func (m *memory) Read(ctx context.Context, session string, after int64) ([]Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[session]
	switch {
	case s == nil:
		return nil, nil
	case after > s.last:
		return nil, GoneError{session, after, 0}
	case after > 0 && after < s.trimmed:
		return nil, GoneError{session, after, s.trimmed}
	}
	from, _ := slices.BinarySearchFunc(s.items, after+1, func(i Item, o int64) int { return int(i.Offset - o) })
	return slices.Clone(s.items[from:min(from+page, len(s.items))]), nil
}

func (m *memory) Last(ctx context.Context, session string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[session]; s != nil {
		return s.last, ctx.Err()
	}
	return 0, ctx.Err()
}

func (m *memory) Watch(_ context.Context, session string) (<-chan struct{}, func()) {
	return m.bell.Watch(session) //nolint:contextcheck // it takes no time
}
