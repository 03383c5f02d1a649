package engine

import (
	"maps"
	"sync"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// MainChannel is the channel of the conversation itself.
const MainChannel = "main"

// Board is a run's working memory: channels of messages, and vars. Everything on it is immutable, so a Snapshot is O(1) and a
// channel read copies nothing; the maps are copied on the first write after a Snapshot. Safe for concurrent use.
type Board struct {
	mu     sync.Mutex
	s      Snapshot
	shared bool
}

// Snapshot is a board at one moment; read-only. Its JSON keeps the types of vars, which must be of those that [journal.Vars] names.
type Snapshot = journal.Snapshot

// NewBoard gives a board that starts as s; the zero Snapshot is empty.
func NewBoard(s Snapshot) *Board { return &Board{s: s, shared: true} }

// Channel gives a channel's messages.
func (b *Board) Channel(name string) message.History {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s.Channels[name]
}

// SetChannel replaces a channel.
func (b *Board) SetChannel(name string, h message.History) {
	b.write(func(s *Snapshot) { s.Channels[name] = h })
}

// Append adds to a channel.
func (b *Board) Append(name string, ms ...message.Message) {
	b.write(func(s *Snapshot) { s.Channels[name] = s.Channels[name].Append(ms...) })
}

// Var gives a var, nil if unset.
func (b *Board) Var(name string) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s.Vars[name]
}

// SetVar sets a var to a value that must not change any more.
func (b *Board) SetVar(name string, v any) { b.write(func(s *Snapshot) { s.Vars[name] = v }) }

// Snapshot freezes the board as it is now, in O(1).
func (b *Board) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shared = true
	return b.s
}

// Apply makes a change that is on record.
func (b *Board) Apply(change journal.Board) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s, b.shared = b.s.With(change), true
}

// MarshalJSON writes the board as it is now, as [Snapshot.MarshalJSON] does.
func (b *Board) MarshalJSON() ([]byte, error) { return b.Snapshot().MarshalJSON() }

// UnmarshalJSON replaces what is on the board.
func (b *Board) UnmarshalJSON(data []byte) error {
	var s Snapshot
	if err := s.UnmarshalJSON(data); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.s, b.shared = s, false
	return nil
}

func (b *Board) write(f func(*Snapshot)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shared {
		b.s = Snapshot{Channels: maps.Clone(b.s.Channels), Vars: maps.Clone(b.s.Vars)}
		b.shared = false
	}
	if b.s.Channels == nil {
		b.s.Channels = map[string]message.History{}
	}
	if b.s.Vars == nil {
		b.s.Vars = journal.Vars{}
	}
	f(&b.s)
}
