package permission

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/internal/permit"
)

// Only reads a list of permission rules as the whole of what may be called: a call is on it when the rules permit it as allow rules do ([New]), every name of a path and every command of a script, with what the script
// reads and writes. Between commands that a rule permits, those may stand that only read what may be read; with a rule for Bash and one for Read, such commands may stand alone. No rules permit nothing. Always on it are what asks people, gets a skill's instructions, or looks after the session's
// commands in the background: ask_user, skill, bash_output, bash_kill. dir is the project, as in Config.Dir. A rule that can't be read is errdefs.Validation.
func Only(dir string, rules ...string) (func(*hook.ToolUse) bool, error) {
	w, err := newWorld(dir)
	if err != nil {
		return nil, fmt.Errorf("permission: only: %w", err)
	}
	j := &judge{world: w}
	for _, text := range rules {
		if err := j.add(Rule{Verdict: hook.Allow, Text: text, Place: "a list of what is allowed"}); err != nil {
			return nil, errdefs.Validation.Errorf("permission: only: %w", err)
		}
	}
	reads := func(p permit.Path) bool {
		for _, r := range j.rules[hook.Allow] {
			if r.AllowsReading(p) {
				return true
			}
		}
		return false
	}
	looks := slices.ContainsFunc(j.rules[hook.Allow], (*permit.Rule).OfCommands) && slices.ContainsFunc(j.rules[hook.Allow], (*permit.Rule).OfReading)
	return func(u *hook.ToolUse) bool {
		c := w.Read(cmp.Or(u.Call.Name, u.Tool.Name), u.Call.Input, u.Tool.ReadOnly)
		if c.Looks() {
			return true
		}
		var by *permit.Rule
		if c.Kind() == permit.Command {
			if by, _ = w.AllowsScript(c, j.rules[hook.Allow], permit.Policy{Readable: reads, Writable: j.writable}); by == nil && looks {
				only, _ := w.OnlyReads(c, reads)
				return only
			}
		} else {
			by, _ = j.permits(c, j.rules[hook.Allow])
		}
		return by != nil
	}, nil
}
