package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"time"
)

// worker is a server's process.
type worker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	at    addresses
	gone  chan struct{}
	err   error // how it ended, once gone is closed
}

// start starts a server; what it complains of goes to log.
func start(self, raw string, log *os.File) (*worker, error) {
	w := &worker{cmd: exec.Command(self, "-serve", raw), gone: make(chan struct{})} //nolint:gosec // this very program
	w.cmd.Stderr = log
	var err error
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &w.at)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server does not start: %w", err), w.cmd.Process.Kill(), w.cmd.Wait())
	}
	go func() {
		defer close(w.gone)
		w.err = w.cmd.Wait()
	}()
	return w, nil
}

// kill is kill -9.
func (w *worker) kill() error {
	err := w.cmd.Process.Kill()
	<-w.gone
	return err
}

// end has it end by itself, in order and in time.
func (w *worker) end() error {
	if err := w.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-w.gone:
		return w.err
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the server does not end"), w.kill())
	}
}

// died reports whether it is gone.
func (w *worker) died() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// read reads it; the figures are those of a process that nobody asks for anything.
func (w *worker) read(ctx context.Context, client *http.Client) (r reading, err error) {
	b, err := w.profile(ctx, client, "/reading")
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// profile is what there is under a path of its controls.
func (w *worker) profile(ctx context.Context, client *http.Client, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.at.Control+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.ReadAll(res.Body)
}

// servers are the processes that clients ask: one that lives as long as the soak, which is what is measured, and one that does not.
type servers struct {
	self, raw string
	log       *os.File

	mu     sync.Mutex
	steady *worker
	mayfly *worker // nil while there is none
}

// pair gives both; the second may be nil.
func (s *servers) pair() (steady, mayfly *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steady, s.mayfly
}

// begin starts another one in the place of the mayfly. While the database is down it may not start; the next time it will.
func (s *servers) begin() error {
	w, err := start(s.self, s.raw, s.log)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayfly = w
	return nil
}

// take takes the mayfly from the clients.
func (s *servers) take() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.mayfly
	s.mayfly = nil
	return w
}

// put gives it back to them.
func (s *servers) put(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayfly = w
}
