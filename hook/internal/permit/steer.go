package permit

import "github.com/pawl-dev/pawl/sandbox"

// steering are the paths of rules for what decides what runs outside of the sandbox later. Nobody edits what is git's own by hand.
var steering = append(sandbox.SettingNames(), "**/.git")

// Steers names what a call that is no command changes of what decides what runs outside of the sandbox later: hooks, settings of agents and editors; "" when it changes none of it.
func (w *World) Steers(c *Call) string {
	if c.Kind() == Command {
		return ""
	}
	for _, p := range c.writes {
		for _, spec := range steering {
			if r, err := w.parsePath(relative(spec)); err == nil && w.binds(r, p) == Yes {
				return p.Shown
			}
		}
	}
	return ""
}

// relative has a path of a rule mean the project's own, and not a name at any depth.
func relative(spec string) string {
	if spec[0] == '*' {
		return spec
	}
	return "./" + spec
}
