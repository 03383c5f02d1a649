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

// Possible says why no command can be started here: without process groups nobody could say that one is over, or end it.
func Possible() error {
	return errdefs.NotAvailable.Errorf("commands need the process groups of Unix, which this system doesn't have")
}

// Start refuses as [Possible] says.
func Start(*exec.Cmd, string) (*Process, error) { return nil, Possible() }

// Wait is there for those who compile it.
func (p *Process) Wait(context.Context, time.Duration) End { return End{} }

// Stop is there for those who compile it.
func (p *Process) Stop() {}

// Exited is there for those who compile it.
func (p *Process) Exited() <-chan struct{} { return nil }

// Guarded refuses like Start.
func Guarded() error { return Possible() }

// StopMarked would need /proc.
func StopMarked(string) {}
