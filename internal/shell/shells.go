package shell

import (
	"slices"
	"strings"
)

// What shells run: the text after -c, what comes in at standard input, a file, eval, trap and aliases.

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "rbash": true, "fish": true, "ksh93": true, "pdksh": true, "yash": true, "hush": true, "sash": true, "csh": true, "tcsh": true, "osh": true, "xonsh": true, "elvish": true, "nu": true}

// runShell reads what a shell is given: -c, standard input, or a file.
func runShell(r *reader, f frame, c Command) []Word {
	f = f.fork()
	f.fn, f.loop = nil, nil
	i, isC, isS := 0, false, false
options:
	for ; i < len(c.Args); i++ {
		a := c.Args[i]
		switch {
		case a.Known && (a.Text == "--" || a.Text == "-"):
			i++
			break options
		case !a.Known || len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+':
			break options
		case a.Text == "--rcfile" || a.Text == "--init-file":
			if i++; i < len(c.Args) {
				r.run(f, c.Args[i])
			}
		case a.Text == "--command" || a.Text == "--init-command": // fish
			isC = true
		case strings.HasPrefix(a.Text, "--command="):
			return r.text(f, Word{Text: strings.TrimPrefix(a.Text, "--command="), Known: true})
		case a.Text == "--version" || a.Text == "--help":
			return opaque
		case strings.HasPrefix(a.Text, "--"):
		default:
			isC = isC || a.Text[0] == '-' && strings.ContainsRune(a.Text, 'c')
			isS = isS || a.Text[0] == '-' && strings.ContainsRune(a.Text, 's')
			if strings.ContainsAny(a.Text, "oO") {
				i++
			}
		}
	}
	i = min(i, len(c.Args))
	rest := c.Args[i:]
	switch {
	case isC:
		if len(rest) == 0 {
			return nothing
		}
		f = f.relabel(c.Name + " -c")
		r.given(f, rest[1:])
		return r.text(f, rest[0])
	case isS || len(rest) == 0 || stdin(rest[0]):
		if len(rest) > 0 && !isS {
			rest = rest[1:]
		}
		f.sc.set(argsKey, variable{list: rest, array: true, alts: unknown})
		return r.stdin(f)
	}
	f.sc.set(argsKey, variable{list: rest[1:], array: true, alts: unknown})
	return r.run(f, rest[0])
}

// given sets what a script knows as $0, $1, ….
func (r *reader) given(f frame, args []Word) {
	if len(args) > 0 {
		f.sc.set(argZero, variable{alts: args[:1]})
		args = args[1:]
	}
	f.sc.set(argsKey, variable{list: args, array: true, alts: unknown})
}

func (f frame) relabel(by string) frame {
	f.by = slices.Clone(f.by)
	f.by[len(f.by)-1] = by
	return f
}

// stdin reports whether a word names standard input.
func stdin(w Word) bool {
	return w.Known && slices.Contains([]string{"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, w.Text)
}

// stdin reads standard input as a script.
func (r *reader) stdin(f frame) []Word {
	if f.in.file || f.in.alts == nil {
		return unknown // a file is a program like any other; without input there is no script
	}
	in := f.in
	f.in = stream{}
	out := nothing
	for _, w := range in.alts {
		if w.Known && !w.Glob {
			out = either(out, r.text(f, w))
			continue
		}
		r.doubt("%s runs what comes out of a pipe, which is not known", f.by[len(f.by)-1])
		out = unknown
	}
	return out
}

// run reads a file as a script, if the script at hand wrote it. Other files are programs, of which nothing is said.
func (r *reader) run(f frame, p Word) []Word {
	name, ok := abs(f, p)
	if !ok {
		if !p.Known {
			r.doubt("%s runs the file %s, which is not known", f.by[len(f.by)-1], short(p, ""))
		}
		return unknown
	}
	alts, written := r.files[name]
	switch {
	case written:
		out := nothing
		for _, w := range alts {
			out = either(out, r.once(f, name, w))
		}
		return out
	case strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/"):
		r.doubt("%s runs %s, which is not known", f.by[len(f.by)-1], name)
	}
	return unknown
}

// once reads what is in a file, unless it is being read: a script that writes and starts itself does the same again.
func (r *reader) once(f frame, name string, w Word) []Word {
	key := name + "\x00" + w.Text
	if r.reading[key] {
		return unknown
	}
	if r.reading == nil {
		r.reading = map[string]bool{}
	}
	r.reading[key] = true
	defer delete(r.reading, key)
	return r.text(f, w)
}

func runEval(r *reader, f frame, c Command) []Word {
	s := Word{Known: true, Source: c.Source}
	args := c.Args
	if len(args) > 0 && args[0].Text == "--" {
		args = args[1:]
	}
	for i, a := range args {
		if i > 0 {
			s.Text += " "
		}
		s.Text += a.Text
		s.Known = s.Known && a.Known
	}
	return r.text(f, s)
}

func runTrap(r *reader, f frame, c Command) []Word {
	i := options(c.Args, "", "")
	if len(c.Args)-i >= 2 {
		r.text(f.fork(), c.Args[i])
	}
	return nothing
}

func runAlias(r *reader, f frame, c Command) []Word {
	for _, a := range c.Args {
		if name, value, ok := strings.Cut(a.Text, "="); ok {
			r.named = true
			f.sc.set(aliasKey(name), variable{alts: []Word{{Text: value, Known: a.Known, Source: a.Source}}})
		}
	}
	return nothing
}

func runUnalias(*reader, frame, Command) []Word { return nothing } // it can only take away; what is read twice is read strictly

func runSource(r *reader, f frame, c Command) []Word {
	i := options(c.Args, "p", "")
	if i >= len(c.Args) {
		return nothing
	}
	if stdin(c.Args[i]) {
		return r.stdin(f)
	}
	return r.run(f, c.Args[i])
}
