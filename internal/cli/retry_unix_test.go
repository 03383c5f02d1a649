//go:build unix

package cli

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
)

// A process that is killed while it waits for the next attempt has lost nothing: another one makes the call.
func TestAKillInAWaitLosesNothing(t *testing.T) {
	t.Parallel()
	path, w, well := binary(t), newWorld(t), make(chan struct{})
	server := busy(t, well)
	cmd := exec.Command(path, "run", "--json", "--model", "anthropic/claude-sonnet-4-5", "--base-url", server.URL, "--dir", w.dir, "--journal", w.journal, "--session", "s", "my words")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waits := false
	for lines := bufio.NewScanner(out); !waits && lines.Scan(); {
		waits = strings.Contains(lines.Text(), `"type":"retry"`)
	}
	if err := cmd.Process.Kill(); err != nil || !waits {
		t.Fatal(err, waits)
	}
	_ = cmd.Wait()
	close(well)
	r := w.pawl("resume", "s", "--journal", w.journal, "--base-url", server.URL, "--json")
	lines := w.decoded(r)
	if r.code != exitCompleted {
		t.Fatalf("%+v", r)
	}
	show := w.pawl("sessions", "show", "s", "--journal", w.journal)
	if n := strings.Count(show.out, "my words"); n != 1 || lines[len(lines)-1]["steps"] != 1.0 {
		t.Errorf("the prompt is there %d times, %v\n%s", n, lines[len(lines)-1], show.out)
	}
}
