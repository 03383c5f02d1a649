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
	if _, err := Run(t.Context(), cmd, "inner", time.Minute); err != nil || out.String() != "outer,"+watch.token+".inner /\n" {
		t.Errorf("%q %v", out, err)
	}
	if len(env) != 2 {
		t.Error("the caller's environment has changed")
	}
}

const dies = "PROCESS_TEST_DIES"

// The process that dies is another run of this test. Of what it started, everybody holds its output.
func TestWhatACommandStartedDiesWithUs(t *testing.T) {
	if text := os.Getenv(dies); text != "" {
		cmd := sh(text)
		cmd.Stdout = os.Stdout
		if _, err := Start(cmd, "test.dies"); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	for name, text := range map[string]string{
		"the command itself":             "echo $$; exec sleep 300",
		"its children":                   "sleep 300 & echo $!; wait",
		"those that don't want to":       `trap "" TERM; (trap "" TERM; while :; do sleep 1; done) & echo $!; wait`,
		"an orphan":                      "(sleep 300 & echo $!); exec sleep 300",
		"an orphan, the command is over": "(sleep 300 & echo $!)",
	} {
		t.Run(name, func(t *testing.T) { dieAndLook(t, text) })
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil { // elsewhere the group is all that is known
		t.Run("an orphan in a session of its own", func(t *testing.T) { dieAndLook(t, "(setsid sh -c 'echo $$; exec sleep 300' &) ; sleep 300") })
		t.Run("one without an environment", func(t *testing.T) { dieAndLook(t, "env -i sh -c 'echo $$; exec sleep 300' & wait") })
	}
}

func dieAndLook(t *testing.T, text string) {
	parent := exec.Command(os.Args[0], "-test.run=^TestWhatACommandStartedDiesWithUs$")
	parent.Env = append(os.Environ(), dies+"="+text)
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
	time.Sleep(100 * time.Millisecond) // an orphan becomes one
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil { // it ends when the last one that has the pipe is dead
		t.Errorf("somebody lives: %v", err)
	}
}

func TestAGuardThatIsGoneIsReplaced(t *testing.T) {
	if err := Guarded(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	gone := func() {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		standing = append(standing, watch.pipe)
		watch.pipe = w // as if nobody read it any more
	}
	replaced := func() bool {
		watch.mu.Lock()
		defer watch.mu.Unlock()
		return watch.pipe != nil && watch.pipe != w
	}
	gone()
	if err := Guarded(); err != nil || !replaced() {
		t.Fatal("there is no guard:", err)
	}
	long, short := sh("exec sleep 300"), sh("read x")
	in, err := short.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	one, err := Start(long, "test.long")
	if err != nil {
		t.Fatal(err)
	}
	two, err := Start(short, "test.short")
	if err != nil {
		t.Fatal(err)
	}
	gone()
	_ = in.Close()
	two.Wait(t.Context(), time.Minute)
	if !replaced() {
		t.Error("a command that goes on has no guard after another one has ended")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	one.Wait(ctx, 0)
}

// standing keeps the pipes of guards open: at its end a guard would stop what other tests run.
var standing []*os.File
