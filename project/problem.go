package project

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
)

// Place is where something is written. File is relative to the project with slashes, begins with ~/ for the user's files, and is "overrides" for what the program gave.
type Place struct {
	File   string
	Line   int // from 1; 0: the whole file
	Column int // in characters, from 1; 0: the whole line
}

// String is file:line:column, as far as it is known.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is something that was read and has no effect, or not the one that somebody may expect.
type Problem struct {
	Place
	Reason string // what is wrong
	Remedy string // what to do about it; may be empty
}

// String is a line for a person: place, reason and remedy.
func (p Problem) String() string {
	s := p.Place.String() + ": " + p.Reason
	if p.Remedy != "" {
		s += ": " + p.Remedy
	}
	return s
}

// failure makes the error of a settings file that can't count as it stands.
func (p Problem) failure() error { return errdefs.Validation.Errorf("project: %s", p) }

// unknownName is the problem of a key or field that we don't have.
func unknownName(at Place, what, name string, known []string) Problem {
	p := Problem{at, fmt.Sprintf("there is no %s %q: it has no effect", what, clip(name)), "remove it"}
	if names := near.Names(name, known); len(names) > 0 {
		p.Remedy = fmt.Sprintf("did you mean %s?", names[0])
	}
	return p
}

// clip keeps a text of somebody else's from filling a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return s
}

// maxProblems keeps a hostile file from filling memory and screen.
const maxProblems = 500

// report collects problems and failures while files are read.
type report struct {
	problems []Problem
	errs     []error
}

func (r *report) problem(p Problem) {
	if len(r.problems) < maxProblems && !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

func (r *report) fail(p Problem) {
	if len(r.errs) < maxProblems {
		r.errs = append(r.errs, p.failure())
	}
}

func (r *report) err() error { return errors.Join(r.errs...) }

// oneLine is a text with its white space as single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
