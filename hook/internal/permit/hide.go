package permit

import (
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/sandbox"
)

// HiddenBy gives what a rule that denies reading names, as patterns for sandbox.Policy.HidePatterns. What can't be hidden from a program, and still be worked with, is left out: a rule about every
// file, one about a directory that the project lies in, and of a pattern for any depth what lies outside of the project.
func (w *World) HiddenBy(r *Rule) (patterns []string) {
	p := r.path
	if r.tool != read || p == nil || p.all {
		return nil
	}
	glob := p.glob
	for strings.HasPrefix(glob, "**/**/") {
		glob = strings.TrimPrefix(glob, "**/")
	}
	if p.floating {
		return []string{sandbox.HidePattern(w.real, glob)}
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
			patterns = append(patterns, sandbox.HidePattern(w.real, glob))
		case in, !strings.Contains(glob, "**"):
			patterns = append(patterns, sandbox.HidePattern(lit, glob))
		}
	}
	return patterns
}
