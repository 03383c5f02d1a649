package permit

import (
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/sandbox/fence"
)

// Kept gives what a rule that denies names, as patterns for sandbox.Policy: HidePatterns of one for reading, ProtectPatterns of one for editing. What can't be kept from a program, and still be worked
// with, is left out: a rule about every file, one about a directory that the project lies in, and of a pattern for any depth what lies outside of the project.
func (w *World) Kept(r *Rule) (hide, protect []string) {
	switch {
	case r.path == nil || r.path.all:
	case r.tool == read:
		hide = w.named(r.path)
	case changes(r.tool):
		protect = w.named(r.path)
	}
	return hide, protect
}

// named is what a rule's path names, as patterns of absolute paths.
func (w *World) named(p *pattern) (patterns []string) {
	glob := p.glob
	for strings.HasPrefix(glob, "**/**/") {
		glob = strings.TrimPrefix(glob, "**/")
	}
	if p.floating {
		return []string{fence.HidePattern(w.real, glob)}
	}
	lits := []string{p.lit}
	if rel, ok := below(w.dir, p.lit); ok {
		lits[0] = filepath.Join(w.real, filepath.FromSlash(rel))
		if p.rooted {
			lits = append(lits, filepath.FromSlash("/"+rel))
		}
	}
	for _, lit := range lits {
		rel, above := below(resolve(lit), w.real) // the project, from there
		_, in := below(w.real, lit)
		switch {
		case above && (glob == "" || ancestors(glob, rel)): // all of the project
		case above && !in && strings.HasPrefix(glob, "**/"):
			patterns = append(patterns, fence.HidePattern(w.real, glob))
		case in, !strings.Contains(glob, "**"):
			patterns = append(patterns, fence.HidePattern(lit, glob))
		}
	}
	return patterns
}
