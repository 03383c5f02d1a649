//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// binary builds the program.
func binary(t *testing.T) string {
	t.Helper()
	tier.SkipQuick(t, "it builds the program")
	path, err := theProgram()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// theProgram is where it is: once for all tests.
var theProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(shared.dir, "bin", "pawl")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/pawl").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

// gone waits for a process that is not our child to be gone.
func gone(t *testing.T, pidFile string) {
	t.Helper()
	b, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(b))); errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %s lives on", b)
		}
		time.Sleep(20 * time.Millisecond) // a process of another process can only be polled
	}
}

// A run that is ended from outside takes its commands with it, keeps what there was, and says so in its last line.
func TestARunThatIsEndedFromOutsideLeavesNothingBehind(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("it looks for processes in /proc")
	}
	path := binary(t)
	for name, c := range map[string]struct {
		signals []syscall.Signal
		hangUp  bool // the reader of standard output goes away
	}{
		"interrupt":               {signals: []syscall.Signal{syscall.SIGINT}},
		"interrupt, twice":        {signals: []syscall.Signal{syscall.SIGINT, syscall.SIGINT}},
		"terminate":               {signals: []syscall.Signal{syscall.SIGTERM}},
		"the terminal is closed":  {signals: []syscall.Signal{syscall.SIGHUP}},
		"nobody reads the output": {hangUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := filepath.Join(dir, "s.yaml")
			// deaf to signals, with a grandchild, and talking
			command := `trap '' TERM INT HUP; sh -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 0.1; echo tick; done'`
			if err := os.WriteFile(script, []byte(`turns: [{text: "I wait.", tool_calls: [{name: bash, input: {command: "`+command+`"}}]}]`), 0o600); err != nil {
				t.Fatal(err)
			}
			journal := "sqlite:" + filepath.Join(dir, "j.db")
			cmd := exec.Command(path, "run", "--json", "--model", "scripted/"+script, "--dir", dir, "--journal", journal, "--session", "s", "go")
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = write, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = write.Close()
			var lines bytes.Buffer
			for !bytes.Contains(lines.Bytes(), []byte(`"type":"tool.output"`)) {
				if _, err := io.CopyN(&lines, read, 1); err != nil {
					t.Fatalf("%v\n%s\n%s", err, &lines, &errs)
				}
			}
			if out, err := exec.Command(path, "sessions", "list", "--json", "--journal", journal).Output(); err != nil || !strings.Contains(string(out), `"status":"running"`) {
				t.Errorf("while it runs: %v %s", err, out)
			}
			if out, err := exec.Command(path, "sessions", "delete", "s", "--journal", journal).CombinedOutput(); err == nil || !strings.Contains(string(out), "is being driven") {
				t.Errorf("while it runs: %v %s", err, out)
			}
			if c.hangUp {
				_ = read.Close()
			}
			for _, s := range c.signals {
				_ = cmd.Process.Signal(s)
			}
			if !c.hangUp {
				_, _ = io.Copy(&lines, read)
				_ = read.Close()
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitCanceled {
				t.Errorf("exit %d (%v)\n%s", code, cmd.ProcessState, &errs)
			}
			gone(t, filepath.Join(dir, "grandchild"))
			if !c.hangUp {
				all := strings.Split(strings.TrimSpace(lines.String()), "\n")
				var last map[string]any
				if err := json.Unmarshal([]byte(all[len(all)-1]), &last); err != nil || last["type"] != "run.finished" || last["status"] != "canceled" {
					t.Errorf("the last line: %v %v", err, last)
				}
			}
			out, err := exec.Command(path, "sessions", "list", "--json", "--journal", journal).Output()
			if err != nil || !strings.Contains(string(out), `"status":"canceled"`) {
				t.Errorf("%v %s", err, out)
			}
		})
	}
}

func TestTheDemoThatDiesIsFinishedByAnotherProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary(t), "demo", "--crash", "--journal", "sqlite:"+filepath.Join(t.TempDir(), "j.db"))
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"the process was killed (SIGKILL)", "resumed by another process", "edit fix: unknown, ran 1 time", "replies: 6, tool calls: 6, repeated: 0, lost: 0", "go test passes",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// PostgreSQL can't tell that a process is gone: a resume waits for its lease to end, says so, and finishes the run.
func TestAResumeWaitsForTheLeaseOfAKilledProcess(t *testing.T) {
	t.Parallel()
	path := binary(t)
	dir, journal := t.TempDir(), pgURL(t)
	script := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(script, []byte(`turns:
  - tool_calls: [{name: bash, input: {command: "echo $$ > pid; echo once >> out; while :; do sleep 0.1; done"}}]
  - text: "Done."
`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(path, "run", "--model", "scripted/"+script, "--dir", dir, "--journal", journal, "--session", "s", "go")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // another process can only be polled
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal("the command never ran")
		}
	}
	early, err := exec.Command(path, "resume", "s", "--journal", journal).CombinedOutput()
	if err == nil || !strings.Contains(string(early), "is being driven by somebody else") {
		t.Errorf("while it runs: %v %s", err, early)
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	if runtime.GOOS == "linux" {
		gone(t, filepath.Join(dir, "pid"))
	}
	var out, errs bytes.Buffer
	resume := exec.Command(path, "resume", "s", "--journal", journal)
	resume.Stdout, resume.Stderr = &out, &errs
	if err := resume.Run(); err != nil || out.String() != "Done.\n" || !strings.Contains(errs.String(), "waiting for the session") {
		t.Errorf("%v\n%s\n%s", err, &out, &errs)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(b) != "once\n" {
		t.Errorf("%q %v", b, err)
	}
}

// The model is told of it when the run is resumed.
func TestACommandInTheBackgroundDiesWithAProgramThatIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("it looks for processes in /proc")
	}
	path, dir := binary(t), t.TempDir()
	script := filepath.Join(dir, "s.yaml")
	turns := `turns:
  - tool_calls: [{name: bash, input: {command: "(trap '' TERM; echo $BASHPID > orphan; while :; do sleep 1; done) & echo $$ > server; exec sleep 300", background: true}}]
  - tool_calls: [{name: bash, input: {command: "while ! [ -s orphan ]; do sleep 0.05; done; echo $$ > waits; exec sleep 300"}}]
  - text: "Over."
`
	if err := os.WriteFile(script, []byte(turns), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--model", "scripted/" + script, "--dir", dir, "--journal", "sqlite:" + filepath.Join(dir, "j.db")}
	cmd := exec.Command(path, append([]string{"run", "--session", "s", "go"}, flags...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // nothing tells when another process has written
		if b, err := os.ReadFile(filepath.Join(dir, "waits")); err == nil && len(b) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the second command did not begin")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, name := range []string{"server", "orphan", "waits"} {
		gone(t, filepath.Join(dir, name))
	}
	out, err := exec.Command(path, append([]string{"resume", "s", "--json"}, flags...)...).Output()
	if err != nil || !strings.Contains(string(out), `"type":"command.ended"`) || !strings.Contains(string(out), "is out of reach: the process that ran it has ended") {
		t.Errorf("%v\n%s", err, out)
	}
	shown, err := exec.Command(path, "sessions", "show", "s", flags[4], flags[5]).Output()
	if err != nil || !strings.Contains(string(shown), " · started\n") || !strings.Contains(string(shown), " · lost\n") {
		t.Errorf("%v\n%s", err, shown)
	}
}

// A hook that doesn't read what it is given ends nothing but itself: what goes away is not the reader of the program's own output.
func TestAHookThatDoesNotReadIsNoHangUp(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".agents/settings.json": `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 0"}]}]}}`,
		"s.yaml":                `turns: [{tool_calls: [{name: write, input: {file_path: big, content: "` + strings.Repeat("x", 1<<19) + `"}}]}, {text: Done.}]`, // more than a pipe takes
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(path, "run", "--trust", "--permission-mode", "acceptEdits", "--model", "scripted/"+filepath.Join(dir, "s.yaml"), "--dir", dir, "--journal", "memory", "go")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Done.") {
		t.Errorf("%v\n%.2000s", err, out)
	}
}
