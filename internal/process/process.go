// Package process runs a command together with everything that it starts: in a session of its own, without a terminal, ended as a whole, and dying with us.
//
// Whatever a command starts is known by its process group and, where there is /proc, by a mark in its environment and by its parents. It is asked to end with
// SIGTERM and killed with SIGKILL 1 s later. When this process dies, however it dies, its guard does that for all that still runs: a process beside it, which is this program again
// under another name and starts with the first command. On Linux the command itself is killed at once.
//
// Without process groups (Windows) commands fail with errdefs.NotAvailable.
package process

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Mark is the variable that marks a command's processes. It has the marks of the commands that it runs inside of too, outermost first, with commas between.
const Mark = "PAWL_CALL"

// End is how a command ended. One of Canceled and TimedOut, or a Signal, or a Code.
type End struct {
	Code       int    // its exit code
	Signal     string // the name of the signal that killed it: SIGSEGV
	TimedOut   bool
	Canceled   bool
	Background bool // processes were stopped that it left behind and that still held its output
}

// Failed reports whether it ended otherwise than with exit code 0.
func (e End) Failed() bool { return e.Canceled || e.TimedOut || e.Signal != "" || e.Code != 0 }

// Run is Start and Wait.
func Run(ctx context.Context, cmd *exec.Cmd, mark string, limit time.Duration) (End, error) {
	p, err := Start(cmd, mark)
	if err != nil {
		return End{}, err
	}
	return p.Wait(ctx, limit), nil
}

// environment is cmd's, with the mark in it.
func environment(cmd *exec.Cmd, mark string) []string {
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.Clone(env)
	for _, v := range env { // we may be in a command of somebody else, who has to find its processes too
		if outer, ok := strings.CutPrefix(v, Mark+"="); ok {
			mark = outer + "," + mark
		}
	}
	if cmd.Dir != "" {
		env = append(env, "PWD="+cmd.Dir)
	}
	return append(env, Mark+"="+mark)
}
