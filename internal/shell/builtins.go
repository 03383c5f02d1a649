package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The shell's own commands that change what comes after them: where it runs, its variables, whether it comes to it.

// chdir changes the directory of f.
func (r *reader) chdir(f frame, to Word) {
	old := f.dir()
	f.sc.set("OLDPWD", variable{alts: []Word{old}})
	next := Word{}
	switch {
	case !to.Known:
	case path.IsAbs(to.Text):
		next = Word{Text: path.Clean(to.Text), Known: true, Glob: to.Glob}
	case old.Known:
		next = Word{Text: path.Join(old.Text, to.Text), Known: true, Glob: to.Glob || old.Glob}
	}
	f.sc.set(dirKey, variable{alts: []Word{next}})
	if _, ok := f.sc.lookup("PWD"); ok {
		f.sc.set("PWD", variable{alts: []Word{next}})
	}
}

func runCd(r *reader, f frame, c Command) []Word {
	i := options(c.Args, "", "")
	if i > 0 && c.Args[i-1].Text == "-" {
		i--
	}
	var to Word
	switch {
	case i < len(c.Args) && c.Args[i].Known && c.Args[i].Text == "-":
		to = f.choice.pick("OLDPWD", r.variable(f, "OLDPWD").alts)
	case i < len(c.Args):
		to = c.Args[i]
		if c.Name == "pushd" && strings.HasPrefix(to.Text, "+") {
			to = Word{}
		}
	case c.Name == "pushd":
		to = f.choice.pick("OLDPWD", r.variable(f, "OLDPWD").alts)
	default:
		to = f.choice.pick("HOME", r.variable(f, "HOME").alts)
	}
	if v, ok := f.sc.lookup("CDPATH"); ok && (len(v.alts) != 1 || !v.alts[0].Known || v.alts[0].Text != "") && to.Known && !strings.HasPrefix(to.Text, "/") && !strings.HasPrefix(to.Text, ".") {
		to = Word{}
	}
	for _, a := range c.Env {
		if a.Name == "CDPATH" {
			to = Word{}
		}
	}
	if to.Known && to.Text == "" {
		return nothing
	}
	if c.Name == "pushd" {
		stack, _ := f.sc.lookup("\x00stack")
		f.sc.set("\x00stack", variable{list: append(slices.Clip(stack.list), f.dir()), array: true})
	}
	r.chdir(f, to)
	return nothing
}

func runPopd(r *reader, f frame, _ Command) []Word {
	to := Word{}
	if stack, _ := f.sc.lookup("\x00stack"); len(stack.list) > 0 {
		to = stack.list[len(stack.list)-1]
		f.sc.set("\x00stack", variable{list: stack.list[:len(stack.list)-1], array: true})
	}
	r.chdir(f, to)
	return nothing
}

func runExit(_ *reader, f frame, _ Command) []Word {
	f.sc.gone = true
	return nothing
}

func runReturn(_ *reader, f frame, _ Command) []Word {
	if f.fn != nil {
		f.fn.leave(f.sc)
	}
	return nothing
}

func runBreak(_ *reader, f frame, c Command) []Word {
	if f.loop != nil {
		f.loop.rounds = f.loop.rounds || c.Name == "continue" || len(c.Args) > 0
		f.loop.leave(f.sc)
	}
	return nothing
}

func runShift(r *reader, f frame, c Command) []Word {
	args, ok := r.params(f)
	n := 1
	if len(c.Args) > 0 {
		n = len(c.Args[0].Text)
		ok = ok && c.Args[0].Text == strings.Repeat("1", n)
	}
	f.sc.set(argsKey, variable{list: args[min(n, len(args)):], array: ok, alts: unknown})
	return nothing
}

func runSet(_ *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		if a.Text == "--" || a.Text != "" && a.Text[0] != '-' && a.Text[0] != '+' && (i == 0 || !strings.HasSuffix(c.Args[i-1].Text, "o")) {
			if a.Text == "--" {
				i++
			}
			f.sc.set(argsKey, variable{list: c.Args[i:], array: true, alts: unknown})
			break
		}
	}
	return nothing
}

func runUnset(_ *reader, f frame, c Command) []Word {
	for _, a := range c.Args {
		if syntax.ValidName(a.Text) && a.Known {
			f.sc.set(a.Text, variable{alts: nothing})
		}
	}
	return nothing
}

// runRead sets variables to what is read.
func runRead(r *reader, f frame, c Command) []Word {
	short := "adinNptu"
	if c.Name != "read" {
		short = "dnOsuCc"
	}
	i := options(c.Args, short, "")
	in := f.choice.pick("stdin", f.in.alts)
	if f.in.alts == nil && !f.in.file {
		in = Word{Known: true}
	}
	if in.Known {
		list := items(in, "\n")
		if len(list) == 1 {
			in = list[0]
		} else if len(list) > 1 {
			in = Word{}
			if list[0].Glob {
				in = list[0] // any of them
				for _, w := range list[1:] {
					if path.Dir(w.Text) != path.Dir(in.Text) {
						in = Word{}
					}
				}
			}
		}
	}
	for j, a := range c.Args {
		if a.Text == "-C" && c.Name != "read" && j+1 < len(c.Args) { // mapfile calls it
			r.text(f, c.Args[j+1])
		}
	}
	names := c.Args[min(i, len(c.Args)):]
	for j, a := range c.Args {
		if a.Text == "-a" && j+1 < len(c.Args) {
			names = append(slices.Clip(names), c.Args[j+1])
		}
	}
	if len(names) == 0 {
		names = []Word{lit("REPLY")}
	}
	ifs := " \t\n"
	if v, ok := f.sc.lookup("IFS"); ok && len(v.alts) == 1 && v.alts[0].Known {
		ifs = v.alts[0].Text
	}
	for _, a := range c.Env {
		if a.Name == "IFS" && a.Value.Known {
			ifs = a.Value.Text
		}
	}
	fields := []Word{in}
	if len(names) > 1 {
		fields = nil
		if in.Known {
			for s := range strings.FieldsFuncSeq(in.Text, func(c rune) bool { return strings.ContainsRune(ifs, c) }) {
				fields = append(fields, Word{Text: s, Known: true, Glob: in.Glob})
			}
		}
	}
	for j, n := range names {
		if !n.Known {
			continue
		}
		v := Word{}
		if c.Name == "read" && j == len(names)-1 && len(fields) > len(names) { // the rest
			rest := make([]string, 0, len(fields))
			for _, w := range fields[j:] {
				rest = append(rest, w.Text)
			}
			v = Word{Text: strings.Join(rest, ifs[:min(1, len(ifs))]), Known: true, Glob: in.Glob}
		} else if c.Name == "read" && (j < len(fields)-1 || j < len(fields) && len(fields) <= len(names)) {
			v = fields[j]
		}
		r.sets(f, n.Text, []Word{v})
	}
	return nothing
}

// runPrintf sets the variable of printf -v.
func runPrintf(r *reader, f frame, c Command) []Word {
	if len(c.Args) > 2 && c.Args[0].Text == "-v" {
		out := r.prints(f, Command{Name: "printf", Args: c.Args[2:]})
		r.sets(f, c.Args[1].Text, out)
		return nothing
	}
	return r.prints(f, c)
}

// runExport sets variables where export is not a keyword: behind builtin, in a word.
func runExport(r *reader, f frame, c Command) []Word {
	for _, a := range c.Args {
		if name, v, ok := assignment(a); ok {
			r.keepAssigns(f, []Assign{{name, v}})
		}
	}
	return nothing
}
