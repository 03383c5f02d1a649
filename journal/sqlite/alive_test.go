//go:build unix

package sqlite_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal/sqlite"
)

// holdALease is another process that leases a session for an hour, says so, and waits to be killed.
func holdALease(path string) {
	s, err := sqlite.Open(path)
	if err == nil {
		err = s.Lease(ctx, "a", "the child", time.Now().Add(time.Hour))
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("leased\n")
	select {}
}

func TestALeaseEndsWithTheProcessThatHasIt(t *testing.T) {
	if path := os.Getenv("PAWL_TEST_LEASE"); path != "" {
		holdALease(path)
	}
	path := filepath.Join(t.TempDir(), "j.db")
	s := open(t, path)
	if err := s.Append(ctx, "a", 0, said("x")); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestALeaseEndsWithTheProcess")
	child.Env = append(os.Environ(), "PAWL_TEST_LEASE="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "leased\n" {
		t.Fatal(line, err)
	}
	hour := time.Now().Add(time.Hour)
	if err := s.Lease(ctx, "a", "me", hour); !errdefs.Conflict.Is(err) {
		t.Error("while it lives:", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if err := s.Lease(ctx, "a", "me", hour); err != nil {
		t.Error("after it was killed:", err)
	}
	left, err := os.ReadDir(path + ".live")
	if err != nil || len(left) != 1 {
		t.Errorf("the dead one's file stays: %v %v", left, err)
	}
}

func TestALeaseEndsWithTheStoreThatHasIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	a, b := open(t, path), open(t, path)
	hour := time.Now().Add(time.Hour)
	if err := a.Append(ctx, "a", 0, said("x")); err != nil {
		t.Fatal(err)
	}
	if err := a.Lease(ctx, "a", "one", hour); err != nil {
		t.Fatal(err)
	}
	if err := b.Lease(ctx, "a", "two", hour); !errdefs.Conflict.Is(err) {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Lease(ctx, "a", "two", hour); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(path + ".live"); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}
