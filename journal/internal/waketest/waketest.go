// Package waketest is what the stores promise alike of how they wake followers, beyond what every [journal.Watcher] does: those of their own are woken at once.
package waketest

import (
	"testing"

	"github.com/pawl-dev/pawl/journal"
)

// Store is a store that wakes followers.
type Store interface {
	journal.Store
	journal.Watcher
	Close() error
}

// Run checks a store, which open opens anew, and closes it.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	s := open(t)
	woken, stop := s.Watch(t.Context(), "a")
	defer stop()
	<-woken // of the beginning
	said := func() journal.Entry { return journal.Entry{Data: journal.Stopped{}} }
	for _, change := range []struct {
		name string
		do   func() error
	}{
		{"an append to a session that is not there yet", func() error { return s.Append(t.Context(), "a", 0, said()) }},
		{"a further append", func() error { return s.Append(t.Context(), "a", 1, said()) }},
		{"a deletion", func() error { return s.Delete(t.Context(), "a") }},
		{"closing the store", s.Close},
	} {
		if err := change.do(); err != nil {
			t.Fatalf("%s: %v", change.name, err)
		}
		select {
		case <-woken:
		default:
			t.Errorf("%s has woken nobody when it returns", change.name)
		}
	}
}
