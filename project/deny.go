package project

import (
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// errForbidden is of a file that rules keep from being read.
var errForbidden = &fileError{"it may not be read, by a deny rule for Read or by the sandbox's settings, so the model is not shown it", "take the rule away, or the file"}

// deny finds out which files the model is kept from: it may write @.env into a file that is read here.
func (l *loader) deny(s Settings) error {
	p := permission.Config{Dir: l.root, Deny: l.permissions.Deny}
	for _, r := range slices.Concat(s.Permissions.Rules, l.permissions.Rules) {
		if r.Verdict == hook.Deny {
			p.Rules = append(p.Rules, r)
		}
	}
	hide, _, err := permission.Kept(p)
	if err != nil {
		return err
	}
	policy := sandbox.Policy{Root: l.root, HidePatterns: hide}
	if !s.Sandbox.Off {
		policy.Hide, policy.Read = s.Sandbox.Hide, s.Sandbox.Read
	}
	if resolved, err := fence.Resolve(policy); err == nil { // else a directory has just gone away
		policy = resolved
	}
	readable := fence.Readable(policy)
	l.denied = func(path string) bool { return !readable(path) }
	return nil
}

// forbidden reports whether a file of the project may not be read, by its name or by where that leads. The user's own files are not for tools to write.
func (l *loader) forbidden(t tree, name string) bool {
	if t.shown != "" {
		return false
	}
	abs := t.abs(name)
	if l.denied(abs) {
		return true
	}
	real, err := filepath.EvalSymlinks(abs)
	return err == nil && real != abs && l.denied(real)
}
