//go:build linux || darwin

package fence

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox"
)

const holds = "SANDBOX_TEST_HOLDS"

// The process that is killed is another run of this test.
func TestTheDirectoryOfAProcessThatWasKilledGoesWithTheNextOpen(t *testing.T) {
	tier.SkipQuick(t, "it starts sandboxes")
	if can := Probe(); !can.Writes.Holds {
		component.Absent(t, "no fence", can.Writes.Why)
	}
	if root := os.Getenv(holds); root != "" {
		f, err := Open(sandbox.Policy{Root: root}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("temp " + f.temp + "\n")
		select {}
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	there := func(dir string) bool {
		_, err := os.Lstat(dir)
		return !errors.Is(err, fs.ErrNotExist)
	}
	begin := func() (dir string, kill func()) {
		other := exec.Command(os.Args[0], "-test.run=^TestTheDirectoryOfAProcessThatWasKilled")
		other.Env = append(os.Environ(), holds+"="+root)
		out, err := other.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		kill = func() {
			_ = other.Process.Kill()
			_ = other.Wait()
		}
		t.Cleanup(kill)
		line, err := bufio.NewReader(out).ReadString('\n')
		dir = strings.TrimSpace(strings.TrimPrefix(line, "temp "))
		if err != nil || !filepath.IsAbs(dir) {
			t.Fatal(line, err)
		}
		return dir, kill
	}
	killed, kill := begin()
	alive, _ := begin()
	if err := errors.Join(os.MkdirAll(killed+"/tmp/a/b", 0o700), os.WriteFile(killed+"/tmp/a/b/f", nil, 0o600), os.Chmod(killed+"/tmp/a/b", 0o500), os.Symlink(root, killed+"/tmp/out")); err != nil {
		t.Fatal(err)
	}
	unknown, err := os.MkdirTemp("", tempPrefix+"unknown-*") // its owner can't be found out
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(unknown) }()
	kill()
	if !there(killed) {
		t.Fatal("it went with the process: there is nothing to show")
	}
	f, err := Open(sandbox.Policy{Root: root}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if there(killed) || !there(alive) || !there(unknown) || !there(root) || !there(f.temp) {
		t.Errorf("killed: %v, alive: %v, unknown: %v, what a link led to: %v, own: %v", there(killed), there(alive), there(unknown), there(root), there(f.temp))
	}
	if err := f.Close(); err != nil || there(f.temp) {
		t.Error(err)
	}
}
