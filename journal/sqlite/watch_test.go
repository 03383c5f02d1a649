package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/internal/waketest"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

const echoes = 10

// echo answers in session pong whatever is said in session ping.
func echo(s *sqlite.Store, _ string, _ func(...any)) error {
	for e, err := range journal.Follow(ctx, s, "ping", 0) {
		if err != nil {
			return err
		}
		if err := s.Append(ctx, "pong", e.Seq-1, said("pong")); err != nil || e.Seq == echoes {
			return err
		}
	}
	return nil
}

func TestFollowersHearOfOtherProcessesSoon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	cmd, _, stderr := start(t, "echo", path, "")
	var begun time.Time
	must(t, s.Append(ctx, "ping", 0, said("ping")))
	for e, err := range journal.Follow(ctx, s, "pong", 0) {
		must(t, err)
		if e.Seq == 1 { // the process is there
			begun = time.Now()
		}
		if e.Seq == echoes {
			break
		}
		must(t, s.Append(ctx, "ping", e.Seq, said("ping")))
	}
	if took := time.Since(begun); took > (echoes-1)*time.Second { // who has to look by himself takes 1 s, on either side
		t.Errorf("%d answers took %v", echoes-1, took)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
}

func TestOnlyThoseAreWokenWhoseSessionIsNotAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s, other := open(t, path), open(t, path)
	must(t, other.Append(ctx, "same", 0, said("x")))
	same, stop := s.Watch(ctx, "same")
	defer stop()
	<-same // it did not know how far that was
	woken, stop := s.Watch(ctx, "that changes")
	defer stop()
	for what, change := range []func() error{
		func() error { return other.Append(ctx, "that changes", 0, said("x")) },
		func() error { return other.Delete(ctx, "that changes") },
		func() error { return other.Append(ctx, "that changes", 0, said("x")) },
		func() error { return other.Append(ctx, "that changes", 1, said("y")) },
	} {
		must(t, change())
		select {
		case <-woken:
		case <-time.After(20 * time.Second):
			t.Fatalf("change %d: nobody was woken", what)
		}
	}
	select {
	case <-same:
		t.Error("a session that nobody touched was rung for")
	default:
	}
}

func TestFollowersOfAStoreThatIsClosedAreTold(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "j.db"))
	must(t, s.Append(ctx, "a", 0, said("x")))
	ended := make(chan error, 1)
	seen := make(chan bool)
	go func() {
		for e, err := range journal.Follow(ctx, s, "a", 0) {
			if err != nil {
				ended <- err
				return
			}
			seen <- e.Seq == 1
		}
		ended <- nil
	}()
	<-seen
	must(t, s.Close())
	if err := <-ended; !errdefs.NotAvailable.Is(err) {
		t.Errorf("got %v, want NotAvailable", err)
	}
}

// BenchmarkLook is what a store that is followed does ten times a second: when nobody wrote, and when somebody did and so many sessions are followed.
func BenchmarkLook(b *testing.B) {
	for _, followed := range []int{1, 1000} {
		for _, changed := range []bool{false, true} {
			b.Run(fmt.Sprint(followed, " followed, changed ", changed), func(b *testing.B) {
				s := open(b, filepath.Join(b.TempDir(), "j.db"))
				for i := range followed {
					must(b, s.Append(ctx, fmt.Sprint(i), 0, begun()))
				}
				look, end := sqlite.Lookout(b, s, followed)
				defer end()
				n := int64(0)
				for b.Loop() {
					if changed {
						b.StopTimer()
						must(b, s.Append(ctx, "other", n, said("x")))
						n++
						b.StartTimer()
					}
					must(b, look())
				}
			})
		}
	}
}

func TestFollowersOfAStoreAreWokenByItAtOnce(t *testing.T) {
	waketest.Run(t, func(t *testing.T) waketest.Store { return open(t, filepath.Join(t.TempDir(), "j.db")) })
}
