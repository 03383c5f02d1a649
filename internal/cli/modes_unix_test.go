//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What Pawl keeps of sessions and secrets only its owner can read, whatever the umask is: the journal with what SQLite puts beside it, long outputs, where A2A's clients are told, approvals, logins,
// and what lies in the temporary directory meanwhile. What tools write in the project has the modes that files there have.
func TestOnlyTheOwnerReadsWhatIsKept(t *testing.T) {
	t.Parallel()
	pawl, w := binary(t), newWorld(t)
	loose := w.file("loose", "#!/bin/sh\numask 0\nexec "+quoted(pawl)+" \"$@\"\n")
	if err := os.Chmod(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	home, temp, state := filepath.Join(root, "home"), filepath.Join(root, "tmp"), filepath.Join(root, "state")
	for _, dir := range []string{home, temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"HOME=" + home, "TMPDIR=" + temp, "XDG_STATE_HOME=" + state, "XDG_CONFIG_HOME=" + filepath.Join(home, "config")}
	do := func(want int, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), loose, args...)
		cmd.Env, cmd.Dir = append(os.Environ(), env...), w.dir
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%q: %v\n%s", args, err, text)
		}
	}
	w.settings(`{"env": {"A": "b"}}`)
	script := w.file("s.yaml", `turns: [{tool_calls: [{name: bash, input: {command: "seq 1 100000; sleep 0.2"}}]}, {text: "Done."}]`)
	do(exitCompleted, "trust", w.dir)
	do(exitCompleted, "run", "--session", "a", "--model", "scripted/"+script, "--allow", "Bash", "--dir", w.dir, "go") // the default journal
	s := serves(t, loose, env, "--model", "scripted/"+script, "--allow", "Bash", "--dir", w.dir, "--push-host", "127.0.0.1")
	push := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"go"}]},"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"url":"http://127.0.0.1:9/hook","token":"something"}}}}`
	if code, text := s.ask("POST", "/a2a", push, "A2A-Version", "1.0"); code != 200 || strings.Contains(text, `"error"`) {
		t.Fatalf("%d %s", code, text)
	}
	want := map[string]bool{"journal.db": false, "journal.db-wal": false, "journal.db-shm": false, ".outputs/": false, ".push/": false, "trust.json": false}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) { // also while the server's command runs
		looked := 0
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil || path == root {
				return nil //nolint:nilerr // it is gone
			}
			looked++
			for part := range want {
				want[part] = want[part] || strings.Contains(path, part)
			}
			if perm := info.Mode().Perm(); perm&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			if d.IsDir() && strings.HasSuffix(path, "caches") {
				return fs.SkipDir // what tools keep in a directory that only its owner may enter
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		missing := ""
		for part, seen := range want {
			if !seen {
				missing += " " + part
			}
		}
		if missing == "" || t.Failed() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("these were not there to be looked at:%s (%d others)", missing, looked)
		}
	}
}
