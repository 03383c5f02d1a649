//go:build unix

package builtin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/errdefs"
)

// dontWait keeps an open from waiting for the other end of a named pipe.
const dontWait = syscall.O_NONBLOCK

// How long processes have.
const (
	pipeGrace = 500 * time.Millisecond // background ones, to end after their shell
	termGrace = time.Second            // between SIGTERM and SIGKILL
	killGrace = 2 * time.Second        // to disappear after SIGKILL; one that hangs in the kernel is left to it
	pollEvery = 20 * time.Millisecond  // nothing tells us when a process ends that isn't our child
)

// longCommand is what one argument may have on every system; a longer command is run from a file.
const longCommand = 100_000

// command is a shell command to run.
type command struct {
	text    string
	dir     string
	env     []string
	mark    string // in the environment of all that it starts
	scratch string // directory for a script
}

// run runs the command to its end, its timeout or that of ctx. The error says why it could not be started.
func (c command) run(ctx context.Context, limit time.Duration, stdout, stderr *stream) (ending, error) {
	cmd, cleanUp, err := c.prepare()
	if err != nil {
		return ending{}, errdefs.NotAvailable.Errorf("prepare the command: %w", err)
	}
	defer cleanUp()
	runtime.LockOSThread() // a shell that is tied to us is tied to the thread that started it
	defer runtime.UnlockOSThread()
	p, err := start(cmd, c.mark)
	if err != nil {
		return ending{}, errdefs.NotAvailable.Errorf("start the command: %w", err)
	}
	defer p.closePipes()
	copied := copyAll([2]*stream{stdout, stderr}, p.pipes)

	var end ending
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-ctx.Done():
		end.canceled = true
	case <-timer.C:
		end.timedOut = true
	}
	if end.canceled || end.timedOut {
		p.stop()
	} else if !closedWithin(copied, pipeGrace, ctx.Done()) {
		end.background = true
		p.stop()
	}
	if !closedWithin(copied, pipeGrace, nil) { // somebody unknown still holds the pipes
		p.expirePipes()
		<-copied
	}
	p.release(&end)
	return end, nil
}

func closedWithin(done <-chan struct{}, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-early:
	case <-timer.C:
	}
	return false
}

func (c command) prepare() (cmd *exec.Cmd, cleanUp func(), err error) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return nil, nil, err
		}
	}
	args, cleanUp := []string{"-c", c.text}, func() {}
	if len(c.text) > longCommand {
		script := filepath.Join(c.scratch, "command-"+c.mark+".sh")
		if err := os.WriteFile(script, []byte(c.text), 0o600); err != nil {
			return nil, nil, err
		}
		args, cleanUp = []string{script}, func() { _ = os.Remove(script) }
	}
	cmd = exec.Command(shell, args...) //nolint:gosec // running commands is what it is for
	cmd.Dir = c.dir
	mark := c.mark
	for _, v := range c.env { // we may be a command of another workspace: that one has to find its processes too
		if outer, ok := strings.CutPrefix(v, markName); ok {
			mark = outer + "," + c.mark
		}
	}
	cmd.Env = append(append([]string{}, c.env...), "PWD="+c.dir, markName+mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a group of its own, and no terminal to ask questions on
	tie(cmd.SysProcAttr)
	return cmd, cleanUp, nil
}

const markName = "PAWL_CALL="

// process is a running command with all that it started.
type process struct {
	cmd    *exec.Cmd
	kin    *kin
	pipes  [2]*os.File
	exited chan struct{} // closed when the shell has ended; it is not reaped yet where that is possible, so that its pid stays ours
	reap   chan struct{}
	reaped chan struct{}
}

func start(cmd *exec.Cmd, mark string) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan struct{}), reap: make(chan struct{}), reaped: make(chan struct{})}
	var writers [2]*os.File
	defer func() {
		for _, f := range writers {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	for i := range writers {
		r, w, err := os.Pipe()
		if err != nil {
			p.closePipes()
			return nil, err
		}
		p.pipes[i], writers[i] = r, w
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	if err := cmd.Start(); err != nil {
		p.closePipes()
		return nil, err
	}
	p.kin = newKin(cmd.Process.Pid, mark)
	go func() {
		awaitExit(cmd)
		close(p.exited)
		<-p.reap
		if cmd.ProcessState == nil {
			_ = cmd.Wait()
		}
		close(p.reaped)
	}()
	return p, nil
}

// stop ends the command and all that it started.
func (p *process) stop() {
	p.kin.stop(func() bool {
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	})
}

// stop asks them to end, and after termGrace kills them. It returns when none lives and exited says that the shell has ended.
func (k *kin) stop(exited func() bool) {
	gone := func() bool { return exited() && !k.live() }
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	k.signal(syscall.SIGTERM)
	for end := time.Now().Add(termGrace); time.Now().Before(end); <-poll.C {
		if gone() {
			return
		}
	}
	for end := time.Now().Add(killGrace); time.Now().Before(end) && !gone(); <-poll.C {
		k.signal(syscall.SIGKILL) // again and again: what is being killed may still start something
	}
}

// release reaps the shell and tells how it ended. One that cannot be killed is reaped when it ends at last.
func (p *process) release(end *ending) {
	close(p.reap)
	if end.timedOut || end.canceled {
		closedWithin(p.reaped, killGrace, nil)
		return
	}
	<-p.reaped
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		end.code = p.cmd.ProcessState.ExitCode()
		return
	}
	if status.Signaled() {
		if end.signal = unix.SignalName(status.Signal()); end.signal == "" {
			end.signal = fmt.Sprintf("%d", status.Signal())
		}
		return
	}
	end.code = status.ExitStatus()
}

func (p *process) expirePipes() {
	for _, f := range p.pipes {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
}

func (p *process) closePipes() {
	for _, f := range p.pipes {
		if f != nil {
			_ = f.Close()
		}
	}
}
