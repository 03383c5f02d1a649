//go:build unix

package builtin

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWhatIsNoRegularFileIsNotWaitedFor(t *testing.T) {
	w := open(t, map[string]string{"a.txt": "needle\n"})
	if err := syscall.Mkfifo(filepath.Join(w.Dir(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(w.Dir()) // a socket's path has to be short
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	refused(t, w.Read(), in{"file_path": "pipe"}, "pipe is not a regular file")
	refused(t, w.Write(), in{"file_path": "pipe", "content": "x"}, "not a regular file")
	refused(t, w.Edit(), in{"file_path": "pipe", "old_string": "x", "new_string": "y"}, "not a regular file")
	refused(t, w.Grep(), in{"path": "pipe", "pattern": "x"}, "not a regular file")
	refused(t, w.Read(), in{"file_path": "sock"})
	if got := ok(t, w.Grep(), in{"pattern": "needle"}); got != "a.txt" {
		t.Error(got)
	}
	if got := ok(t, w.Glob(), in{"pattern": "*"}); got != "a.txt" {
		t.Error(got)
	}
}
