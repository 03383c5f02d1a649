package blackbox

import (
	"os"
	"os/exec"
	"strings"
	"sync"
)

// output is what a process wrote so far.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is a command that runs beside the test.
type process struct {
	w    *world
	cmd  *exec.Cmd
	out  *output
	errs *output
	done chan struct{}
}

// start starts the program beside the test. It is killed at the test's end.
func (w *world) start(args ...string) *process {
	w.t.Helper()
	return w.begin(w.command(binary("pawl"), args...))
}

// begin starts a command beside the test.
func (w *world) begin(cmd *exec.Cmd) *process {
	w.t.Helper()
	p := &process{w, cmd, &output{}, &output{}, make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { defer close(p.done); _ = cmd.Wait() }()
	w.t.Cleanup(p.end)
	return p
}

// end kills the process, if it still runs, and waits for it.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// signal sends a signal.
func (p *process) signal(s os.Signal) {
	p.w.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.w.t.Fatal(err)
	}
}

// wait waits for the process's own end.
func (p *process) wait() result {
	p.w.t.Helper()
	p.w.until("the process ends", p.over)
	return result{p.cmd.ProcessState.ExitCode(), p.out.String(), p.errs.String()}
}

// gone waits until the process whose number a file has is gone.
func (w *world) gone(file string) {
	w.t.Helper()
	pid := strings.TrimSpace(w.read(file))
	w.until("the command "+pid+" is gone", func() bool {
		return exec.Command("kill", "-0", pid).Run() != nil
	})
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
