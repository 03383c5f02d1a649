//go:build !unix

package process

import (
	"context"
	"os/exec"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

// Process is a running command with everything that it started.
type Process struct{}

// Start refuses: without process groups nobody could say that a command is over, or end it.
func Start(*exec.Cmd, string) (*Process, error) {
	return nil, errdefs.NotAvailable.Errorf("commands need the process groups of Unix, which this system doesn't have")
}

// Wait is there for those who compile it.
func (p *Process) Wait(context.Context, time.Duration) End { return End{} }

// Stop is there for those who compile it.
func (p *Process) Stop() {}

// Exited is there for those who compile it.
func (p *Process) Exited() <-chan struct{} { return nil }

// Guarded refuses like Start.
func Guarded() error {
	_, err := Start(nil, "")
	return err
}

// StopMarked would need /proc.
func StopMarked(string) {}
