//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sh is a command of the shell that every Unix has.
func sh(text string) *exec.Cmd { return exec.Command("sh", "-c", text) }

func TestRunTellsHowACommandEnded(t *testing.T) {
	for text, want := range map[string]End{
		"true":                 {},
		"exit 3":               {Code: 3},
		"kill -SEGV $$":        {Signal: "SIGSEGV"},
		"exec kill -USR1 $$":   {Signal: "SIGUSR1"},
		"exec >/dev/null 2>&1": {},
	} {
		end, err := Run(t.Context(), sh(text), "test.how", time.Minute)
		if end != want || err != nil || end.Failed() != (want != End{}) {
			t.Errorf("%s: %+v %v", text, end, err)
		}
	}
}

func TestACommandThatIsNotThereLeavesNothingBehind(t *testing.T) {
	cmd := exec.Command("/nowhere/at/all")
	cmd.Stdout = io.Discard
	if _, err := Run(t.Context(), cmd, "test.none", 0); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestACommandNeedNotReadItsInput(t *testing.T) {
	cmd, out := sh("echo done"), new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout = strings.NewReader(strings.Repeat("x", 1<<20)), out
	if end, err := Run(t.Context(), cmd, "test.input", time.Minute); end.Failed() || err != nil || out.String() != "done\n" {
		t.Errorf("%+v %v %q", end, err, out)
	}
	cmd, out = sh("wc -c"), new(bytes.Buffer)
	cmd.Stdin, cmd.Stdout = strings.NewReader(strings.Repeat("x", 1<<20)), out
	if end, err := Run(t.Context(), cmd, "test.input", time.Minute); end.Failed() || err != nil || strings.TrimSpace(out.String()) != "1048576" {
		t.Errorf("%+v %v %q", end, err, out)
	}
}

func TestAChildWithPipesOfItsOwnIsStoppedWithWhatItStarted(t *testing.T) {
	cmd := sh(`trap "" TERM; sleep 300 & echo $!; cat; sleep 300`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd, "test.pipes")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "asked\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := lines.ReadString('\n'); answer != "asked\n" || err != nil {
		t.Errorf("%q %v", answer, err)
	}
	select {
	case <-p.Exited():
		t.Error("it ended by itself")
	default:
	}
	p.Stop()
	<-p.Exited()
	if end := p.Wait(t.Context(), 0); end.Signal != "SIGKILL" && end.Signal != "SIGTERM" {
		t.Errorf("%+v", end)
	}
	child, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	if alive(child) {
		t.Error("what it started lives")
	}
	p.Stop() // nothing is there any more
}

// alive reports whether a process is there that isn't only waiting to be reaped.
func alive(pid int) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return len(out) > 0 && out[0] != 'Z'
}

func TestACancelStopsBeforeTheLimit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := sh("echo ready; exec sleep 300")
	cmd.Stdout = writer(func(b []byte) (int, error) {
		cancel()
		return 0, errors.New("not written") // which is no concern of the command's
	})
	if end, err := Run(ctx, cmd, "test.cancel", time.Hour); !end.Canceled || end.TimedOut || err != nil {
		t.Errorf("%+v %v", end, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestTheMarkKeepsThoseOfTheCommandsAround(t *testing.T) {
	cmd, out := sh("echo $PAWL_CALL $PWD"), new(bytes.Buffer)
	cmd.Env, cmd.Dir, cmd.Stdout = []string{"A=1", Mark + "=outer"}, "/", out
	env := cmd.Env
	if _, err := Run(t.Context(), cmd, "inner", time.Minute); err != nil || out.String() != "outer,inner /\n" {
		t.Errorf("%q %v", out, err)
	}
	if len(env) != 2 {
		t.Error("the caller's environment has changed")
	}
}

const dies = "PROCESS_TEST_DIES"

// The process that dies is another run of this test.
func TestACommandDiesWithUs(t *testing.T) {
	if os.Getenv(dies) != "" {
		cmd := sh("echo $$; exec sleep 300")
		cmd.Stdout = os.Stdout
		if _, err := Start(cmd, "test.dies"); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux ties a child to its parent")
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestACommandDiesWithUs$")
	parent.Env = append(os.Environ(), dies+"=1")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || !alive(pid) {
		t.Fatal(line, err)
	}
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if _, err := io.Copy(io.Discard, out); err != nil { // it ends when the last one that has the pipe is dead
		t.Fatal(err)
	}
}
