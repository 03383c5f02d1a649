package shell

import (
	"path"
	"slices"
	"strings"
)

// exec reads a command that another one starts.
func (r *reader) exec(f frame, words []Word, env []Assign, files []Redirect, source string) []Word {
	return r.start(f, words, env, files, source, true)
}

// start reads one command whose words are expanded: shows it, and reads what it runs in turn. Unless it is to be a program, it may be a function or an alias.
func (r *reader) start(f frame, words []Word, env []Assign, files []Redirect, source string, program bool) []Word {
	if f.depth > maxDepth {
		r.doubt("commands that run each other too deeply")
		return unknown
	}
	if len(words) == 0 {
		return nothing
	}
	c := Command{Path: words[0], Args: words[1:], Env: env, Redirects: files, Source: source}
	if c.Path.Text == "[" {
		c.Path.Glob = false
	}
	if c.Path.Known && !c.Path.Glob {
		c.Name = base(c.Path.Text)
	}
	var bodies []function
	var alias variable
	aliased := false
	if !program && r.named { // what a program starts is a program
		bodies = f.bodyOf(c.Path.Text)
		alias, aliased = f.sc.lookup(aliasKey(c.Path.Text))
	}
	c.Func = c.Name != "" && (len(bodies) > 0 || aliased && !within(f.by, "alias "+c.Path.Text))
	c.Again = c.Func && slices.ContainsFunc(bodies, func(fn function) bool { return slices.Contains(f.active, fn.body) })
	r.show(f, c)
	if r.steps > maxSteps {
		return unknown
	}
	switch {
	case c.Name == "":
		if c.Path.Known && c.Path.Text == "" {
			return nothing
		}
		r.doubt("a command whose name is not known: %s", short(c.Path, source))
		return unknown
	case len(bodies) > 0:
		return r.invoke(f, bodies, c.Args)
	case c.Func:
		return r.alias(f, c, f.choice.pick(aliasKey(c.Path.Text), alias.alts))
	}
	r.commandsIn(f, env)
	switch c.Name {
	case "test", "[", "printf", "read", "unset", "mapfile", "readarray", "getopts", "wait":
		r.subscripts(c.Args)
	}
	if itself, inherits := inheritors(c.Name, env); inherits {
		g := f.fork()
		for _, a := range env {
			g.sc.set(a.Name, variable{alts: []Word{a.Value}})
		}
		if itself {
			defer f.sc.adopt(g.sc, env)
		}
		f = g
	}
	if run := runners()[c.Name]; run != nil {
		return run(r, f.under(c.Name), c)
	}
	if strings.HasPrefix(c.Name, "ld") && loader.Get().MatchString(c.Name) {
		return r.unwrap(f.under(c.Name), c, loading)
	}
	if strings.Contains(c.Path.Text, "/") && !r.stranger(f, c.Path) && !strings.HasPrefix(c.Path.Text, "/dev/") {
		return r.own(f.under(c.Name), c)
	}
	if out, ok := r.script(f, c); ok {
		return out
	}
	r.guess(f, c)
	return r.prints(f, c)
}

// subscripts notes names of array elements whose index is a command: builtins that take the name of a variable run that.
func (r *reader) subscripts(words []Word) {
	for _, w := range words {
		r.index(w.Text)
	}
}

// inheritors reports whether what a command runs has the variables in front of the command, and whether it is the shell itself that runs it: what that does stays then.
func inheritors(name string, env []Assign) (itself, inherits bool) {
	if len(env) == 0 {
		return false, false
	}
	switch name {
	case "eval", ".", "source", "command", "builtin":
		return true, true
	case "env", "xargs", "find":
		return false, true
	}
	_, wraps := wrappers[name]
	return false, wraps || shells[name]
}

// adopt takes over what was set in child, save for the variables that were there only for it.
func (s *scope) adopt(child *scope, env []Assign) {
	for _, a := range env {
		delete(child.vars, a.Name)
	}
	s.absorb(child)
}

// own reads a file that the script wrote and now starts.
func (r *reader) own(f frame, c Command) []Word {
	f = f.fork()
	f.sc.set(argsKey, variable{list: c.Args, array: true, alts: unknown})
	out := nothing
	for _, w := range r.file(f, c.Path) {
		first, _, _ := strings.Cut(w.Text, "\n")
		if prog, ok := strings.CutPrefix(first, "#!"); ok && w.Known {
			fields := strings.Fields(prog)
			if len(fields) > 1 && base(fields[0]) == "env" {
				fields = fields[1:]
			}
			if len(fields) > 0 {
				if l := languageOf(base(fields[0])); l != nil {
					r.code(f, l, w, 0)
					continue
				}
			}
		}
		out = either(out, r.once(f, c.Path.Text, w))
	}
	return out
}

// base is the name of a program: without its directory, and without .exe.
func base(p string) string {
	if p == "" || strings.HasSuffix(p, "/") {
		return p
	}
	return strings.TrimSuffix(path.Base(p), ".exe")
}

func within(by []string, name string) bool {
	for _, b := range by {
		if b == name {
			return true
		}
	}
	return false
}

// short is how a word is named in a doubt.
func short(w Word, source string) string {
	s := w.Source
	if s == "" {
		s = source
	}
	if s == "" {
		s = "what a command prints"
	}
	return clip(s)
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// invoke calls the functions that a name may stand for.
func (r *reader) invoke(f frame, bodies []function, args []Word) []Word {
	var scopes []*scope
	out := nothing
	for i, fn := range bodies {
		g := f.fork()
		old, had := f.sc.lookup(argsKey)
		g.sc.set(argsKey, variable{list: args, array: true, alts: unknown})
		printed := r.call(g, fn)
		delete(g.sc.vars, argsKey)
		if had {
			g.sc.set(argsKey, old)
		}
		if i == 0 {
			out = printed
		} else {
			out = either(out, printed)
		}
		scopes = append(scopes, g.sc)
	}
	f.sc.join(true, scopes...)
	return out
}

// alias runs the text of an alias with the words behind it.
func (r *reader) alias(f frame, c Command, value Word) []Word {
	if !value.Known || value.Glob {
		r.doubt("the alias %s, whose text is not known", c.Path.Text)
		return unknown
	}
	text, known := value.Text, true
	for _, a := range c.Args {
		known = known && a.Known
		text += " " + quote(a)
	}
	if !known {
		r.doubt("the alias %s with words that are not known", c.Path.Text)
	}
	return r.text(f.under("alias "+c.Path.Text), Word{Text: text, Known: true})
}

// quote writes a word so that a shell reads it back.
func quote(w Word) string {
	if w.Glob {
		return w.Text
	}
	return "'" + strings.ReplaceAll(w.Text, "'", `'\''`) + "'"
}

// text reads a script that a command was given.
func (r *reader) text(f frame, script Word) []Word {
	if !script.Known || script.Glob {
		by := "a shell"
		if len(f.by) > 0 {
			by = f.by[len(f.by)-1]
		}
		r.doubt("%s runs %s, which is not known", by, short(script, ""))
		return unknown
	}
	f.choice, f.guessed = nil, false
	out, _ := r.source(f, script.Text)
	return out
}
