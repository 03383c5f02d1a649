package permit

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// Words of programs that are not known, any of which may be a file.

// guesses are the places in the words of any command where a path may stand: whole, behind = : and @, behind the letter of an option. Of a program that is
// known, whole words are no guess.
func (r *reached) guesses() {
	p := programs()[r.cmd.Name]
	known := p.reads || p.last || p.writes
	if in := r.cmd.Input; in.Is && interpreter.Get().MatchString(r.cmd.Name) {
		r.guess(inCode(in.Text.Text), false)
	}
	for i, a := range r.cmd.Args {
		if !a.Known || a.Number || strings.HasPrefix(a.Text, "--exclude") { // kill $PPID; what is left out
			continue
		}
		if r.pattern(i) {
			r.guess(r.inCode(i), false)
			continue
		}
		var parts []string
		if !known {
			parts = append(parts, a.Text)
		}
		for _, piece := range strings.FieldsFunc(a.Text, func(c rune) bool { return strings.ContainsRune("=@:,", c) }) {
			if piece != a.Text {
				parts = append(parts, piece)
			}
		}
		if len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-' {
			parts = append(parts, a.Text[2:])
		}
		parts = append(parts, r.inCode(i)...)
		r.guess(parts, a.Glob)
	}
}

func (r *reached) guess(parts []string, glob bool) {
	for _, part := range parts {
		if part = strings.TrimPrefix(part, "file://"); part == "" || part == "." || strings.HasPrefix(part, "-") {
			continue
		}
		for _, p := range r.paths(shell.Word{Text: part, Known: true, Glob: glob, Source: part}) {
			p.guess = true
			r.reads = append(r.reads, p)
		}
	}
}

// inCode are the words of an argument that is a program for an interpreter.
func (r *reached) inCode(i int) []string {
	if !interpreter.Get().MatchString(r.cmd.Name) || !strings.ContainsAny(r.cmd.Args[i].Text, "'\"`( ") {
		return nil
	}
	return inCode(r.cmd.Args[i].Text)
}

// inCode are the words of a program: what is in quotes, mostly.
func inCode(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n'\"`()[]{}<>|;,=", c) })
}

// pattern reports whether the argument is the pattern or the program of a command that begins with one.
func (r *reached) pattern(i int) bool {
	if !programs()[r.cmd.Name].first {
		return false
	}
	for j, a := range r.cmd.Args[:i+1] {
		if a.Text == "-e" || a.Text == "-f" || !a.Known {
			return false
		}
		if !strings.HasPrefix(a.Text, "-") {
			return j == i
		}
	}
	return false
}
