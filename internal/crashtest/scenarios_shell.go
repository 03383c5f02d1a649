package crashtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/model/scripted"
)

// ShellHooks are those whose project has shell hooks: one rewrites the input of calls and refuses some, one changes results, one sends the model back. Each notes its runs in a file
// of the case. They are not among [Scenarios], since what a hook writes lies on the disk that a fault may fill.
func ShellHooks() []Scenario {
	turns := counted([]scripted.Turn{
		calls("all", call("c1", "pay"), call("c2", "ban"), call("c3", "put")), says("almost"), end,
	})
	return []Scenario{{Name: "shell hooks", Text: "the end", Build: shelled(turns), Runs: ran("judge/c1", "judge/c2", "judge/c3", "tool/c1", "tool/c3", "stop/")}}
}

// The hooks. What they read is one line; they start no program, so that a run of one takes a millisecond. A result is changed only where the call was judged.
const (
	readsCall = `read -r in; call=${in#*'"tool_use_id":"'}; call=${call%%'"'*}; `
	judges    = readsCall + `echo "judge/$call" >> runs; case $in in
*'"tool_name":"ban"'*) echo 'not this one' >&2; exit 2;;
esac
echo '{"hookSpecificOutput":{"updatedInput":{"note":", as a hook wrote"},"additionalContext":"a hook let it run"}}'`
	changes = readsCall + `echo "tool/$call" >> runs
while read -r line; do
	[ "$line" != "judge/$call" ] || { echo '{"hookSpecificOutput":{"updatedToolOutput":"it was judged, and done"}}'; exit; }
done < runs
echo 'nobody judged it' >&2; exit 2`
	returns = `read -r in; echo stop/ >> runs; case $in in
*'"stop_hook_active":false'*) echo '{"decision":"block","reason":"Are you sure?"}';;
*) echo '{"systemMessage":"it stops"}';;
esac`
)

// shelled builds a loop that plays a script, with the tools of [toolbox], between shell hooks. There is a point before each run of one, and behind its answer.
func shelled(turns []scripted.Turn) func(p *Process) (agent.Agent, engine.Engine, error) {
	return func(p *Process) (agent.Agent, engine.Engine, error) {
		a, eng, err := looping(nil, turns...)(p)
		if err != nil {
			return a, eng, err
		}
		shells, err := shell.New(shell.Options{
			Dir: p.Dir(),
			Command: func(_ context.Context, name string, args ...string) (*exec.Cmd, error) {
				p.Point("before a hook")
				return exec.Command(name, args...), nil //nolint:gosec // the hooks above
			},
			Notify: func(context.Context, shell.Notice) { p.Point("after a hook said something") },
		},
			shell.Hook{Event: shell.PreToolUse, Name: "judges", Command: judges},
			shell.Hook{Event: shell.PostToolUse, Name: "changes", Command: changes},
			shell.Hook{Event: shell.Stop, Name: "returns", Command: returns},
		)
		if err != nil {
			return a, eng, err
		}
		a.Hooks = []hook.Middleware{shells.Middleware()}
		return a, eng, nil
	}
}

// ran counts the lines of the file runs, by keys.
func ran(keys ...string) func(dir string) (map[string]int, error) {
	return func(dir string) (map[string]int, error) {
		b, err := os.ReadFile(filepath.Join(dir, "runs")) //nolint:gosec // in the case's directory
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out := map[string]int{}
		for _, key := range keys {
			out[key] = 0
		}
		for line := range strings.Lines(string(b)) {
			out[strings.TrimSuffix(line, "\n")]++
		}
		return out, nil
	}
}
