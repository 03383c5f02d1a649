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
	alone  bool            // the main channel is the only one, as it mostly is: then s has none
	main   message.History // it
}

// Snapshot is a board at one moment; read-only. Its JSON keeps the types of vars, which must be of those that [journal.Vars] names.
type Snapshot = journal.Snapshot

// NewBoard gives a board that starts as s; the zero Snapshot is empty.
func NewBoard(s Snapshot) *Board {
	if talk, ok := s.Channels[MainChannel]; ok && len(s.Channels) == 1 {
		return &Board{s: Snapshot{Vars: s.Vars}, shared: true, alone: true, main: talk}
	}
	return &Board{s: s, shared: true}
}

// Channel gives a channel's messages.
func (b *Board) Channel(name string) message.History {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.channel(name)
}

func (b *Board) channel(name string) message.History {
	if b.alone && name == MainChannel {
		return b.main
	}
	return b.s.Channels[name]
}

// SetChannel replaces a channel.
func (b *Board) SetChannel(name string, h message.History) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(name, h)
}

// Append adds to a channel.
func (b *Board) Append(name string, ms ...message.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(name, b.channel(name).Append(ms...))
}

func (b *Board) set(name string, h message.History) {
	if b.alone && name == MainChannel {
		b.main = h
		return
	}
	b.spread()
	b.own()
	if b.s.Channels == nil {
		b.s.Channels = map[string]message.History{}
	}
	b.s.Channels[name] = h
}

// Var gives a var, nil if unset.
func (b *Board) Var(name string) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.s.Vars[name]
}

// SetVar sets a var to a value that must not change any more.
func (b *Board) SetVar(name string, v any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.own()
	if b.s.Vars == nil {
		b.s.Vars = journal.Vars{}
	}
	b.s.Vars[name] = v
}

// Snapshot freezes the board as it is now, in O(1).
func (b *Board) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spread()
	b.shared = true
	return b.s
}

// Apply makes a change that is on record.
func (b *Board) Apply(change journal.Board) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spread()
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
	b.s, b.shared, b.alone, b.main = s, false, false, message.History{}
	return nil
}

// spread puts the main channel among others.
func (b *Board) spread() {
	if b.alone {
		b.s.Channels = map[string]message.History{MainChannel: b.main}
		b.alone, b.main = false, message.History{}
	}
}

// own makes the maps the board's own, to be written to.
func (b *Board) own() {
	if b.shared {
		b.s = Snapshot{Channels: maps.Clone(b.s.Channels), Vars: maps.Clone(b.s.Vars)}
		b.shared = false
	}
}
