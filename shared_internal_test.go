//go:build unix

package pawl

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/sandbox"
)

// What hooks do in the background goes on when a reload replaces them; it is what they are kept for.
func TestHooksThatAReloadReplacesAreKeptUntilTheirLastOneHasEnded(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	lay := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(n int) {
		t.Helper()
		lay(".agents/settings.json", fmt.Sprintf(`{"env": {"N": "%d"}, "hooks": {"SessionStart": [{"hooks": [{"type": "command", "async": true, "command": "until [ -e go ]; do sleep 0.05; done; echo $N >ended"}]}]}}`, n))
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not in 30 s:", what)
			}
		}
	}
	settings(0)
	rt, err := New(t.Context(), Options{Model: once{}, ProjectRoot: dir, Trusted: true, Journal: journal.Memory(), Sandbox: &sandbox.Policy{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close() }()
	kept := func() int {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		if len(rt.shells) != len(rt.shared) {
			return -1
		}
		return len(rt.shells)
	}
	if _, err := rt.Run(t.Context(), Request{Prompt: "go", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		settings(n)
		eventually("the change", func() bool { a := rt.hold(); defer rt.drop(a); return a.env["N"] == fmt.Sprint(n) })
	}
	eventually("only the ones with a hook that runs, and the newest, are kept", func() bool { return kept() == 2 })
	lay("go", "")
	eventually("what ran has ended", func() bool { return kept() == 1 })
	if b, err := os.ReadFile(filepath.Join(dir, "ended")); err != nil || string(b) != "0\n" {
		t.Errorf("%q %v", b, err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}
