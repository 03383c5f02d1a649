package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Main is a whole program: it runs the command line of the process, and ends it.
func Main(p Program) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 8)
	// SIGPIPE too: a reader that goes away ends the run, not the process with the run's commands still going.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go listen(signals, cancel)
	os.Exit(p.run(ctx, streams{os.Stdin, os.Stdout, os.Stderr}, os.Args[1:]))
}

// listen cancels on the first signal. Ending takes as long as it takes to stop what the run started, a second or two; a signal after
// that says that it must not take longer than three.
func listen(signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	s := <-signals
	for s == syscall.SIGPIPE && !hungUp(os.Stdout, os.Stderr) { // somebody else went away: a hook that doesn't read what it is told, or an MCP server
		s = <-signals
	}
	cancel(signalError{s})
	for s = range signals {
		if s != syscall.SIGPIPE {
			break
		}
	}
	time.Sleep(3 * time.Second)
	os.Exit(exitCanceled)
}

type signalError struct{ os.Signal }

func (e signalError) Error() string { return e.String() }
