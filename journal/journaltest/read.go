package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
)

// patience is how long a store may take before it counts as hanging.
const patience = 30 * time.Second

// lines gives n texts.
func lines(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint("line ", i+1)
	}
	return out
}

var reads = []check{
	{"a session that is not there is empty", func(t *testing.T, s journal.Store) {
		holds(t, s, "none")
		if got := read(t, s, "none", 7); len(got) != 0 {
			t.Errorf("got %d entries", len(got))
		}
	}},
	{"reading begins after a position", func(t *testing.T, s journal.Store) {
		all := lines(600)
		talk(t, s, "other", 0, "x", "y")
		talk(t, s, "a", 0, all...)
		talk(t, s, "z", 0, "x", "y")
		for _, after := range []int64{0, 1, 2, 255, 256, 257, 511, 512, 598, 599, 600} {
			if got := heard(t, s, "a", after); !slices.Equal(got, all[after:]) {
				t.Errorf("after %d: %d entries, want %d", after, len(got), len(all[after:]))
			}
		}
		for _, after := range []int64{601, 1 << 40} {
			if got := read(t, s, "a", after); len(got) != 0 {
				t.Errorf("after %d: %d entries", after, len(got))
			}
		}
		if got := heard(t, s, "a", -5); len(got) != 600 {
			t.Errorf("after -5: %d entries", len(got))
		}
	}},
	{"a reader may stop at any entry, and read again", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, lines(300)...)
		seq := s.Read(context.Background(), "a", 0)
		for range 50 { // what stopping leaks would run out
			for _, stop := range []int64{1, 2, 255, 256, 257, 300} {
				var last int64
				for e, err := range seq {
					if err != nil {
						t.Fatal(err)
					}
					if last = e.Seq; last == stop {
						break
					}
				}
				if last != stop {
					t.Fatalf("stopped at %d, want %d", last, stop)
				}
			}
		}
		talk(t, s, "a", 300, "more")
		if got := heard(t, s, "a", 299); !slices.Equal(got, []string{"line 300", "more"}) {
			t.Errorf("got %q", got)
		}
	}},
	{"nothing is held while the consumer works", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, lines(300)...)
		done := make(chan error, 1)
		go func() { done <- work(s) }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("the store hangs when it is used inside an iteration")
		}
		if got := heard(t, s, "b", 0); len(got) != 300 {
			t.Errorf("session b has %d entries, want 300", len(got))
		}
	}},
	{"a half-read session does not hold back writers", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, lines(600)...)
		begun, goOn, done := make(chan bool), make(chan bool), make(chan error, 1)
		go func() {
			var n int
			for _, err := range s.Read(context.Background(), "a", 0) {
				if err != nil {
					done <- err
					return
				}
				if n++; n == 1 {
					close(begun)
					<-goOn
				}
			}
			if n < 600 {
				done <- fmt.Errorf("the reader got %d entries of 600", n)
			}
			close(done)
		}()
		<-begun
		talk(t, s, "a", 600, "more")
		talk(t, s, "b", 0, "other")
		close(goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}},
	{"a cancelled context ends reading with its error", func(t *testing.T, s journal.Store) {
		talk(t, s, "a", 0, lines(600)...)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var n int
		var last error
		for _, err := range s.Read(ctx, "a", 0) {
			if last != nil {
				t.Fatal("something was yielded after an error")
			}
			n++
			last = err
			cancel()
		}
		if !errdefs.Canceled(last) || n > 2 {
			t.Errorf("cancelled at the first entry: %d yields, the last with %v", n, last)
		}
		for _, err := range s.Read(ctx, "a", 0) {
			if !errdefs.Canceled(err) {
				t.Errorf("cancelled before: %v", err)
			}
		}
		for _, err := range s.Sessions(ctx, journal.Query{}) {
			if !errdefs.Canceled(err) {
				t.Errorf("sessions, cancelled before: %v", err)
			}
		}
	}},
}

// work appends to a session that is being read, to another one, reads, lists and leases, all inside an iteration.
func work(s journal.Store) error {
	ctx := context.Background()
	var n int64
	for e, err := range s.Read(ctx, "a", 0) {
		if err != nil {
			return err
		}
		if e.Seq > 300 {
			break // it may or may not see what is added meanwhile
		}
		if err := s.Append(ctx, "b", n, said("copy")); err != nil {
			return fmt.Errorf("append to another session while reading: %w", err)
		}
		if n++; n%100 != 1 {
			continue
		}
		if err := s.Append(ctx, "a", 300+n/100, said("more")); err != nil {
			return fmt.Errorf("append to the session that is being read: %w", err)
		}
		if err := s.Lease(ctx, "a", "me", time.Now().Add(time.Hour)); err != nil {
			return err
		}
		for i, err := range s.Sessions(ctx, journal.Query{}) {
			if err != nil {
				return err
			}
			for _, err := range s.Read(ctx, i.Session, 0) {
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}
