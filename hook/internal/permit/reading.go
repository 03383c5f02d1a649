package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// OnlyReads says whether it can be told that a script changes nothing, and reads only what may be read: each of its commands is a reader that has known options only. why is what
// can't be told. It takes no risk: what is not known, and what may make a name stand for something else, is not known to only read.
func (w *World) OnlyReads(c *Call, readable func(Path) bool) (ok bool, why string) {
	if c.Unread != nil || c.tool != bash || len(c.script.Commands) == 0 {
		return false, "it can't be read"
	}
	if why := hides(c); why != "" {
		return false, why
	}
	p := Policy{Readable: readable, Writable: func(Path) bool { return false }}
	x := reached{w: w, cmd: &c.script.Commands[0]}
	for _, a := range c.script.Assigns {
		switch {
		case !a.Value.Known || strings.ContainsAny(a.Value.Text, "`$"): // arithmetic would run what is in it
			return false, "the value of " + a.Name + " is not known"
		case a.Value.Glob && strings.Contains(a.Value.Text, "/") && !x.mayRead(a.Value, p):
			return false, "it looks at " + a.Value.Text
		}
	}
	for i := range c.script.Commands {
		if why := w.doesMore(c, &c.script.Commands[i], p); why != "" {
			return false, why
		}
	}
	return true, ""
}

// doesMore says what a command may do besides reading what p lets be read.
func (w *World) doesMore(c *Call, cmd *shell.Command, p Policy) string {
	said := strings.TrimSpace(cmd.Source)
	switch {
	case cmd.Func || slices.ContainsFunc(cmd.By, func(by string) bool { return strings.HasPrefix(by, "function ") || strings.HasPrefix(by, "alias ") }):
		return "it defines commands of its own"
	case len(cmd.Env) > 0:
		return "it sets " + cmd.Env[0].Name
	case cmd.Input.Is && !cmd.Input.Text.Known:
		return "what it passes to " + said + " is not known"
	case cmd.Name == "nohup":
		return "nohup may write nohup.out"
	case cmd.Name == "cd" || cmd.Name == "pushd": // if it failed, what follows would run where it stands
		x := reached{w: w, cmd: cmd}
		if slices.ContainsFunc(cmd.Args, func(a shell.Word) bool { return !shell.Listed("-L -P -e -- -", a.Text) && !x.enters(a) }) {
			return "there is no directory for " + said
		}
	}
	if why := w.surroundings(cmd, p); why != "" {
		return why
	}
	if !wrapping(c, cmd) && !w.reads(cmd, p) {
		return said + " may do more than read inside the project"
	}
	return ""
}

// reads reports whether a command is a reader with options that are known, which reads what may be read, and writes, if that is what it is for, what may be written.
func (w *World) reads(cmd *shell.Command, p Policy) bool {
	r := readers()[cmd.Name]
	if r == nil || cmd.Path.Text != cmd.Name {
		return false
	}
	x := reached{w: w, cmd: cmd}
	for _, a := range cmd.Args {
		switch {
		case r.names && a.Glob && !a.Number, r.names && len(cmd.Args) > 1 && (a.Text == "-v" || a.Text == "-R"):
			return false
		case !a.Known, a.Glob && !r.any && !x.plainGlob(a), a.Glob && strings.Contains(a.Text, "/") && !x.mayRead(a, p): // the shell looks there
			return false
		}
	}
	return x.onlyReads(r, p)
}

// plainGlob reports whether a pattern stands for names that can be looked up, none of which may be an option.
func (r *reached) plainGlob(a shell.Word) bool {
	if a.Source == "" || strings.ContainsAny(a.Source, "$`") || strings.ContainsAny(a.Text, "()…") { // it is a value that is known in part only
		return false
	}
	if !strings.ContainsAny(a.Text[:1], "*?[") {
		return true
	}
	dashes, err := filepath.Glob(globQuoted(r.cmd.Dir.Text) + "/-*")
	return err == nil && len(dashes) == 0
}

// onlyReads checks the words of a command against what is known of its program.
func (r *reached) onlyReads(as *reader, p Policy) bool {
	args := r.cmd.Args
	switch {
	case as.any:
		return true
	case as.words != nil:
		return (len(args) > 0 || !as.needs) && !slices.ContainsFunc(args, func(a shell.Word) bool { return a.Glob || !as.words.MatchString(a.Text) })
	case as.commands == nil && len(args) == 1 && (args[0].Text == "--help" || args[0].Text == "--version"):
		return true
	}
	l, ok := as.known.split(args, as.commands != nil)
	if !ok || as.front && slices.ContainsFunc(behind(l.operands, args), func(a shell.Word) bool { return strings.HasPrefix(a.Text, "-") && a.Text != "-" }) {
		return false
	}
	for _, o := range l.options {
		if as.apart && o.kind == valued && !o.separate && !strings.HasPrefix(o.name, "--") {
			return false
		}
		if shell.Listed(as.said, o.name) && o.kind == valued {
			if o.value.Glob || as.code != nil && !as.code(o.value.Text) {
				return false
			}
		} else if (o.kind == filed || o.separate && o.value.Text != "/") && !r.mayRead(o.value, p) { // of a program that takes no value there, it is an operand
			return false
		}
	}
	if as.commands != nil {
		return r.command(as, l, p)
	}
	operands := l.operands
	if as.first && !l.has(as.said) && len(operands) > 0 {
		if operands[0].Glob || as.code != nil && !as.code(operands[0].Text) {
			return false
		}
		operands = operands[1:]
	}
	return r.operands(as, l, operands, p)
}

// behind are the words behind the first operand.
func behind(operands, args []shell.Word) []shell.Word {
	if len(operands) == 0 {
		return nil
	}
	return args[slices.IndexFunc(args, func(a shell.Word) bool { return a == operands[0] })+1:]
}

func (r *reached) operands(as *reader, l line, operands []shell.Word, p Policy) bool {
	switch n := len(operands); {
	case n == 0:
		return !as.needs
	case as.most > 0 && (n > as.most || operands[0].Glob),
		as.verbs != "" && !shell.Listed(as.verbs, r.cmd.Args[0].Text), // behind an option it may be an operand
		as.listing != "" && !l.has(as.listing):
		return false
	}
	for _, a := range operands {
		switch {
		case as.operand != nil && (a.Glob || !as.operand.MatchString(a.Text)), as.flat && slices.ContainsFunc(r.paths(a), isDir):
			return false
		case as.writes && !ownStream(a) && slices.ContainsFunc(r.paths(a), func(f Path) bool { return !p.Writable(f) }):
			return false
		case !as.text && !as.writes && !r.mayRead(a, p):
			return false
		}
	}
	return true
}

// mayRead reports whether all that a word may name may be read.
func (r *reached) mayRead(a shell.Word, p Policy) bool {
	return ownStream(a) || !slices.ContainsFunc(r.paths(a), func(f Path) bool { return !p.Readable(f) })
}

// enters reports whether a word names a directory that can be gone to.
func (r *reached) enters(a shell.Word) bool {
	name := a.Text
	if !filepath.IsAbs(name) {
		name = r.cmd.Dir.Text + "/" + name
	}
	_, err := os.Stat(name + "/.")
	return err == nil && !a.Glob
}

// command is the reading command of a program that has several.
func (r *reached) command(as *reader, l line, p Policy) bool {
	if len(l.operands) == 0 {
		return true // it says what it is
	}
	cmd := *r.cmd
	for _, o := range l.options {
		if o.name != "-C" {
			continue
		}
		if o.value.Glob || !r.enters(o.value) {
			return false
		}
		if dir := o.value.Text; filepath.IsAbs(dir) {
			cmd.Dir.Text = dir
		} else {
			cmd.Dir.Text += "/" + dir
		}
	}
	sub := as.commands[l.operands[0].Text]
	if sub == nil || l.operands[0].Glob || bare(resolve(cmd.Dir.Text)) {
		return false
	}
	cmd.Args = l.operands[1:]
	if slices.ContainsFunc(cmd.Args, func(a shell.Word) bool { return a.Text == "--help" || signature(a.Text) }) { // it starts man; gpg
		return false
	}
	below := reached{w: r.w, cmd: &cmd}
	return below.onlyReads(sub, p)
}

// signature reports whether a format of git has something in it that starts the program which checks signatures.
func signature(format string) bool {
	return strings.Contains(format, "%G") || strings.Contains(format, "(signature")
}

// bare reports whether git would take a directory, or one above it, for a repository although it is not one that git made there: files that came with the project can look like one,
// and its settings name programs that git runs.
func bare(dir string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, ".git")) || filepath.Dir(at) == at {
			return false
		}
		if exists(filepath.Join(at, "HEAD")) && (exists(filepath.Join(at, "objects")) || exists(filepath.Join(at, "commondir"))) {
			return true
		}
	}
}
