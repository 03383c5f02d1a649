package permit

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// options are those that a program may have, by name ("-n", "--lines", "-name"), with what stands behind each. "-#" is a number: -20.
type options map[string]value

type value int

const (
	alone    value = iota // nothing
	attached              // maybe a value, in the same word
	valued                // a value, in the same word or the next
	filed                 // a file that is read, in the same word or the next
)

// parseOptions reads a list such as "bv n: f< u? # --lines= --file< --color? --quiet": letters, and names with their dashes, each maybe with a sign of what stands behind it.
func parseOptions(list string) options {
	kinds := map[byte]value{'?': attached, ':': valued, '=': valued, '<': filed}
	o := options{}
	for field := range strings.FieldsSeq(list) {
		if kind, has := kinds[field[len(field)-1]]; strings.HasPrefix(field, "-") && has {
			o[field[:len(field)-1]] = kind
			continue
		} else if strings.HasPrefix(field, "-") {
			o[field] = alone
			continue
		}
		for i := range len(field) {
			if kind, sign := kinds[field[i]]; sign {
				o["-"+field[i-1:i]] = kind
			} else {
				o["-"+field[i:i+1]] = alone
			}
		}
	}
	return o
}

// line is the words of a command, told apart.
type line struct {
	options  []option
	operands []shell.Word
}

type option struct {
	name     string
	value    shell.Word
	kind     value
	separate bool // the value is a word of its own
}

// split tells words apart. It fails when one is an option that is not among o. Of a program that runs what stands behind its options, it reads the front only.
func (o options) split(args []shell.Word, front bool) (l line, ok bool) {
	for i := 0; i < len(args); i++ {
		switch text := args[i].Text; {
		case text == "--":
			l.operands = append(l.operands, args[i+1:]...)
			return l, true
		case text == "-" || !strings.HasPrefix(text, "-"):
			if front {
				l.operands = args[i:]
				return l, true
			}
			l.operands = append(l.operands, args[i])
		default:
			more, ok := o.read(args[i:])
			if !ok {
				return l, false
			}
			l.options = append(l.options, more...)
			if more[len(more)-1].separate {
				i++
			}
		}
	}
	return l, true
}

// negative is a value that looks like an option and is none: of find -mtime, of head -n.
var negative = lazy.Regexp(`^-[0-9]+[a-zA-Z]?$`)

// read reads the options of the first word, with the value that may be the second.
func (o options) read(words []shell.Word) (found []option, ok bool) {
	w := words[0]
	next := func(name string, kind value) ([]option, bool) {
		v := option{name: name, kind: kind, separate: len(words) > 1}
		if v.separate {
			if v.value = words[1]; strings.HasPrefix(v.value.Text, "-") && !negative.Get().MatchString(v.value.Text) { // it may be an option after all
				return nil, false
			}
		}
		return append(found, v), true
	}
	part := func(text string) shell.Word {
		return shell.Word{Text: text, Known: true, Glob: w.Glob, Source: w.Source}
	}
	name, text, has := strings.Cut(w.Text, "=")
	if kind, known := o[name]; known && len(name) > 2 {
		switch {
		case has:
			return append(found, option{name: name, kind: kind, value: part(text)}), kind != alone
		case kind == valued || kind == filed:
			return next(name, kind)
		}
		return append(found, option{name: name, kind: kind}), true
	}
	for i := 1; i < len(w.Text); i++ {
		name := "-" + w.Text[i:i+1]
		kind, known := o[name]
		if !known && strings.Contains("0123456789", name[1:]) {
			kind, known = o["-#"]
		}
		switch rest := w.Text[i+1:]; {
		case !known:
			return nil, false
		case kind == alone:
			found = append(found, option{name: name})
		case rest == "" && kind != attached:
			return next(name, kind)
		default:
			return append(found, option{name: name, kind: kind, value: part(rest)}), true
		}
	}
	return found, true
}

// has reports whether one of the options, separated by spaces, is there.
func (l *line) has(names string) bool {
	for _, o := range l.options {
		if shell.Listed(names, o.name) {
			return true
		}
	}
	return false
}
