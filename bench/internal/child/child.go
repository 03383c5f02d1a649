// Package child runs parts of a benchmark as processes of their own, so that what one of them takes is not counted with the others.
package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience is how long a process may take to begin, and to end.
const patience = 20 * time.Second

// greeting is what a child says on its standard output once it listens, with its address behind it.
const greeting = "listening "

// Process is a part that runs. Only one goroutine may use it.
type Process struct {
	URL string // where it listens: "http://127.0.0.1:34567"

	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// Usage is what a process took, from its start to its end.
type Usage struct {
	CPU  time.Duration // of all its threads, user and system
	Peak int64         // the most memory that was resident, in bytes; 0 where the system doesn't say
}

// Start runs this program once more, with args, and waits until it listens. The process ends with ctx, with its parent, or by End, which has to be called.
func Start(ctx context.Context, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, self, args...)} //nolint:gosec // it is this program
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = patience
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.cmd.Cancel = p.in.Close // the word to end, as in End
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	line, err := p.out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), greeting)
	if !ok {
		_, ended := p.End()
		return nil, errors.Join(fmt.Errorf("%s did not begin to listen: it said %q", args[0], line), err, ended)
	}
	p.URL = url
	return p, nil
}

// End has the process end, waits for it, and says what it took.
func (p *Process) End() (Usage, error) {
	u := Usage{Peak: Peak(p.cmd.Process.Pid)}
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.in.Close() // which it takes for the word to end
	_, _ = io.Copy(io.Discard, p.out)
	err := p.cmd.Wait()
	if s := p.cmd.ProcessState; s != nil {
		u.CPU = s.UserTime() + s.SystemTime()
	}
	return u, err
}

// Peak is the most memory of a process that was resident, in bytes; 0 where the system doesn't say. It is Linux's own count: that of getrusage would have the parent's memory in it, which the child shares until it becomes a program of its own.
func Peak(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}

// Serve is the child's side: it serves, over TLS if the server has a TLSConfig, on a port of this machine until standard input ends, and gives answers that are under way a moment to get out.
func Serve(s *http.Server) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.ReadHeaderTimeout = patience
	served := make(chan error, 1)
	if s.TLSConfig != nil {
		go func() { served <- s.ServeTLS(l, "", "") }()
		fmt.Printf("%shttps://%s\n", greeting, l.Addr())
	} else {
		go func() { served <- s.Serve(l) }()
		fmt.Printf("%shttp://%s\n", greeting, l.Addr())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ctx, cancel := context.WithTimeout(context.Background(), patience/2)
		defer cancel()
		served <- errors.Join(s.Shutdown(ctx), s.Close())
	}()
	err = <-served
	if errors.Is(err, http.ErrServerClosed) { // the other one is about to say how that went
		err = <-served
	}
	return err
}

// Run runs a program, this one if it has no path, waits for it, and gives what it said on its standard output.
func Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = self
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // it is this program, or one that the caller names
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = patience
	cmd.Cancel = func() error { // it has files to remove
		if cmd.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
