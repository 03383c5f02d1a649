//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The commands of the page do what it says, in its order; the service and the database are those of the test.
func TestTheCommandsOfThePage(t *testing.T) {
	b, err := os.ReadFile("../../../docs/temporal.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(b), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	instead := func(text, old, by string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("the page has no %q", old)
		}
		return strings.Replace(text, old, by, 1)
	}
	const script = `turns: [{tool_calls: [{id: push, name: bash, input: {command: git push}}]}, {text: Done.}]`
	one, many := newWorld(t, script), newWorld(t, script)
	blocks[0] = instead(blocks[0], "temporal server start-dev --headless &\n", "")
	blocks[1] = instead(instead(blocks[1], "temporal.example:7233", many.server.Address), "postgres://pawl@db.example/pawl", "'"+many.journal+"'")
	for w, script := range map[*world]string{one: blocks[0], many: blocks[1] + blocks[2]} {
		cmd := exec.Command("bash", "-eux", "-c", script)
		cmd.Dir, cmd.Env = w.dir, append(w.env(), "TEMPORAL_ADDRESS="+w.server.Address, "TEMPORAL_NAMESPACE="+w.server.Namespace)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		log, err := os.Create(filepath.Join(w.home, "log")) // a pipe would wait for the workers
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		err = cmd.Run()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // its workers
		_ = log.Close()
		out, _ := os.ReadFile(log.Name())
		if err != nil || !strings.Contains(string(out), "Done.\n") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if r := many.pawl("sessions", "list", "--journal", many.journal); strings.Count(r.out, "completed") != 2 {
		t.Errorf("%+v", r)
	}
}
