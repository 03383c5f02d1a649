package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool"
)

// The time that a command may take.
const (
	bashDefault = 2 * time.Minute
	bashMost    = 10 * time.Minute
)

type bashInput struct {
	Command     string `json:"command"`
	Timeout     period `json:"timeout"`
	Workdir     string `json:"workdir"`
	Description string `json:"description"`
	Background  bool   `json:"background"`
}

const bashSchema = `{"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string","description":"what bash -c runs; any number of lines, pipes, heredocs"},
"timeout":{"anyOf":[{"type":"number"},{"type":"string"}],"description":"how long it may take: milliseconds, or a string with a unit such as \"90s\" or \"5m\"; default 2 minutes, at most 10 minutes"},
"workdir":{"type":"string","description":"directory to run in, inside the project; default the project directory"},
"description":{"type":"string","description":"what the command does, in a few words, for the people who watch"},
"background":{"type":"boolean","description":"for servers and long work: go on at once, and get an id for bash_output and bash_kill; no time limit unless timeout is given"}}}`

// Bash is the tool that runs a shell command: {command, timeout, workdir, description, background}.
//
// The command runs with bash -c in a session and process group of its own, without a terminal and with an empty standard input. What it
// writes is given to [tool.Call] Output and Errors as it comes, raw; these writers must not block. The result has both streams in
// the order in which they arrived, as valid UTF-8; of more than 30,000 bytes it has the first and the last 10,000 and names the file
// that keeps the whole (up to 100 MB). An exit code other than 0, a signal and a timeout are told on the last line of an error
// result.
//
// timeout is in milliseconds, or a string with a unit; 2 minutes by default and 10 minutes at most. At a timeout and when ctx is
// cancelled the whole process group gets SIGTERM and 1 s later SIGKILL, and so does, where there is /proc, whatever else the command
// started, recognised by the variable PAWL_CALL in its environment. A cancelled call returns the error of ctx, and its result has
// the output so far.
//
// A command is over when its shell has ended. Background processes that still write to its output then have 500 ms to end; after
// that they are stopped in the same way, and the result says so. Those that write elsewhere (server >log 2>&1 &) go on, until
// [Workspace.Close] where there is /proc.
//
// With background the call returns at once, with an id for [Workspace.BashOutput] and [Workspace.BashKill]. There is no time limit then, unless timeout is given. A session has at most 8 that
// run. The last 10 MB of the output are kept in a file. The command goes on when its run ends or is cancelled; it is stopped, with everything that it started, by [Workspace.EndSession], by Close, with
// the run of a task that started it, and when this process dies, however it dies. Its start and its end are on record in the journal, and the model is told of an end that it didn't bring about
// itself; after a crash, too.
//
// With [WithSandbox], or a policy in the context, the command runs in a fence.
//
// Without process groups (Windows), and without bash, the tool fails with errdefs.NotAvailable. Another shell would not do: what hooks judge is what bash makes of a command.
func (w *Workspace) Bash() tool.Tool { return w.tools[0] }

func (w *Workspace) newBash() tool.Tool {
	return tool.Func("bash", `Run a shell command in the project directory and get its output. Standard input is empty, so nothing may ask back. `+
		`Each call is a new shell: directory changes and variables do not carry over. Long output is shortened and kept in a file. `+
		`Start servers with background. Prefer read, edit, glob and grep for files.`+w.fenceNote(),
		guarded(w, "bash", w.bash), tool.Destructive, tool.OpenWorld, tool.WithSchema(json.RawMessage(bashSchema)),
		tool.WithAliases(map[string]string{"working_directory": "workdir", "run_in_background": "background"}))
}

func (w *Workspace) bash(ctx context.Context, in bashInput) (tool.Result, error) {
	if strings.TrimSpace(in.Command) == "" || strings.ContainsRune(in.Command, 0) {
		return tool.Result{}, errdefs.Validation.Errorf("the command is empty or has a NUL character: give one that a shell can run")
	}
	limit := time.Duration(in.Timeout)
	dir, err := w.workdir(in.Workdir)
	if err != nil {
		return tool.Result{}, err
	}
	call := tool.FromContext(ctx)
	if in.Background {
		return w.background.launch(ctx, w, call, in.Command, dir, limit)
	}
	if limit == 0 {
		limit = bashDefault
	}
	out := &capture{w: w, id: randomID(), of: "bash"}
	refused := new(fence.Refused)
	cmd, cleanUp, err := w.shell(fence.WithRefused(ctx, refused), in.Command, out.id)
	if err != nil {
		return tool.Result{}, err
	}
	defer cleanUp()
	stdout, stderr := &stream{live: call.Output, to: out}, &stream{live: call.Errors, to: out}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	w.started.Store(true)
	end, err := process.Run(ctx, cmd, w.id+"."+out.id, limit)
	if err != nil {
		return tool.Result{}, errdefs.NotAvailable.Errorf("start the command: %w", err)
	}
	stdout.flush()
	stderr.flush()
	return report(ctx, end, join(out.finish(), refusals(refused)), limit)
}

// workdir is the directory that a command runs in. It is looked up through the Root to be told what is wrong with it; it is no fence,
// as the command may go anywhere.
func (w *Workspace) workdir(name string) (string, error) {
	if name == "" {
		return w.real, nil
	}
	p, err := w.locateToWrite(name)
	if err != nil {
		return "", err
	}
	info, err := p.root.Stat(p.rel)
	if err != nil {
		return "", w.reason(p, err)
	}
	if !info.IsDir() {
		return "", errdefs.Validation.Errorf("%s is no directory to run in", p.shown)
	}
	return w.realPath(p), nil
}

// refusals says whom a command could not reach, for the model: programs seldom show the reason that they were given.
func refusals(r *fence.Refused) string {
	all := r.All()
	if len(all) == 0 {
		return ""
	}
	return "(the sandbox refused connections: " + strings.Join(all, "; ") + ")"
}

// join is two texts, each on lines of its own.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return strings.TrimSuffix(a, "\n") + "\n" + b
}

func report(ctx context.Context, e process.End, output string, limit time.Duration) (tool.Result, error) {
	if output == "" {
		output = "(no output)"
	}
	lines := []string{output}
	if e.Background {
		lines = append(lines, "(background processes that still held the output were stopped; to keep one, start it with background)")
	}
	var err error
	switch {
	case e.Canceled:
		err = ctx.Err()
		lines = append(lines, "canceled: the command and everything it started was killed")
	case e.TimedOut:
		hint := ""
		if limit < time.Second {
			hint = " (a timeout without a unit is in milliseconds)"
		}
		lines = append(lines, fmt.Sprintf("timed out after %v: the command and everything it started was killed%s", limit, hint))
	case e.Signal != "":
		lines = append(lines, "killed by signal: "+e.Signal)
	case e.Code != 0:
		lines = append(lines, fmt.Sprintf("exit code: %d", e.Code))
	}
	return tool.Result{Content: strings.Join(lines, "\n"), IsError: e.Failed()}, err
}

// stream takes one output stream of a command: as it is to who watches, as text to the result.
type stream struct {
	live io.Writer
	to   interface{ add([]byte) } // valid UTF-8
	text cleaner
}

// Write takes what comes. The result gets it first, so that a slow watcher of one stream does
// not change the order in which both streams stand there. A watcher that fails doesn't matter
// to the command.
func (s *stream) Write(b []byte) (int, error) {
	s.to.add(s.text.clean(b))
	_, _ = s.live.Write(b)
	return len(b), nil
}

func (s *stream) flush() { s.to.add(s.text.flush()) }

// period is a timeout: a number of milliseconds, or a string with a unit.
type period time.Duration

func (p *period) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	s = strings.TrimSpace(s)
	d, err := time.ParseDuration(s)
	if ms, e := strconv.ParseFloat(s, 64); e == nil { // "0" is a duration too
		d, err = time.Duration(max(-1, min(ms, 1e9))*float64(time.Millisecond)), nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("timeout: %s is neither a number of milliseconds nor a time with a unit such as \"90s\" or \"5m\"", show(s))
	case d <= 0:
		return fmt.Errorf("timeout: %s is not more than 0", show(s))
	case d > bashMost:
		return fmt.Errorf("timeout: %s is more than the maximum of 10 minutes (%d ms)", show(s), bashMost.Milliseconds())
	}
	*p = period(d)
	return nil
}
