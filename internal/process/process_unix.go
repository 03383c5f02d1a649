//go:build unix

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long processes have.
const (
	pipeGrace = 500 * time.Millisecond // background ones, to end after their command
	termGrace = time.Second            // between SIGTERM and SIGKILL
	killGrace = 2 * time.Second        // to disappear after SIGKILL; one that hangs in the kernel is left to it
	pollEvery = 20 * time.Millisecond  // nothing tells us when a process ends that isn't our child
)

// Process is a running command with everything that it started. Safe for concurrent use, but for Wait, which is called once.
type Process struct {
	cmd     *exec.Cmd
	kin     *kin
	killing sync.Mutex    // guards kin
	pipes   []*os.File    // our ends
	copied  chan struct{} // closed when they have ended
	started chan error
	exited  chan struct{} // closed when the command has ended; it is not reaped yet where that is possible, so that its pid stays ours
	reap    chan struct{}
	reaped  chan struct{}
}

// Possible says why no command can be started here; nil: they can.
func Possible() error { return nil }

// Start starts cmd in a session of its own. A writer in cmd.Stdout and cmd.Stderr that is no *os.File gets what is written as it comes, on a goroutine for each of the
// two; it must not block, and an error of it is no reason to stop. A reader in cmd.Stdin has to come to its end. PWD (when cmd.Dir is set) and [Mark] are added to the environment; mark is unique, or begins with
// what [StopMarked] is to find. Other fields of cmd stay as they are; of SysProcAttr, Setsid and the signal at our death are set.
//
// The caller calls Wait, always.
func Start(cmd *exec.Cmd, mark string) (*Process, error) {
	p := &Process{
		cmd: cmd, copied: make(chan struct{}), started: make(chan error),
		exited: make(chan struct{}), reap: make(chan struct{}), reaped: make(chan struct{}),
	}
	cmd.Env = environment(cmd, watch.token+"."+mark)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true // a group of its own, and no terminal to ask questions on
	tie(cmd.SysProcAttr)
	cmd.WaitDelay = killGrace // somebody may keep its standard input open
	var writers []*os.File
	defer func() { closeAll(writers) }()
	var copying sync.WaitGroup
	for _, out := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		to := *out
		if _, file := to.(*os.File); file || to == nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.pipes)
			copying.Wait()
			return nil, err
		}
		p.pipes, writers = append(p.pipes, r), append(writers, w)
		*out = w
		copying.Go(func() { drain(to, r) })
	}
	go p.life(mark)
	if err := <-p.started; err != nil {
		closeAll(writers)
		writers = nil
		copying.Wait()
		closeAll(p.pipes)
		return nil, err
	}
	go func() {
		copying.Wait()
		close(p.copied)
	}()
	return p, nil
}

// life starts the command and waits for it, on one thread: a process that is tied to us is tied to the thread that started it.
func (p *Process) life(mark string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	if err == nil {
		p.kin = newKin(p.cmd.Process.Pid, mark)
		watch.add(p.cmd.Process.Pid)
	}
	p.started <- err
	if err != nil {
		return
	}
	awaitExit(p.cmd)
	close(p.exited)
	<-p.reap
	watch.drop(p.cmd.Process.Pid) // before its number may be somebody else's
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait()
	}
	close(p.reaped)
}

// drain reads r to its end, or to its deadline. A writer that fails doesn't matter to the command.
func drain(to io.Writer, r *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// Exited is closed when the command itself has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the command to end, or stops it and all that it started when ctx ends or, unless it is 0, when limit has passed. Background processes that still
// write to its output then have 500 ms to end; after that they are stopped too. Nothing is written to cmd's writers any more when it returns.
func (p *Process) Wait(ctx context.Context, limit time.Duration) End {
	defer func() { closeAll(p.pipes) }()
	var end End
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		end.Canceled = true
	case <-late:
		end.TimedOut = true
	}
	if end.Canceled || end.TimedOut {
		p.Stop()
	} else if !closedWithin(p.copied, pipeGrace, ctx.Done()) {
		end.Background = true
		p.Stop()
	}
	if !closedWithin(p.copied, pipeGrace, nil) { // somebody unknown still holds the pipes
		for _, f := range p.pipes {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
		<-p.copied
	}
	p.release(&end)
	return end
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

// Stop ends the command and all that it started: SIGTERM, and after 1 s SIGKILL. It returns when none lives, or 2 s after the first SIGKILL.
func (p *Process) Stop() {
	p.killing.Lock()
	defer p.killing.Unlock()
	select {
	case <-p.reaped: // its number may be somebody else's
		return
	default:
	}
	p.kin.stop(func() bool {
		select {
		case <-p.exited:
			return true
		default:
			return false
		}
	})
}

// StopMarked stops every process whose mark has this in it. It does nothing where there is no /proc.
func StopMarked(mark string) { stopMarked(mark) }

// stop asks them to end, and after termGrace kills them. It returns when none lives and exited says that the command has ended.
func (k *kin) stop(exited func() bool) {
	quiet := 0
	gone := func() bool { // twice in a row: one that is just becoming another program has no environment for a moment
		if !exited() || k.live() {
			quiet = 0
			return false
		}
		quiet++
		return quiet > 1
	}
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

// release reaps the command and tells how it ended. One that cannot be killed is reaped when it ends at last.
func (p *Process) release(end *End) {
	p.killing.Lock() // a Stop under way still uses its number
	defer p.killing.Unlock()
	close(p.reap)
	if end.TimedOut || end.Canceled {
		closedWithin(p.reaped, killGrace, nil)
		return
	}
	<-p.reaped
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		end.Code = p.cmd.ProcessState.ExitCode()
		return
	}
	if status.Signaled() {
		if end.Signal = unix.SignalName(status.Signal()); end.Signal == "" {
			end.Signal = fmt.Sprintf("%d", status.Signal())
		}
		return
	}
	end.Code = status.ExitStatus()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
