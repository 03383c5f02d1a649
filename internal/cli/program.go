// Package cli is the program pawl: its commands, flags, output and exit codes, as docs/cli.md has them. It is a package so that a program with more in it can be made of the same parts.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/cli/otlp"
)

// Program is one of the programs that are made of this package.
type Program struct {
	Name    string // as people type it
	Version string // of a release; "devel" is none
	// Temporal is there in a program that is made with it. Any other one hands over to pawl-worker what needs it.
	Temporal Temporal

	args   []string     // of the command line
	traces *otlp.Export // nil: nothing is sent anywhere
}

// streams are the standard ones of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes.
const (
	exitCompleted = 0
	exitFailed    = 1
	exitUsage     = 2 // wrong use or configuration
	exitWaiting   = 3 // a person has to answer first
	exitLimit     = 4 // a budget or limit was reached
	exitCanceled  = 130
)

// exitError ends the program with a code; a nil err says nothing more.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// root is the program's own command: pawl's says what there is, that of a program with Temporal is its worker.
func (p Program) root(s streams) *cobra.Command {
	if p.Temporal != nil {
		root := workerCommand(s, p)
		root.Use = p.Name + " [flags]"
		return root
	}
	return &cobra.Command{
		Use:   p.Name,
		Short: "Run agents that keep what they have done",
		Long: `pawl runs agents that keep what they have done: every model reply and every tool result is
journaled once, and nothing finished is ever done twice.`,
		Example: "  pawl demo\n  pawl run \"Why does the build fail?\"",
	}
}

// run runs one command line and gives its exit code.
func (p Program) run(ctx context.Context, s streams, args []string) int {
	p.args = args
	p.traces = otlp.New(p.Name, p.Version, func(text string) { fmt.Fprintln(s.err, p.Name+": warning:", printable(text)) })
	defer p.traces.Close() //nolint:contextcheck // what there is to send is sent whatever ended
	root := p.root(s)      //nolint:contextcheck // cobra hands it on
	root.SilenceErrors, root.SilenceUsage, root.CompletionOptions.HiddenDefaultCmd = true, true, true
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	started := false // whether a command's own code took over, and with it the last line of --json
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.AddCommand(demoCommand(s), demoActCommand(s), runCommand(s, p), chatCommand(s, p), resumeCommand(s, p), serveCommand(s, p), workerCommand(s, p), replayCommand(s), approveCommand(s), rejectCommand(s), answerCommand(s), sessionsCommand(s), permissionsCommand(s), trustCommand(s), mcpCommand(s, p), packCommand(s, p), graphCommand(s, p), modelsCommand(s), doctorCommand(s), versionCommand(s, p)) //nolint:contextcheck // cobra hands it on
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitCompleted
	}
	if !started && (cmd.Name() == "run" || cmd.Name() == "resume") && cmd.Flags().Lookup("json") != nil && slices.Contains(args, "--json") {
		newJSONL(s.out).finished(nil, errdefs.Validation.Errorf("%w", err))
	}
	if errors.Is(err, syscall.EPIPE) { // nobody reads any more
		return exitCanceled
	}
	code := exitUsage
	var exit *exitError
	if ctx.Err() != nil && errdefs.Canceled(err) { // also before anything began, wherever it was noticed
		code, err = exitCanceled, errors.New("canceled")
	} else if errors.As(err, &exit) {
		code, err = exit.code, exit.err
	} else { // cobra's own: an unknown command, flag or argument
		err = fmt.Errorf("%w\nSee %s --help", err, cmd.CommandPath())
	}
	if err != nil {
		fmt.Fprintln(s.err, p.Name+":", printable(err.Error())) // it may quote a provider, or a model
	}
	return code
}

// usage is an error of wrong use or configuration.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, errdefs.Validation.Errorf(format, args...)}
}

// codeOf gives the exit code of a run.
func codeOf(res *agent.Result, err error) int {
	switch {
	case res == nil && errdefs.Canceled(err):
		return exitCanceled
	case res == nil && errdefs.BudgetExceeded.Is(err): // the time was over before the run began
		return exitLimit
	case res == nil:
		return exitFailed
	case res.Cause == engine.CauseJournal:
		return exitFailed
	case res.Status == agent.StatusInterrupted && len(res.Pending) > 0:
		return exitWaiting
	case res.Status == agent.StatusInterrupted, res.Status == agent.StatusCanceled:
		return exitCanceled
	case err == nil && res.Status == agent.StatusCompleted:
		return exitCompleted
	case errdefs.BudgetExceeded.Is(res.Err):
		return exitLimit
	}
	return exitFailed
}

// coloured reports whether f is a terminal that colours are wanted on.
func coloured(f any) bool {
	return terminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// terminal reports whether f is one.
func terminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	_, ok = columns(file)
	return ok
}
