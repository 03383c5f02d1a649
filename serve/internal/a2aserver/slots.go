package a2aserver

import (
	"context"
	"sync"
)

// slots bound what is sent at once: to all hosts, and to each, so that a host that doesn't answer holds up what is for itself.
type slots struct {
	all  chan struct{}
	each int

	mu sync.Mutex
	of map[string]*slot
}

type slot struct {
	free  chan struct{}
	users int
}

func newSlots(all, each int) *slots {
	return &slots{all: make(chan struct{}, all), each: each, of: map[string]*slot{}}
}

// take waits until something may be sent to a host; give ends that.
func (s *slots) take(ctx context.Context, host string) (give func(), err error) {
	s.mu.Lock()
	h := s.of[host]
	if h == nil {
		h = &slot{free: make(chan struct{}, s.each)}
		s.of[host] = h
	}
	h.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(s.of, host)
		}
	}
	select { // its own first: what waits for a host takes no other one's place
	case h.free <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	select {
	case s.all <- struct{}{}:
	case <-ctx.Done():
		<-h.free
		leave()
		return nil, ctx.Err()
	}
	return func() {
		<-s.all
		<-h.free
		leave()
	}, nil
}
