package crashtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/errdefs"
)

// children are the processes that play the lives of one Matrix. A process that ended its life
// in order plays one of another case next, because starting it takes longer than most lives.
// It never plays two lives of the same case: who resumes a run knows nothing of it.
type children struct {
	test string   // their -test.run
	dir  string   // their working directory
	env  []string // beside the parent's own
	most int      // how many are kept that do nothing

	mu   sync.Mutex
	idle []*child
}

// child is a running process.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser // plans, and a byte when the parent did its part of a fault
	record  *recordReader
	hear    *os.File
	out     bytes.Buffer
	cases   []string // their directories
	release func() bool
}

// take returns a child that never played a life of the case in dir. It is killed when ctx ends,
// until it is released.
func (cs *children) take(ctx context.Context, dir string) (*child, error) {
	c := cs.takeIdle(dir)
	if c == nil {
		var err error
		if c, err = cs.start(); err != nil {
			return nil, err
		}
	}
	c.cases = append(c.cases, dir)
	c.release = context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	return c, nil
}

// takeIdle returns an idle child, or nil if each of them played a life of the case.
func (cs *children) takeIdle(dir string) *child {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	i := slices.IndexFunc(cs.idle, func(c *child) bool { return !slices.Contains(c.cases, dir) })
	if i < 0 {
		return nil
	}
	c := cs.idle[i]
	cs.idle = slices.Delete(cs.idle, i, i+1)
	return c
}

// start runs this very program as a child.
func (cs *children) start() (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	hear, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, "-test.run="+cs.test), hear: hear, record: newRecordReader(hear)} //nolint:gosec // this very program
	c.cmd.Env = append(os.Environ(), cs.env...)
	// The race detector lets a process sleep for a second before it exits.
	c.cmd.Env = append(c.cmd.Env, variable+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles, c.cmd.Dir = &c.out, &c.out, []*os.File{tell}, cs.dir
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err = errors.Join(err, tell.Close()); err != nil {
		return nil, errors.Join(err, hear.Close())
	}
	return c, nil
}

// plan tells the child which life it plays.
func (c *child) plan(pl plan) error {
	b, err := json.Marshal(pl)
	if err == nil {
		_, err = c.in.Write(append(b, '\n'))
	}
	return err
}

// keep takes back a child whose life ended in order, for a life of another case.
func (cs *children) keep(c *child) error {
	if !c.release() { // it was killed meanwhile
		return c.end()
	}
	cs.mu.Lock()
	full := len(cs.idle) >= cs.most
	if !full {
		cs.idle = append(cs.idle, c)
	}
	cs.mu.Unlock()
	if full {
		return c.dismiss()
	}
	return nil
}

// end waits for a child that is gone or about to go. How it ended is in cmd.ProcessState.
func (c *child) end() error {
	_ = c.cmd.Wait() // its error is in the state
	c.release()
	_ = c.in.Close() // Wait closed it
	err := c.hear.Close()
	if bytes.Contains(c.out.Bytes(), []byte("DATA RACE")) {
		err = errors.Join(err, errdefs.Internal.Errorf("a data race: %s", c.out.Bytes()))
	}
	return err
}

// dismiss lets an idle child go.
func (c *child) dismiss() error {
	err := cmp.Or(c.in.Close(), c.end())
	if code := c.cmd.ProcessState.ExitCode(); err == nil && code != 0 {
		err = errdefs.Internal.Errorf("a child that had nothing left to do ended with %d: %s", code, c.out.Bytes())
	}
	return err
}

// close lets all of them go.
func (cs *children) close() (err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.idle {
		err = errors.Join(err, c.dismiss())
	}
	cs.idle = nil
	if err != nil {
		err = fmt.Errorf("crashtest: %w", err)
	}
	return err
}
