package event

import (
	"context"
	"iter"
	"sync"
)

// Policy says what a subscription does with more events than its reader has time for. The zero Policy loses nothing: it blocks.
type Policy struct {
	Full   Full // what is done when the buffer is full
	Buffer int  // how many events wait for the reader; less than 1: DefaultBuffer. Memory is taken as it fills
	// Sample keeps one of so many: of the events that match, the first, and then each Sample-th after the last one kept. Those in between were
	// not wanted: they need no room and are not counted as lost. Less than 2 keeps all.
	Sample int
}

// DefaultBuffer is how many events wait for a reader whose Policy doesn't say.
const DefaultBuffer = 256

// Full says what becomes of an event that finds the buffer full.
type Full int

// The ways.
const (
	// Block has Publish wait until there is room, its own ctx ends (then the event is lost), or the subscription does. For readers that must see
	// everything and can be waited for: a reader that stalls without leaving stalls the run, even one that was cancelled, since the last events of a
	// run are told with a context that doesn't end. A reader that publishes to its own bus, from its loop, must not be the only one to make room: when its
	// buffer is full it waits for itself, until a ctx ends it. Let it subscribe with another way, or publish from another goroutine.
	Block      Full = iota
	DropNewest      // the event itself is lost: the reader sees an early stretch without a gap
	DropOldest      // the event that waits longest is lost: the reader sees the latest
)

// Subscription is a reader's place on a Bus. Made by [Bus.Subscribe]; safe for concurrent use.
type Subscription struct {
	bus    *Bus
	ctx    context.Context // of who subscribed: it ends the subscription
	match  func(Event) bool
	policy Policy
	ready  chan struct{} // there is something to read
	room   chan struct{} // there is room for who waits in Publish
	done   chan struct{} // closed when it takes no more

	mu       sync.Mutex
	ring     []Event
	first, n int // where the oldest stands, and how many there are
	matched  int // counted for Sample
	lost     int64
	ended    bool
}

// Events is a range over the events, oldest first, as they come. It ends when the subscription's ctx ends, at once; when it is closed, at once; or when
// the bus is closed, after what was there. To leave the loop, by break, return, a panic or runtime.Goexit, closes the subscription. One
// reader is meant: of several each gets a part, and the first that leaves ends it for all.
func (s *Subscription) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		defer s.Close()
		for {
			e, ok := s.next()
			if !ok || !yield(e) {
				return
			}
		}
	}
}

// Lost is how many events were lost so far: wanted, published while the subscription was open, and given up because there was no room. With
// those that were read, or still wait, they are all that were wanted. What still waits when the reader leaves is not counted.
func (s *Subscription) Lost() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Close ends the subscription and frees what waits in it. Closing again does nothing.
func (s *Subscription) Close() {
	s.end(true)
	s.bus.sweep()
}

// end has it take no more; what it holds is dropped, or left to be read.
func (s *Subscription) end(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if drop {
		s.ring, s.first, s.n = nil, 0, 0
	}
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}

func (s *Subscription) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.ctx.Err() != nil
	}
}

func (s *Subscription) blocks() bool {
	return s.policy.Full != DropNewest && s.policy.Full != DropOldest
}

func (s *Subscription) wants(e Event) (ok bool) {
	if s.match == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return s.match(e)
}

// put stores an event, or waits until it can or need not.
func (s *Subscription) put(ctx context.Context, e *Event) {
	for first := true; s.offer(e, first); first = false {
		select {
		case <-s.room:
			continue
		case <-s.done:
		case <-s.ctx.Done():
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.lost++
		s.mu.Unlock()
		return
	}
}

// offer stores an event, or reports that there has to be room first.
func (s *Subscription) offer(e *Event, first bool) (wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		if !first {
			s.lost++ // it came in time and waited in vain
		}
		return false
	}
	if first && s.policy.Sample > 1 {
		if s.matched++; s.matched%s.policy.Sample != 1 {
			return false
		}
	}
	if s.n == s.policy.Buffer {
		if s.blocks() {
			return true
		}
		if s.lost++; s.policy.Full == DropNewest {
			return false
		}
		s.first, s.n = (s.first+1)%len(s.ring), s.n-1 // push writes over it
	}
	s.push(e)
	signal(s.ready)
	if s.blocks() && s.n < s.policy.Buffer {
		signal(s.room) // several may wait, and one signal woke only one
	}
	return false
}

// next waits for an event; not ok when there will be none.
func (s *Subscription) next() (e Event, ok bool) {
	for s.ctx.Err() == nil {
		e, ok, ended := s.take()
		if ok || ended {
			return e, ok
		}
		select {
		case <-s.ready:
		case <-s.done:
		case <-s.ctx.Done():
		}
	}
	return Event{}, false
}

func (s *Subscription) take() (e Event, ok, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return Event{}, false, s.ended
	}
	e = s.pop()
	if s.blocks() {
		signal(s.room)
	}
	return e, true, false
}

// push adds an event; there is room. The ring grows to what was needed once, and stays.
func (s *Subscription) push(e *Event) {
	if s.n == len(s.ring) {
		ring := make([]Event, min(max(2*s.n, 16), s.policy.Buffer))
		n := copy(ring, s.ring[s.first:])
		copy(ring[n:], s.ring[:s.first])
		s.ring, s.first = ring, 0
	}
	s.ring[(s.first+s.n)%len(s.ring)] = *e
	s.n++
}

func (s *Subscription) pop() Event {
	e := s.ring[s.first]
	s.ring[s.first] = Event{} // what it refers to is free
	s.first = (s.first + 1) % len(s.ring)
	s.n--
	return e
}

// signal leaves one note, if none lies there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
