package sqlite_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

func init() {
	openless["fill a limited file"] = fillLimited
	openless["open without permission"] = openWithoutPermission
	openless["give a lease up on a full disk"] = giveUpOnFull
}

// fill appends until it fails, and gives the number of entries that were reported and the error.
func fill(s journal.Store, session string) (n int64, err error) {
	for n < 10000 {
		if err := s.Append(ctx, session, n, said("small"), said(strings.Repeat("x", 10_000))); err != nil {
			return n, err
		}
		n += 2
	}
	return n, errors.New("it was never full")
}

func fillLimited(path string, report func(...any)) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 20, Max: 2 << 20}); err != nil {
		return err
	}
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	n, err := fill(s, "s")
	if errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("after %d entries: %w (%w)", n, err, errdefs.Of(err))
	}
	have := int64(0)
	for _, err := range s.Read(ctx, "s", 0) {
		if err != nil {
			return fmt.Errorf("reading a full file: %w", err)
		}
		have++
	}
	report(n, have)
	return s.Close()
}

func TestAFileThatMayNotGrowKeepsWhatItHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	cmd, out, stderr := start(t, "fill a limited file", path, "")
	b, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	var reported, have int64
	if _, err := fmt.Sscan(string(b), &reported, &have); err != nil || reported == 0 || have != reported {
		t.Errorf("%d entries were reported, %d read back (%v)", reported, have, err)
	}
	s := open(t, path)
	if n := count(t, s, "s"); n != reported {
		t.Errorf("%d entries, %d were reported", n, reported)
	}
	must(t, s.Append(ctx, "s", reported, said("more")))
	must(t, s.Close())
	sound(t, path)
}

// giveUpOnFull takes a lease, gives it up when there is no room to write that, and has another owner take it when there is room again.
func giveUpOnFull(path string, report func(...any)) error {
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	hour := time.Now().Add(time.Hour)
	if err := errors.Join(s.Append(ctx, "s", 0, said("x")), s.Lease(ctx, "s", "me", hour)); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Max: limit.Max}); err != nil { // room for nothing at all
		return err
	}
	if err := s.Lease(ctx, "s", "me", time.Time{}); errdefs.Of(err) != errdefs.NotAvailable {
		return fmt.Errorf("giving up on a full disk: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	report(s.Lease(ctx, "s", "you", hour) == nil, errdefs.Conflict.Is(s.Lease(ctx, "s", "me", hour)))
	return s.Close()
}

func TestALeaseThatCannotBeGivenUpIsOverAllTheSame(t *testing.T) {
	cmd, out, stderr := start(t, "give a lease up on a full disk", filepath.Join(t.TempDir(), "j.db"), "")
	b, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	if got := strings.Join(strings.Fields(string(b)), " "); got != "true true" {
		t.Errorf("another owner gets it, and it is his then: %s", got)
	}
}

func TestAFullDiskRefusesTheLargeNotTheSmall(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Skipf("a small disk can't be mounted here: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "j.db")
	must(t, os.WriteFile(ballast, make([]byte, 512<<10), 0o600))
	s := open(t, path)
	must(t, s.Append(ctx, "small", 0, said("1")))

	// One that doesn't fit must not take its neighbours with it.
	release := hold(t, path)
	errs := make(map[string]error)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, session := range []string{"a", "huge", "b", "c"} {
		wg.Go(func() {
			text := "small"
			if session == "huge" {
				text = strings.Repeat("x", 4<<20)
			}
			err := s.Append(ctx, session, 0, said(text))
			mu.Lock()
			errs[session] = err
			mu.Unlock()
		})
	}
	for sqlite.Waiting(s) < 4 {
		time.Sleep(time.Millisecond)
	}
	release()
	wg.Wait()
	for session, err := range errs {
		want := int64(1)
		if session == "huge" {
			want = 0
			if errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), path) {
				t.Errorf("huge: %v", err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", session, err)
		}
		if n := count(t, s, session); n != want {
			t.Errorf("%s has %d entries, want %d", session, n, want)
		}
	}

	n, err := fill(s, "s")
	if errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("after %d entries: %v", n, err)
	}
	if have := count(t, s, "s"); have != n {
		t.Errorf("%d entries, %d were reported", have, n)
	}
	must(t, os.Remove(ballast))
	must(t, s.Append(ctx, "s", n, said("room again")))
	must(t, s.Close())
	sound(t, path)
}

func openWithoutPermission(path string, report func(...any)) error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			return err
		}
	}
	for _, p := range []string{path, filepath.Join(filepath.Dir(path), "new.db"), filepath.Join(filepath.Dir(path), "new", "j.db")} {
		s, err := sqlite.Open(p)
		if err == nil {
			err = errors.Join(s.Append(ctx, "a", 1, said("x")), s.Close())
		}
		if errdefs.Of(err) != errdefs.NotAvailable || !strings.Contains(err.Error(), p) {
			return fmt.Errorf("got %w (%w)", err, errdefs.Of(err))
		}
		report(err)
	}
	return nil
}

func TestAFileThatMayNotBeWrittenIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j.db")
	s := open(t, path)
	must(t, s.Append(ctx, "a", 0, said("x")))
	must(t, s.Close())
	must(t, os.Chmod(path, 0o444))
	must(t, os.Chmod(dir, 0o555))
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	cmd, out, stderr := start(t, "open without permission", path, "")
	b, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, b, stderr)
	}
	t.Logf("%s", b)
}
