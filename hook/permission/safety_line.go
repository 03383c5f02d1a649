package permission

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// The words of a command: its options, their values, its operands.

// A line is the words of a program, options apart from operands.
type line struct {
	*shell.Command
	options  []string
	values   map[string]shell.Word // of options that have one
	operands []shell.Word

	// Room for the few that most lines have.
	someOptions  [4]string
	someOperands [4]shell.Word
}

// parse splits words. valued are options that take the next word, without their value glued to them: "-t --target-directory".
func parse(c *shell.Command, valued string) *line {
	l := &line{Command: c}
	l.options, l.operands = l.someOptions[:0], l.someOperands[:0]
	for i := 0; i < len(c.Args); i++ {
		a := c.Args[i]
		name, v, eq := strings.Cut(a.Text, "=")
		switch {
		case a.Known && a.Text == "--":
			l.operands = append(l.operands, c.Args[i+1:]...)
			return l
		case !strings.HasPrefix(a.Text, "-") || a.Text == "-":
			l.operands = append(l.operands, a)
		case !a.Known && !eq:
			l.operands = append(l.operands, a)
		case shell.Listed(valued, a.Text):
			l.options = append(l.options, a.Text)
			if i++; i < len(c.Args) {
				l.give(a.Text, c.Args[i])
			}
		case eq && strings.HasPrefix(a.Text, "--"):
			l.options = append(l.options, name)
			l.give(name, shell.Word{Text: v, Known: a.Known, Glob: a.Glob, Source: a.Source})
		default:
			l.options = append(l.options, a.Text)
			if len(a.Text) > 2 && a.Text[1] != '-' {
				if shell.Listed(valued, a.Text[:2]) { // -tDIR
					l.give(a.Text[:2], shell.Word{Text: a.Text[2:], Known: a.Known, Glob: a.Glob, Source: a.Source})
				} else if last := "-" + a.Text[len(a.Text)-1:]; shell.Listed(valued, last) && i+1 < len(c.Args) { // -rt DIR
					i++
					l.give(last, c.Args[i])
				}
			}
		}
	}
	return l
}

func (l *line) give(name string, w shell.Word) {
	if l.values == nil {
		l.values = map[string]shell.Word{}
	}
	l.values[name] = w
}

// has reports whether one of the options is there: long ones as a whole (or shortened, as getopt has it), letters also in a group.
func (l *line) has(names ...string) bool {
	for _, o := range l.options {
		for _, n := range names {
			if o == n || len(n) == 2 && n[0] == '-' && len(o) > 2 && o[0] == '-' && o[1] != '-' && strings.IndexByte(o[1:], n[1]) >= 0 ||
				len(o) > 4 && strings.HasPrefix(o, "--") && strings.HasPrefix(n, o) {
				return true
			}
		}
	}
	return false
}

func (l *line) value(names ...string) (shell.Word, bool) {
	for _, n := range names {
		if w, ok := l.values[n]; ok {
			return w, true
		}
	}
	return shell.Word{}, false
}

func (l *line) first() string {
	if len(l.operands) > 0 {
		return l.operands[0].Text
	}
	return ""
}

// on judges the effect of a program on paths.
func (j *examiner) on(c *shell.Command, what effect, paths ...shell.Word) {
	for _, p := range paths {
		j.path(c.Name, what, p, c.Dir)
	}
}

// onValue judges the effect on the value of an option.
func (j *examiner) onValue(l *line, what effect, names ...string) {
	if w, ok := l.value(names...); ok && w.Text != "-" {
		j.on(l.Command, what, w)
	}
}

// onOutput judges the one file that a program writes. A name of which only the directory in front is known is taken for one in there.
func (j *examiner) onOutput(l *line, names ...string) {
	w, ok := l.value(names...)
	if dir := strings.LastIndexByte(w.Text, '/'); ok && !w.Known && dir > 0 {
		front := shell.Word{Text: w.Text[:dir], Known: true, Glob: w.Glob}
		if at, _ := j.place(overwrites, front, l.Dir); at == inside && !strings.HasPrefix(w.Text, "/") {
			return
		}
	}
	j.onValue(l, overwrites, names...)
}

func helps(c *shell.Command) bool {
	if len(c.Args) != 1 {
		return false
	}
	switch c.Args[0].Text {
	case "--help", "--version", "-V", "--usage":
		return true
	}
	return false
}

// verb finds the first of a command's words that is one of words; "" for none.
func verb(c *shell.Command, words string) string {
	for _, a := range c.Args {
		if shell.Listed(words, a.Text) {
			return a.Text
		}
	}
	return ""
}
