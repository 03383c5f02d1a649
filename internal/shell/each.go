package shell

import (
	"slices"
	"strings"
)

// What is run for each of many: xargs, find -exec, parallel.

// items splits what xargs reads.
func items(w Word, sep string) []Word {
	if !w.Known {
		return []Word{{Text: w.Text, Source: "what it reads"}}
	}
	fields := strings.Fields(w.Text)
	if sep != "" {
		fields = strings.Split(strings.TrimRight(w.Text, sep+"\n"), sep)
	}
	var out []Word
	for i, s := range fields {
		if i >= maxWords {
			return append(out, Word{})
		}
		if s == "" {
			continue
		}
		if sep == "" {
			s = strings.NewReplacer(`\`, "", `"`, "", "'", "").Replace(s)
		}
		out = append(out, Word{Text: s, Known: true, Glob: w.Glob})
	}
	return out
}

func runXargs(r *reader, f frame, c Command) []Word {
	replace, sep := "", ""
	in := f.choice.pick("stdin", f.in.alts)
	if f.in.alts == nil {
		in = Word{Known: true}
	}
	i := options(c.Args, "IndPLEsaJRS", "max-args max-procs delimiter arg-file max-lines max-chars eof process-slot-var")
	for j, a := range c.Args[:min(i, len(c.Args))] {
		value := func(flag string) (string, bool) {
			if a.Text == flag && j+1 < len(c.Args) {
				return c.Args[j+1].Text, true
			}
			return strings.CutPrefix(a.Text, flag)
		}
		switch {
		case strings.HasPrefix(a.Text, "-I"):
			replace, _ = value("-I")
		case strings.HasPrefix(a.Text, "-J"):
			replace, _ = value("-J")
		case a.Text == "-i" || a.Text == "--replace":
			replace = "{}"
		case strings.HasPrefix(a.Text, "--replace="):
			replace = strings.TrimPrefix(a.Text, "--replace=")
		case strings.HasPrefix(a.Text, "-d"):
			sep, _ = value("-d")
		case strings.HasPrefix(a.Text, "-0") || a.Text == "--null":
			sep = "\x00"
		case strings.HasPrefix(a.Text, "-a") || strings.HasPrefix(a.Text, "--arg-file"):
			in = Word{}
		}
	}
	if replace != "" && sep == "" {
		sep = "\n"
	}
	switch sep {
	case `\n`:
		sep = "\n"
	case `\0`:
		sep = "\x00"
	}
	if in.Glob && sep == "\x00" { // find -print0 is modelled by lines
		sep = "\n"
	}
	args := c.Args[min(i, len(c.Args)):]
	if len(args) == 0 {
		return f.in.alts
	}
	f = f.fork()
	f.in = stream{}
	list := items(in, sep)
	if replace == "" {
		if len(list) == 0 && in.Known && slices.ContainsFunc(c.Args[:i], func(w Word) bool { return w.Text == "-r" || w.Text == "--no-run-if-empty" }) {
			return nothing
		}
		r.exec(f, append(slices.Clip(args), list...), nil, nil, c.Source)
		return unknown
	}
	for _, item := range list {
		r.exec(f, substituted(args, replace, item), nil, nil, c.Source)
	}
	return unknown
}

// substituted puts item in the place of mark in each word.
func substituted(args []Word, mark string, item Word) []Word {
	out := slices.Clone(args)
	for i, a := range out {
		before, after, ok := strings.Cut(a.Text, mark)
		if !ok || !a.Known {
			continue
		}
		out[i] = Word{Text: before + item.Text, Known: item.Known, Glob: a.Glob || item.Glob, Source: a.Source}
		if item.Known {
			out[i].Text += strings.ReplaceAll(after, mark, item.Text)
		}
	}
	return out
}

// found says what find may find: the starting point and all below it, or the names that it asks for, at any depth.
func found(c Command) (words []Word, expr []Word) {
	args := c.Args
	for len(args) > 0 && args[0].Known && (args[0].Text == "-H" || args[0].Text == "-L" || args[0].Text == "-P" || strings.HasPrefix(args[0].Text, "-O")) {
		args = args[1:]
	}
	n := 0
	for n < len(args) && (!args[n].Known || !strings.HasPrefix(args[n].Text, "-") && args[n].Text != "(" && args[n].Text != "!") {
		n++
	}
	starts, expr := args[:n], args[n:]
	if n == 0 {
		starts = []Word{{Text: ".", Known: true}}
	}
	var names []string
	ors, filters := 0, 0
	for i, a := range expr {
		not := i > 0 && (expr[i-1].Text == "!" || expr[i-1].Text == "-not")
		switch a.Text {
		case "-o", "-or", ",":
			ors++
		case "-name", "-iname":
			if i+1 < len(expr) && !not && expr[i+1].Known && !strings.Contains(expr[i+1].Text, "/") {
				names = append(names, expr[i+1].Text)
			}
			filters++
		case "-path", "-wholename", "-regex", "-ipath", "-type", "-mtime", "-mmin", "-ctime", "-atime", "-amin", "-cmin", "-size", "-empty", "-newer", "-user", "-perm", "-mindepth", "-links", "-group", "-xtype", "-maxdepth":
			filters++
		}
	}
	if len(names) <= ors {
		names = nil
	}
	for _, s := range starts {
		switch {
		case !s.Known || filters == 0:
			words = append(words, s)
		case len(names) == 0:
			words = append(words, Word{Text: strings.TrimSuffix(s.Text, "/") + "/**/*", Known: true, Glob: true})
		}
		for _, name := range names {
			if s.Known {
				words = append(words, Word{Text: strings.TrimSuffix(s.Text, "/") + "/**/" + name, Known: true, Glob: true})
			}
		}
	}
	return words, expr
}

func runFind(r *reader, f frame, c Command) []Word {
	words, expr := found(c)
	f.in = stream{}
	prints := true
	for i := 0; i < len(expr); i++ {
		a := expr[i]
		switch a.Text {
		case "-delete":
			r.exec(f.relabel("find -delete"), append([]Word{lit("rm"), lit("-rf"), lit("--")}, words...), nil, nil, c.Source)
			prints = false
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(expr) && expr[end].Text != ";" && (expr[end].Text != "+" || expr[end-1].Text != "{}") {
				end++
			}
			for _, w := range words {
				r.exec(f.relabel("find "+a.Text), substituted(expr[i+1:end], "{}", w), nil, nil, c.Source)
			}
			i, prints = end, false
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(expr) {
				r.show(f.relabel("find "+a.Text), Command{Name: ":", Path: lit(":"), Redirects: []Redirect{{Op: ">", Path: expr[i+1], Write: true}}, Source: c.Source})
			}
			prints = false
		case "-printf", "-ls":
			prints = false
		}
	}
	if !prints {
		return unknown
	}
	return lines(words)
}

func lit(s string) Word { return Word{Text: s, Known: true} }

// lines are words as a program prints them, one a line.
func lines(words []Word) []Word {
	out := Word{Known: true, Glob: true}
	for _, w := range words {
		if !w.Known {
			return unknown
		}
		out.Text += w.Text + "\n"
	}
	return []Word{out}
}

func runParallel(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "jPNnLISdaC", "jobs max-procs delimiter arg-file colsep delay joblog results sshlogin timeout retries tmpdir workdir"), len(c.Args))
	args := c.Args[i:]
	in := []Word{{}}
	if len(f.in.alts) == 1 {
		in = items(f.in.alts[0], "\n")
	}
	for j, a := range args {
		if strings.HasPrefix(a.Text, ":::") {
			in, args = args[j+1:], args[:j]
			break
		}
	}
	f.in = stream{}
	for _, item := range in {
		words := substituted(args, "{}", item)
		if !slices.ContainsFunc(args, func(w Word) bool { return strings.Contains(w.Text, "{}") }) {
			words = append(words, item)
		}
		r.joined(f, words)
	}
	return unknown
}
