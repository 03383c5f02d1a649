package permit

import (
	"slices"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// steering are the paths of rules for what decides what runs outside of the sandbox later. Nobody edits what is git's own by hand.
func steering() []string {
	return steeringList.Of(func() []string { return append(fence.SettingNames(), "**/.git") })
}

var steeringList lazy.Value[[]string]

// Steers names what a call that is no command changes of what decides what runs outside of the sandbox later, in the project and the further directories: hooks, settings of agents and editors; "" when it changes none of it.
func (w *World) Steers(c *Call, further Further) string {
	if c.Kind() == Command {
		return ""
	}
	for _, p := range c.writes {
		for _, spec := range steering() {
			if r, err := w.parsePath(relative(spec)); err == nil && w.binds(r, p) == Yes {
				return p.Shown
			}
		}
		for _, names := range further.writable {
			if w.settingIn(names, p) {
				return p.Shown
			}
		}
	}
	if len(c.writes) == 0 {
		return ""
	}
	var found []string // that are not known by their names: a directory of hooks, a file that git's configuration includes
	for _, dir := range append([]string{w.real}, further.written()...) {
		found = append(found, fence.Settings(dir)...)
	}
	for _, p := range c.writes {
		for _, name := range p.names {
			if slices.ContainsFunc(found, func(path string) bool { _, in := below(w.folded(path), w.folded(name)); return in }) {
				return p.Shown
			}
		}
	}
	return ""
}

// written are the directories that may be written, without symbolic links.
func (f Further) written() (out []string) {
	for _, names := range f.writable {
		out = append(out, names[len(names)-1])
	}
	return out
}

// settingIn reports whether p is one of the settings in a directory, known by some names, or lies in one.
func (w *World) settingIn(dirs []string, p Path) bool {
	for _, name := range p.names {
		for _, dir := range dirs {
			rel, ok := below(w.folded(dir), w.folded(name))
			if ok && slices.ContainsFunc(fence.SettingNames(), func(spec string) bool { return ancestors(spec, rel) }) {
				return true
			}
		}
	}
	return false
}

// relative has a path of a rule mean the project's own, and not a name at any depth.
func relative(spec string) string {
	if spec[0] == '*' {
		return spec
	}
	return "./" + spec
}
