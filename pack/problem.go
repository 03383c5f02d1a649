package pack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// Problem is something wrong with a pack; as a warning, something in it that has no effect.
type Problem struct {
	Path   string // as in prompts.chat.validators[0].type; $ is the whole file. What is missing has the path where it would be
	Line   int    // from 1; 0: not known
	Column int    // in characters, from 1
	Reason string
	Remedy string // what to do about it; may be empty
}

// String is one line: path, reason, remedy and place.
func (p Problem) String() string {
	s := p.Path + ": " + p.Reason
	if p.Remedy != "" {
		s += ": " + p.Remedy
	}
	if p.Line > 0 {
		s += fmt.Sprintf(" (line %d, column %d)", p.Line, p.Column)
	}
	return s
}

// Error is what is wrong with a pack, all of it. Its class is errdefs.Validation.
type Error struct {
	File     string    // as it was named; "" for bytes
	Problems []Problem // at least one
	Warnings []Problem
}

// Error has a line for each problem.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("pack: load")
	if e.File != "" {
		b.WriteString(" " + e.File)
	}
	if len(e.Problems) == 1 {
		return b.String() + ": " + e.Problems[0].String()
	}
	fmt.Fprintf(&b, ": %d problems:", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Unwrap gives the class.
func (e *Error) Unwrap() error { return errdefs.Validation }

// path leads to a value: names (string) and indexes (int).
type path []any

var plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// String is the path as people write it.
func (p path) String() string {
	if len(p) == 0 {
		return "$"
	}
	var b strings.Builder
	for i, step := range p {
		name, ok := step.(string)
		switch {
		case !ok:
			fmt.Fprintf(&b, "[%d]", step)
		case !plainName.MatchString(name):
			fmt.Fprintf(&b, "[%q]", clip(name))
		case i == 0:
			b.WriteString(name)
		default:
			b.WriteString("." + name)
		}
	}
	return b.String()
}

// maxProblems keeps a hostile file from filling memory and screen.
const maxProblems = 200

// report collects what is wrong with a file.
type report struct {
	source             *source
	root               *node
	problems, warnings []Problem
}

// problem is about the value at a path, or about one that should be there.
func (r *report) problem(p path, reason, remedy string) {
	if !r.full() {
		r.at(r.offset(p), p.String(), reason, remedy)
	}
}

// full says that enough is wrong: to look for more places would only take time.
func (r *report) full() bool { return len(r.problems) >= maxProblems }

// at is a problem at an offset. What is below a value that is wrong already, or it again, is not told.
func (r *report) at(offset int, at, reason, remedy string) {
	if r.full() {
		return
	}
	if r.covered(at) {
		return
	}
	line, column := r.source.place(offset)
	r.problems = append(r.problems, Problem{at, line, column, reason, remedy})
}

// covered reports whether the value at a path, or one that it is below, is wrong already.
func (r *report) covered(at string) bool {
	return slices.ContainsFunc(r.problems, func(known Problem) bool {
		rest, below := strings.CutPrefix(at, known.Path)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (r *report) warn(p path, reason, remedy string) {
	if len(r.warnings) < maxProblems {
		line, column := r.source.place(r.offset(p))
		r.warnings = append(r.warnings, Problem{p.String(), line, column, reason, remedy})
	}
}

// wrong reports whether something at a path, or below it, is a problem already.
func (r *report) wrong(p path) bool {
	at := p.String()
	return slices.ContainsFunc(r.problems, func(known Problem) bool {
		rest, below := strings.CutPrefix(known.Path, at)
		return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// find gives the value at a path, or nil.
func (r *report) find(p path) *node {
	n := r.root
	for _, step := range p {
		switch step := step.(type) {
		case string:
			n = n.member(step)
		case int:
			n = n.element(step)
		}
	}
	return n
}

// offset is where a value stands, or what it should be in.
func (r *report) offset(p path) int {
	for ; ; p = p[:len(p)-1] {
		if n := r.find(p); n != nil {
			return n.at
		}
		if len(p) == 0 {
			return 0
		}
	}
}

// sorted puts problems in the order of the file.
func sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return ps
}

// meant is a remedy for a name that is not there.
func meant(name string, names []string, otherwise string) string {
	if found := near.Names(name, names); len(found) > 0 {
		return "did you mean " + found[0] + "?"
	}
	return otherwise
}

// clip keeps a text of somebody else's from filling a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}
