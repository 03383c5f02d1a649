package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A runner reads what a program runs, given the frame that names the program.
type runner func(r *reader, f frame, c Command) []Word

// A wrapper runs the command that its words end with.
type wrapper struct {
	short  string // options of one letter that take a value
	long   string // long options that take the next word as their value
	skip   int    // words between the options and the command
	assign bool   // NAME=value may stand in front of the command
}

// wrappers are the programs that run the rest of their words.
var wrappers = map[string]wrapper{
	"nice": {short: "n", long: "adjustment"}, "ionice": {short: "cnpPu", long: "class classdata pid"}, "nohup": {}, "setsid": {},
	"timeout": {short: "sk", long: "signal kill-after", skip: 1}, "gtimeout": {short: "sk", long: "signal kill-after", skip: 1},
	"command": {}, "builtin": {}, "exec": {short: "a"}, "time": {short: "fo", long: "format output"}, "chrt": {short: "TPD", skip: 1}, "taskset": {skip: 1},
	"stdbuf": {short: "ioe", long: "input output error"}, "unbuffer": {}, "sudo": {short: "ugpCcrtTUDRh", long: "user group prompt close-from role type command-timeout other-user chdir chroot host", assign: true},
	"doas": {short: "uC"}, "pkexec": {long: "user"}, "sg": {skip: 1}, "chroot": {long: "userspec groups", skip: 1}, "unshare": {short: "RwSG", long: "root wd setuid setgid"}, "nsenter": {short: "tSG", long: "target setuid setgid"},
	"setarch": {skip: 1}, "linux32": {}, "linux64": {}, "i386": {}, "strace": {short: "oeaspPuSEIbOX", long: "output trace string-limit attach"}, "ltrace": {short: "oeasplnuxF"}, "valgrind": {}, "perf": {skip: 1},
	"fakeroot": {short: "lisb"}, "dbus-run-session": {}, "caffeinate": {short: "tw"}, "numactl": {short: "CNmpi"}, "prlimit": {}, "setpriv": {}, "systemd-run": {short: "pMHutG", long: "unit property machine uid gid slice description working-directory"},
	"systemd-inhibit": {}, "catchsegv": {}, "rlwrap": {}, "proxychains": {short: "f"}, "proxychains4": {short: "f"}, "torsocks": {}, "firejail": {}, "xvfb-run": {short: "nsefpw"}, "busybox": {}, "toybox": {}, "entr": {},
	"npx": {short: "p", long: "package"}, "bunx": {}, "uvx": {long: "from with python"}, "pipx": {skip: 1}, "cross-env": {assign: true}, "dotenv": {short: "ef"}, "chronic": {}, "ts": {}, "eatmydata": {}, "ccache": {}, "distcc": {}, "cpulimit": {short: "lpPe"}, "daemonize": {short: "acdeEluop"},
	"start-stop-daemon": {short: "pxnucsgkRdPI"}, "aa-exec": {short: "pn"}, "runcon": {short: "utrl", skip: 1}, "hyperfine": {}, "gdb": {short: "x"}, "rtk": {},
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "rbash": true, "fish": true, "ksh93": true, "pdksh": true, "yash": true, "hush": true, "sash": true}

// runners are the programs that run something else than the rest of their words. It is filled by init, since they run each other.
var runners map[string]runner

func init() {
	runners = map[string]runner{
		"env": runEnv, "eval": runEval, "trap": runTrap, "alias": runAlias, "unalias": runUnalias, "source": runSource, ".": runSource, "xargs": runXargs, "find": runFind, "gfind": runFind,
		"cd": runCd, "pushd": runCd, "popd": runPopd, "exit": runExit, "return": runReturn, "break": runBreak, "continue": runBreak, "shift": runShift, "set": runSet, "unset": runUnset, "read": runRead, "mapfile": runRead, "readarray": runRead, "getopts": runRead,
		"su": runSu, "runuser": runSu, "watch": runWatch, "flock": runFlock, "script": runDashC, "parallel": runParallel, "ssh": runSSH, "tee": runTee, "printf": runPrintf, "export": runExport,
		"curl": runFetch, "wget": runFetch, "tmux": runLast, "screen": runLast,
	}
	for name := range shells {
		runners[name] = runShell
	}
	for name, w := range wrappers {
		runners[name] = func(r *reader, f frame, c Command) []Word { return r.unwrap(f, c, w) }
	}
}

// options gives the index of the first word behind the options.
func options(args []Word, short, long string) int {
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Known || len(a.Text) < 2 || a.Text[0] != '-' && a.Text[0] != '+':
			return i
		case a.Text == "--":
			return i + 1
		case strings.HasPrefix(a.Text, "--"):
			if listed(long, a.Text[2:]) {
				i++
			}
		default:
			if j := strings.IndexAny(a.Text[1:], short); short != "" && j >= 0 && j == len(a.Text)-2 {
				i++ // the value is the next word; otherwise it is the rest of this one
			}
		}
	}
	return i
}

// listed reports whether a word is among those of a list separated by spaces.
func listed(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

func assignment(w Word) (name string, v Word, ok bool) {
	name, value, ok := strings.Cut(w.Text, "=")
	return name, Word{Text: value, Known: w.Known, Glob: w.Glob, Source: w.Source}, ok && syntax.ValidName(name)
}

func (r *reader) unwrap(f frame, c Command, w wrapper) []Word {
	i := options(c.Args, w.short, w.long)
	if c.Name == "command" && i > 0 && strings.ContainsAny(c.Args[0].Text, "vV") {
		return r.prints(f, Command{Name: "which", Args: c.Args[i:]})
	}
	var env []Assign
	for w.assign && i < len(c.Args) {
		name, v, ok := assignment(c.Args[i])
		if !ok {
			break
		}
		env = append(env, Assign{name, v})
		i++
	}
	if c.Name == "hyperfine" || c.Name == "gdb" {
		return r.strings(f, c)
	}
	i += w.skip
	if i < len(c.Args) && c.Args[i].Text == "--" && c.Args[i].Known {
		i++
	}
	if i >= len(c.Args) {
		return nothing
	}
	g := f.fork()
	for _, a := range env {
		g.sc.set(a.Name, variable{alts: []Word{a.Value}})
	}
	return r.exec(g, c.Args[i:], env, nil, c.Source)
}

// strings reads the words that are scripts of programs that take several.
func (r *reader) strings(f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case c.Name == "hyperfine" && !strings.HasPrefix(a.Text, "-"):
			r.text(f, a)
		case c.Name == "gdb" && i > 0 && slices.Contains([]string{"-ex", "-iex", "--eval-command"}, c.Args[i-1].Text):
			for _, p := range []string{"shell ", "!", "pipe "} {
				if s, ok := strings.CutPrefix(a.Text, p); ok {
					r.text(f, Word{Text: s, Known: a.Known})
				}
			}
		case c.Name == "gdb" && i > 0 && c.Args[i-1].Text == "--args":
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return unknown
}

func runEnv(r *reader, f frame, c Command) []Word {
	g := f.fork()
	var env []Assign
	args := c.Args
	for len(args) > 0 {
		a := args[0]
		name, v, ok := assignment(a)
		switch {
		case a.Known && (strings.HasPrefix(a.Text, "-S") || strings.HasPrefix(a.Text, "--split-string") || strings.HasPrefix(a.Text, "-vS")):
			s := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(a.Text, "--split-string"), "-vS"), "-S"), "=")
			args = args[1:]
			if s == "" && len(args) > 0 {
				if !args[0].Known {
					r.doubt("env runs %s, which is not known", short(args[0], c.Source))
					return unknown
				}
				s, args = args[0].Text, args[1:]
			}
			for _, w := range args {
				s += " " + quote(w)
			}
			return r.text(g, Word{Text: "env " + s, Known: true})
		case a.Known && (a.Text == "-C" || a.Text == "--chdir") && len(args) > 1:
			r.chdir(g, args[1])
			args = args[2:]
		case a.Known && strings.HasPrefix(a.Text, "--chdir="):
			r.chdir(g, Word{Text: strings.TrimPrefix(a.Text, "--chdir="), Known: true})
			args = args[1:]
		case a.Known && (a.Text == "-u" || a.Text == "--unset") && len(args) > 1:
			args = args[2:]
		case a.Known && strings.HasPrefix(a.Text, "-"):
			args = args[1:]
		case ok:
			env = append(env, Assign{name, v})
			args = args[1:]
		default:
			for _, e := range env {
				g.sc.set(e.Name, variable{alts: []Word{e.Value}})
			}
			return r.exec(g, args, env, nil, c.Source)
		}
	}
	return opaque
}

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
				r.script(f, Command{Name: ".", Args: c.Args[i : i+1]})
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
			out = either(out, r.text(f, w))
		}
		return out
	case strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/"):
		r.doubt("%s runs %s, which is not known", f.by[len(f.by)-1], name)
	}
	return unknown
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

func runAlias(_ *reader, f frame, c Command) []Word {
	for _, a := range c.Args {
		if name, value, ok := strings.Cut(a.Text, "="); ok {
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
			for end < len(expr) && !(expr[end].Text == ";" || expr[end].Text == "+" && expr[end-1].Text == "{}") {
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
	if v, ok := f.sc.lookup("CDPATH"); ok && !(len(v.alts) == 1 && v.alts[0].Known && v.alts[0].Text == "") && to.Known && !strings.HasPrefix(to.Text, "/") && !strings.HasPrefix(to.Text, ".") {
		to = Word{}
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
		f.sc.set(n.Text, variable{alts: []Word{v}})
	}
	return nothing
}

// runSu reads su and runuser: -c, or with -u the rest.
func runSu(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case (a.Text == "-c" || a.Text == "--command" || strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasSuffix(a.Text, "c")) && i+1 < len(c.Args):
			return r.text(f, c.Args[i+1])
		case strings.HasPrefix(a.Text, "--command="):
			return r.text(f, Word{Text: strings.TrimPrefix(a.Text, "--command="), Known: a.Known})
		case c.Name == "runuser" && (a.Text == "-u" || a.Text == "--user") && i+2 < len(c.Args):
			return r.unwrap(f, Command{Name: "runuser", Args: c.Args[i+2:]}, wrapper{})
		}
	}
	if len(f.in.alts) > 0 {
		return r.stdin(f)
	}
	return unknown
}

// joined runs words as one script, as programs do that hand them to a shell.
func (r *reader) joined(f frame, args []Word) []Word {
	s := Word{Known: true}
	for i, a := range args {
		if i > 0 {
			s.Text += " "
		}
		s.Text += a.Text
		s.Known, s.Source = s.Known && a.Known, s.Source+" "+a.Source
	}
	if len(args) == 0 {
		return nothing
	}
	return r.text(f, s)
}

func runWatch(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "nq", "interval"), len(c.Args))
	for _, a := range c.Args[:i] {
		if a.Text == "-x" || a.Text == "--exec" {
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return r.joined(f, c.Args[i:])
}

func runFlock(r *reader, f frame, c Command) []Word {
	i := options(c.Args, "wE", "timeout wait conflict-exit-code") + 1
	if i < len(c.Args) && (c.Args[i].Text == "-c" || c.Args[i].Text == "--command") {
		return r.joined(f, c.Args[i+1:])
	}
	if i < len(c.Args) {
		return r.exec(f, c.Args[i:], nil, nil, c.Source)
	}
	return nothing
}

// runDashC reads programs that give the value of -c to a shell.
func runDashC(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		if strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--") && strings.HasSuffix(a.Text, "c") && i+1 < len(c.Args) {
			r.text(f, c.Args[i+1])
		} else if s, ok := strings.CutPrefix(a.Text, "--command="); ok {
			r.text(f, Word{Text: s, Known: a.Known})
		}
	}
	return unknown
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

func runSSH(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "bcDEeFIiJLlmOopQRSWwBP", ""), len(c.Args))
	for j, a := range c.Args {
		if !strings.HasPrefix(a.Text, "-o") {
			continue
		}
		option := strings.TrimPrefix(a.Text, "-o")
		if option == "" && j+1 < len(c.Args) {
			option = c.Args[j+1].Text
		}
		for _, name := range []string{"ProxyCommand", "LocalCommand", "KnownHostsCommand"} {
			if len(option) > len(name) && strings.EqualFold(option[:len(name)], name) {
				r.text(f.relabel("ssh "+name), Word{Text: strings.TrimLeft(option[len(name):], "= "), Known: a.Known})
			}
		}
	}
	g := f.fork()
	g.remote = true
	g.sc.set(dirKey, variable{alts: unknown})
	g.sc.set("HOME", variable{alts: []Word{{Text: "/home/remote", Known: true}}})
	if i+1 >= len(c.Args) {
		if len(f.in.alts) > 0 && i < len(c.Args) {
			return r.stdin(g)
		}
		return unknown
	}
	rest := c.Args[i+1:]
	if n := options(rest, "bcDEeFIiJLlmOopQRSWwBP", ""); n > 0 && n < len(rest) {
		rest = rest[n:]
	}
	r.joined(g, rest)
	return unknown
}

// runTee shows the files that tee writes as they would be by redirections, and passes its input on.
func runTee(r *reader, f frame, c Command) []Word {
	i := min(options(c.Args, "", ""), len(c.Args))
	for _, a := range c.Args[i:] {
		r.keep(f, a, f.in.alts, false)
	}
	if f.in.alts == nil {
		return nothing
	}
	return f.in.alts
}

// runPrintf sets the variable of printf -v.
func runPrintf(r *reader, f frame, c Command) []Word {
	if len(c.Args) > 2 && c.Args[0].Text == "-v" {
		out := r.prints(f, Command{Name: "printf", Args: c.Args[2:]})
		f.sc.set(c.Args[1].Text, variable{alts: out})
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

// runLast reads the command that terminal multiplexers start a session with.
func runLast(r *reader, f frame, c Command) []Word {
	for i, a := range c.Args {
		switch {
		case c.Name == "tmux" && (a.Text == "send-keys" || a.Text == "send"):
			rest := c.Args[i+1:]
			if n := min(options(rest, "tN", ""), len(rest)); n < len(rest) {
				return r.text(f, rest[n])
			}
		case c.Name == "tmux" && slices.Contains([]string{"new-session", "new", "new-window", "neww", "split-window", "splitw", "run-shell", "run", "respawn-pane", "if-shell"}, a.Text):
			rest := c.Args[i+1:]
			if n := min(options(rest, "censtxyFlp", ""), len(rest)); n < len(rest) {
				return r.joined(f, rest[n:])
			}
		case c.Name == "screen" && strings.HasPrefix(a.Text, "-"):
		case c.Name == "screen" && i > 0 && !(c.Args[i-1].Text == "-S" || strings.HasSuffix(c.Args[i-1].Text, "S") || c.Args[i-1].Text == "-r"):
			return r.exec(f, c.Args[i:], nil, nil, c.Source)
		}
	}
	return unknown
}

// runFetch notes the files that come from elsewhere: what is in them is not known.
func runFetch(r *reader, f frame, c Command) []Word {
	out := unknown
	save := func(w Word) {
		r.keep(f, w, unknown, false)
		out = nothing
	}
	named := false
	for i, a := range c.Args {
		short := strings.HasPrefix(a.Text, "-") && !strings.HasPrefix(a.Text, "--")
		last := byte(0)
		if short {
			last = a.Text[len(a.Text)-1]
		}
		switch {
		case i+1 < len(c.Args) && (a.Text == "--output" || a.Text == "--output-document" || c.Name == "curl" && last == 'o' || c.Name == "wget" && last == 'O'):
			save(c.Args[i+1])
			named = true
		case strings.HasPrefix(a.Text, "--output=") || strings.HasPrefix(a.Text, "--output-document="):
			_, v, _ := strings.Cut(a.Text, "=")
			save(Word{Text: v, Known: a.Known})
			named = true
		}
	}
	if c.Name == "wget" && named && slices.ContainsFunc(c.Args, stdin) || slices.ContainsFunc(c.Args, func(w Word) bool { return c.Name == "wget" && strings.HasSuffix(w.Text, "O-") }) {
		return unknown
	}
	for _, a := range c.Args {
		if strings.Contains(a.Text, "://") && !named && (c.Name == "wget" || slices.ContainsFunc(c.Args, func(w Word) bool {
			return w.Text == "--remote-name" || strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "O")
		})) {
			save(Word{Text: path.Base(a.Text), Known: a.Known})
		}
	}
	return out
}

// commandVariables are variables whose value a program runs.
var commandVariables = []string{
	"GIT_PAGER", "PAGER", "GIT_EDITOR", "EDITOR", "VISUAL", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "PROMPT_COMMAND", "RSYNC_RSH", "CVS_RSH", "FCEDIT", "SYSTEMD_EDITOR", "KUBE_EDITOR", "SUDO_ASKPASS",
}

// commandsIn reads the values of variables that are commands.
func (r *reader) commandsIn(f frame, env []Assign) {
	for _, a := range env {
		if slices.Contains(commandVariables, a.Name) && a.Value.Text != "" {
			r.text(f.under(a.Name), a.Value)
		}
	}
}
