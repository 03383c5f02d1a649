package permit

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// What rules that permit cover of a script.

// Policy says which files may be read and written without asking.
type Policy struct {
	Readable, Writable func(Path) bool
}

// AllowsScript says whether rules that permit cover all of a script: each of its commands is permitted by one of them, or only reads; nothing is
// hidden; what it writes may be written; no variable and no option that the rule leaves open makes a program run another one. by is the first rule that was needed; without it, why
// says what is not covered.
func (w *World) AllowsScript(c *Call, rules []*Rule, p Policy) (by *Rule, why string) {
	if c.Unread != nil || c.tool != bash {
		return nil, "it can't be read"
	}
	for _, r := range rules {
		if r.bare && named(r.tool, bash) {
			return r, ""
		}
	}
	if why := hides(c); why != "" {
		return nil, why
	}
	for i := range c.script.Commands {
		cmd := &c.script.Commands[i]
		r, why := w.allowsCommand(c, cmd, rules, p)
		if why != "" {
			return nil, why
		}
		if by == nil {
			by = r
		}
	}
	if by == nil {
		return nil, "no rule is about it"
	}
	return by, ""
}

// hides says what is hidden in a script, or what it does to the shell that makes its commands other ones.
func hides(c *Call) string {
	if len(c.script.Doubts) > 0 {
		return c.script.Doubts[0]
	}
	for _, a := range c.script.Assigns {
		if riskyName(a.Name) {
			return "it sets " + a.Name
		}
	}
	if len(c.script.Evaluates) > 0 {
		return "it evaluates " + strings.TrimSpace(c.script.Evaluates[0]) + ", which is not known, and could be a command"
	}
	return reopens(c)
}

// reopens says by which descriptor's name a script writes while a file that it reads is open: opened by that name, the file is written.
func reopens(c *Call) string {
	by, reads := "", false
	for _, cmd := range c.script.Commands {
		for _, f := range cmd.Redirects {
			reads = reads || !f.Write
			if f.Write && descriptor(f.Path) {
				by = f.Path.Text
			}
		}
		if r := readers()[cmd.Name]; r != nil && r.writes {
			for _, a := range cmd.Args {
				if descriptor(a) {
					by = a.Text
				}
			}
		}
	}
	if !reads || by == "" {
		return ""
	}
	return "it may write what it reads, by the name " + by
}

// descriptor reports whether a word names an open file.
func descriptor(w shell.Word) bool {
	return device(w) && (strings.HasPrefix(w.Text, "/dev/std") || strings.HasPrefix(w.Text, "/dev/fd/"))
}

func (w *World) allowsCommand(c *Call, cmd *shell.Command, rules []*Rule, p Policy) (by *Rule, why string) {
	said := strings.TrimSpace(cmd.Source)
	for _, a := range cmd.Env {
		if riskyName(a.Name) {
			return nil, "it sets " + a.Name
		}
	}
	if why := w.surroundings(cmd, p); why != "" {
		return nil, why
	}
	if cmd.Func || wrapping(c, cmd) {
		return nil, ""
	}
	for _, rule := range rules {
		if rule.cmd == nil {
			continue
		}
		free, ok := rule.cmd.permits(cmd)
		if !ok {
			continue
		}
		word, bad := risky(cmd.Name, free)
		if bad && strings.HasPrefix(word, "-") && strings.Contains(word, "exec") && cmd.Name == "find" && wraps(c, cmd.Name) {
			word, bad = risky(cmd.Name, slices.DeleteFunc(free, func(f string) bool { return f == word }))
		}
		if !bad {
			return rule, ""
		}
		why = "the rule " + rule.Text + " leaves " + word + " open, by which " + cmd.Name + " may run or write something else"
	}
	if why == "" && !w.reads(cmd, p) {
		why = "no rule permits " + said
	}
	return nil, why
}

// surroundings says what of a command's redirections, or of where it runs, may not be.
func (w *World) surroundings(cmd *shell.Command, p Policy) string {
	r := reached{w: w, cmd: &shell.Command{Name: ":", Redirects: cmd.Redirects, Dir: cmd.Dir}}
	r.gather()
	for _, path := range r.writes {
		if !p.Writable(path) {
			return "it writes " + path.Shown
		}
	}
	for _, path := range r.reads {
		if !p.Readable(path) {
			return "it reads " + path.Shown
		}
	}
	if !cmd.Dir.Known || cmd.Dir.Glob || !w.inside(w.path(cmd.Dir.Text, "")) {
		return "it runs outside of the project, or nobody knows where"
	}
	return ""
}

// wrapping reports whether a command does no more than run another one, which is among the commands.
func wrapping(c *Call, cmd *shell.Command) bool {
	o, is := transparent()[cmd.Name]
	if !is || cmd.Path.Text != cmd.Name || !wraps(c, cmd.Name) || slices.ContainsFunc(cmd.Args, func(a shell.Word) bool { return !a.Known }) {
		return false
	}
	l, ok := o.split(cmd.Args, true)
	front := cmd.Args[:len(cmd.Args)-len(l.operands)+min(1, len(l.operands))]
	return ok && !slices.ContainsFunc(front, func(a shell.Word) bool { return a.Glob })
}

// wraps reports whether what a command of that name runs is among the commands.
func wraps(c *Call, name string) bool {
	return slices.ContainsFunc(c.script.Commands, func(in shell.Command) bool {
		return slices.ContainsFunc(in.By, func(by string) bool { return by == name || strings.HasPrefix(by, name+" ") })
	})
}
