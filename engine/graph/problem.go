package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// A Problem is something that is wrong with a definition, or, with Warning, something that may be.
type Problem struct {
	Path    string // where, such as nodes[3].config.prompt; $ is the whole definition
	Line    int    // in the file, from 1; 0: not known
	Reason  string
	Fix     string // what to do about it; may be empty
	Warning bool
}

// String is one line: path, reason, remedy and place.
func (p Problem) String() string {
	s := p.Path + ": " + p.Reason
	if p.Fix != "" {
		s += ": " + p.Fix
	}
	if p.Line > 0 {
		s += fmt.Sprintf(" (line %d)", p.Line)
	}
	return s
}

// Error is what is wrong with a definition, all of it, with its warnings. Its class is errdefs.Validation.
type Error struct {
	Name     string    // of the graph, or its file
	Problems []Problem // those that are no warnings first, at least one
}

// Error has a line for each problem that is no warning.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph: %s:", e.Name)
	for _, p := range e.Problems {
		if !p.Warning {
			b.WriteString("\n  " + p.String())
		}
	}
	return b.String()
}

// Class is errdefs.Validation.
func (e *Error) Class() *errdefs.Class { return errdefs.Validation }

// Is makes errors.Is(err, errdefs.Validation) true.
func (e *Error) Is(target error) bool { return target == error(errdefs.Validation) }

// problems collects what is wrong.
type problems struct {
	all   []Problem
	lines map[string]int // of paths, when they are known
}

func (p *problems) add(path, fix, format string, args ...any) {
	p.all = append(p.all, Problem{Path: path, Line: lineOf(p.lines, path), Reason: fmt.Sprintf(format, args...), Fix: fix})
}

func (p *problems) warn(path, fix, format string, args ...any) {
	p.add(path, fix, format, args...)
	p.all[len(p.all)-1].Warning = true
}

// failed reports whether there is a problem that is no warning.
func (p *problems) failed() bool {
	return slices.ContainsFunc(p.all, func(p Problem) bool { return !p.Warning })
}

// err is nil when there are warnings at most.
func (p *problems) err(name string) error {
	if !p.failed() {
		return nil
	}
	if name == "" {
		name = "a graph without a name"
	}
	return &Error{Name: name, Problems: p.sorted()}
}

// sorted are all problems, warnings last, in the order of their lines.
func (p *problems) sorted() []Problem {
	all := slices.Clone(p.all)
	slices.SortStableFunc(all, func(a, b Problem) int {
		switch {
		case a.Warning == b.Warning:
			return a.Line - b.Line
		case a.Warning:
			return 1
		}
		return -1
	})
	return all
}

// lineOf is the line of a path, or of the nearest one above it that has one.
func lineOf(lines map[string]int, path string) int {
	for path != "" {
		if n, ok := lines[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return lines["$"]
}

// meant is how a name that nobody knows is mended.
func meant(name string, known []string, otherwise string) string {
	if like := near.Names(name, known); len(like) > 0 {
		return "did you mean " + like[0] + "?"
	}
	return otherwise
}
