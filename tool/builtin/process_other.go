//go:build !unix

package builtin

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
)

const dontWait = 0

type command struct {
	text, dir     string
	env           []string
	mark, scratch string
}

// run refuses: without process groups nobody could say that a command is over, or end it.
func (c command) run(context.Context, time.Duration, *stream, *stream) (ending, error) {
	return ending{}, errdefs.NotAvailable.Errorf("commands need the process groups of Unix, which this system doesn't have")
}

func stopMarked(string) {}
