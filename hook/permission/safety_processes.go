package permission

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/shell"
)

// Programs that end processes.

// processOptions are those of pgrep and pkill that take a value.
const processOptions = "-u -U -G -g -t -s -P -F --signal --euid --uid --group --pgroup --parent --session --terminal --pidfile -r --runstates --ns --nslist -d --older -O"

func kill(j *examiner, c *shell.Command) {
	args := c.Args
	if len(args) > 0 {
		switch a := args[0].Text; {
		case a == "-l" || a == "-L":
			return
		case a == "-s" || a == "-n" || a == "--signal":
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "-") && a != "--" && len(args) > 1:
			args = args[1:]
		}
	}
	for _, a := range args {
		switch {
		case a.Text == "-1":
			j.deny("kill -1 ends all processes")
		case a.Text == "1":
			j.deny("kill 1 ends the first process, on which all depend")
		case !a.Known && a.Text == "-":
			j.ask("kill of a process that is not known: %s", a.Source)
		}
	}
	j.wholesale(c)
}

var anything = lazy.Regexp(`^[\^.*$+?\[\]a-zA-Z-]?[\^.*$+?]*$`)

func pkill(j *examiner, c *shell.Command) {
	l := parse(c, processOptions)
	_, file := l.value("-F", "--pidfile", "-P", "--parent", "-g", "--pgroup", "-s", "--session")
	switch {
	case l.has("-v", "--inverse"):
		j.deny("%s -v ends all other processes", c.Name)
	case len(l.operands) == 0 && len(l.options) > 0 && !file, len(l.operands) > 0 && l.operands[0].Known && anything.Get().MatchString(l.operands[0].Text) && len(l.operands[0].Text) != 1 || len(l.operands) > 0 && l.operands[0].Text == ".":
		j.deny("%s ends all processes of a user", c.Name)
	case len(l.operands) > 0 && !l.operands[0].Known:
		j.ask("%s of processes that are not known: %s", c.Name, l.operands[0].Source)
	}
	j.wholesale(c)
}

func killall(j *examiner, c *shell.Command) {
	l := parse(c, "-s --signal -u --user -o -y -n -Z")
	_, user := l.value("-u", "--user")
	switch {
	case len(l.operands) == 0 && user:
		j.deny("killall ends all processes of a user")
	case l.has("-r", "--regexp") && len(l.operands) > 0 && (l.first() == "." || strings.Trim(l.first(), ".*^$+?") == ""):
		j.deny("killall ends all processes")
	case len(l.operands) > 0 && !l.operands[0].Known:
		j.ask("killall of processes that are not known: %s", l.operands[0].Source)
	}
	j.wholesale(c)
}

func fuser(j *examiner, c *shell.Command) {
	if l := parse(c, "-n -N"); l.has("-k", "--kill") && l.has("-m", "-M", "--mount") {
		for _, w := range l.operands {
			if at, p := j.place(removes, w, c.Dir); at != inside && at != temp {
				j.deny("fuser -k ends all processes that use %s", p)
			}
		}
	}
}

// typed is how many processes a person may name in one command.
const typed = 64

// wholesale asks when a command ends the processes of a list that nothing was chosen from: kill $(ps -e -o pid=). One process that is not known, such as $PID or what a file names, passes.
func (j *examiner) wholesale(c *shell.Command) {
	if len(c.Args) > typed {
		j.ask("%s of %d processes", c.Name, len(c.Args))
	}
	if !slices.ContainsFunc(c.Args, func(a shell.Word) bool { return !a.Known || a.Glob }) {
		return
	}
	origins, counted := j.origins(c)
	if counted || strings.Contains(origins, "/proc/[") || strings.Contains(origins, "/proc/*") {
		j.ask("%s of one process after the other", c.Name)
		return
	}
	for _, from := range j.feeds(c, origins) {
		if lists, all := everything(from); all && !slices.ContainsFunc(j.siblings(from), chooses) {
			j.ask("%s of all processes that %s lists", c.Name, lists)
			return
		}
	}
}

// feeds are the commands that the words of c may come from: those in a substitution, and those whose output is piped to it or to the xargs that runs it.
func (j *examiner) feeds(c *shell.Command, origins string) (out []*shell.Command) {
	piped := slices.Clone(c.Input.From)
	for i := range j.read.Commands {
		if o := &j.read.Commands[i]; slices.Contains(c.By, o.Name) && o.Source == c.Source {
			piped = append(piped, o.Input.From...)
		}
	}
	reads := j.reads(origins)
	for i := range j.read.Commands {
		o := &j.read.Commands[i]
		if slices.Contains(piped, i) || substituted(o) && o.Source != "" && (reads || strings.Contains(origins, o.Source)) {
			out = append(out, o)
		}
	}
	return out
}

var named = lazy.Regexp(`\$\{?([a-zA-Z_]\w*)`)

// reads reports whether a variable in a text is set by read or mapfile: where those read from is not looked up, it may be any substitution.
func (j *examiner) reads(text string) bool {
	for _, m := range named.Get().FindAllStringSubmatch(text, -1) {
		for i := range j.read.Commands {
			o := &j.read.Commands[i]
			if shell.Listed("read mapfile readarray", o.Name) && slices.ContainsFunc(o.Args, func(a shell.Word) bool { return a.Text == m[1] }) {
				return true
			}
		}
	}
	return false
}

// origins is what the words of c that are not known look like in the script, with what their variables were set to; counted is whether arithmetic set one.
func (j *examiner) origins(c *shell.Command) (text string, counted bool) {
	var all strings.Builder
	for _, a := range c.Args {
		if !a.Known || a.Glob {
			all.WriteString(a.Source + "\n")
		}
	}
	const chain = 3 // variables that are set to others
	for range chain {
		for _, m := range named.Get().FindAllStringSubmatch(all.String(), -1) {
			for _, a := range j.read.Assigns {
				if a.Name != m[1] {
					continue
				}
				counted = counted || a.Value.Glob && a.Value.Text == "*" && (a.Value.Source == "" || strings.HasPrefix(a.Value.Source, "$(("))
				if !strings.Contains(all.String(), a.Value.Source) {
					all.WriteString(a.Value.Source + "\n")
				}
			}
		}
	}
	return all.String(), counted
}

func substituted(c *shell.Command) bool {
	return slices.ContainsFunc(c.By, func(by string) bool { return by == "$(…)" || by == "<(…)" })
}

// siblings are the commands that what c prints goes through.
func (j *examiner) siblings(c *shell.Command) (out []*shell.Command) {
	for i := range j.read.Commands {
		if slices.ContainsFunc(j.read.Commands[i].Input.From, func(from int) bool { return &j.read.Commands[from] == c }) {
			out = append(out, &j.read.Commands[i])
		}
	}
	return out
}

// everything reports whether a command lists processes, or numbers, without a choice; and what it is called.
func everything(c *shell.Command) (name string, all bool) {
	switch c.Name {
	case "ps":
		l := parse(c, "-C -p -q -o -O --pid --ppid --quick-pid -t --tty --sort --format -u -U -g -G")
		_, chosen := l.value("-C", "-p", "-q", "--pid", "--ppid", "--quick-pid", "-t", "--tty")
		return "ps", !chosen
	case "pgrep":
		l := parse(c, processOptions)
		_, chosen := l.value("-P", "--parent", "-F", "--pidfile", "-g", "--pgroup", "-s", "--session", "-t", "--terminal")
		return "pgrep", l.has("-v", "--inverse") || len(l.operands) == 0 && !chosen || len(l.operands) > 0 && l.operands[0].Known && vacuous.Get().MatchString(l.operands[0].Text)
	case "ls", "find", "echo", "printf":
		return "/proc", slices.ContainsFunc(c.Args, func(a shell.Word) bool { return strings.HasPrefix(a.Text, "/proc") })
	case "seq", "jot", "curl", "wget":
		return c.Name, true
	}
	return "", false
}

// vacuous is a pattern that every process number matches.
var vacuous = lazy.Regexp(`^\^?(\[0-9\]|\\d|\[\[:digit:\]\]|\.)?[*+]?\$?$`)

// wholeProgram is a program for awk that looks at every line, but for a first one of headings.
var wholeProgram = lazy.Regexp(`^\s*(NR\s*[<>=!]+\s*\d+\s*)?\{[^/~]*$`)

// chooses reports whether a filter leaves some lines of many.
func chooses(c *shell.Command) bool {
	switch c.Name {
	case "grep", "egrep", "fgrep", "rg", "ag", "ack":
		l := parse(c, "-A -B -C -m -e -f")
		w, said := l.value("-e")
		if !said && len(l.operands) > 0 {
			w = l.operands[0]
		}
		return !l.has("-v", "--invert-match") && (!w.Known || !vacuous.Get().MatchString(w.Text))
	case "awk", "gawk", "mawk", "nawk":
		return slices.ContainsFunc(parse(c, "-F -v").operands, func(w shell.Word) bool {
			return !wholeProgram.Get().MatchString(w.Text) || strings.Contains(w.Text, "if")
		})
	case "sed", "perl":
		return slices.ContainsFunc(parse(c, "").operands, func(w shell.Word) bool { return strings.Contains(w.Text, "/") && !strings.HasPrefix(w.Text, "s") })
	case "head", "tail":
		return !slices.ContainsFunc(c.Args, func(a shell.Word) bool { return strings.Contains(a.Text, "+") })
	case "fzf", "gum", "comm":
		return true
	}
	return false
}
