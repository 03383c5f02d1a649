package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// stmts reads statements one behind the other and gives what they print.
func (r *reader) stmts(f frame, list []*syntax.Stmt) []Word {
	out := nothing
	for _, st := range list {
		if f.sc.gone {
			break
		}
		out = concat(out, r.stmt(f, st))
	}
	return out
}

// concat puts what one statement prints behind what the one before it did.
func concat(a, b []Word) []Word {
	switch {
	case len(b) == 1 && b[0].Known && b[0].Text == "":
		return a
	case len(a) == 1 && a[0].Known && a[0].Text == "":
		return b
	case len(a) == 1 && len(b) == 1 && len(a[0].Text)+len(b[0].Text) <= maxSource:
		if !a[0].Known {
			return a
		}
		return []Word{{Text: a[0].Text + b[0].Text, Known: b[0].Known, Glob: a[0].Glob || b[0].Glob}}
	}
	return unknown
}

func (r *reader) stmt(f frame, st *syntax.Stmt) []Word {
	if f.depth++; f.depth > maxDepth {
		r.doubt("commands that are nested too deeply")
		return unknown
	}
	if !r.step() {
		return unknown
	}
	if st.Background || st.Coprocess {
		f = f.fork()
		f.async = true
	}
	switch c := st.Cmd.(type) {
	case nil:
		return r.simple(f, st, &syntax.CallExpr{})
	case *syntax.CallExpr:
		return r.simple(f, st, c)
	case *syntax.DeclClause:
		return r.declare(f, st, c)
	}
	if len(st.Redirs) == 0 {
		return r.compound(f, st.Cmd)
	}
	in, files, kept := r.redirects(&f, st)
	if len(files) > 0 {
		r.show(f, Command{Name: ":", Path: Word{Text: ":", Known: true}, Redirects: files, Source: text(f.src, st)})
	}
	f.in = in
	out := r.compound(f, st.Cmd)
	if kept != nil {
		return kept(out)
	}
	return out
}

func (r *reader) compound(f frame, c syntax.Command) []Word {
	switch c := c.(type) {
	case *syntax.Block:
		return r.stmts(f, c.Stmts)
	case *syntax.Subshell:
		return r.stmts(f.fork(), c.Stmts)
	case *syntax.BinaryCmd:
		return r.binary(f, c)
	case *syntax.IfClause:
		return r.branch(f, c)
	case *syntax.WhileClause:
		return r.loop(f, 0, "", nil, func(g frame) []Word {
			return concat(r.stmts(g, c.Cond), r.stmts(g, c.Do))
		})
	case *syntax.ForClause:
		return r.each(f, c)
	case *syntax.CaseClause:
		return r.cases(f, c)
	case *syntax.FuncDecl:
		return r.define(f, c)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return nothing
		}
		return r.stmt(f, c.Stmt)
	case *syntax.CoprocClause:
		name := Word{Text: "COPROC", Known: true}
		if c.Name != nil {
			name = r.one(f, c.Name)
		}
		r.sets(f, name.Text, unknown)
		f = f.fork()
		f.async, f.in = true, stream{alts: unknown}
		r.stmt(f, c.Stmt)
		return nothing
	case *syntax.ArithmCmd:
		r.arithmetic(f, c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithmetic(f, x)
			r.subscripts([]Word{lit(text(f.src, x))})
		}
	case *syntax.TestClause:
		r.test(f, c)
	default:
		r.sweep(f, c)
		r.doubt("a kind of command that is not understood")
	}
	return nothing
}

// simple reads a simple command in each way in which it can be expanded.
func (r *reader) simple(f frame, st *syntax.Stmt, c *syntax.CallExpr) []Word {
	first := &struct { // one piece of memory: nearly all commands can be expanded in one way only
		choices
		scope
	}{scope: scope{up: f.sc}}
	ch, g := &first.choices, f
	g.choice, g.sc = ch, &first.scope
	out := r.expanded(g, st, c)
	if !ch.next() {
		f.sc.absorb(g.sc)
		return out
	}
	scopes := []*scope{g.sc}
	for again := true; again; again = ch.next() {
		if ch.turns >= maxChoices {
			r.doubt("more than %d ways to expand a command", maxChoices)
			break
		}
		g := f.fork()
		g.choice = ch
		out = either(out, r.expanded(g, st, c))
		scopes = append(scopes, g.sc)
	}
	f.sc.join(true, scopes...)
	return out
}

func (r *reader) expanded(f frame, st *syntax.Stmt, c *syntax.CallExpr) []Word {
	words := r.words(f, c.Args)
	env := r.assigns(f, c.Assigns)
	in, files, kept := r.open(f, st.Redirs)
	source := ""
	if len(c.Args) > 0 || len(c.Assigns) > 0 {
		source = text(f.src, c)
	} else {
		source = text(f.src, st)
	}
	var out []Word
	if len(words) == 0 {
		r.keepAssigns(f, env)
		if len(files) > 0 {
			r.show(f, Command{Name: ":", Path: Word{Text: ":", Known: true}, Env: env, Redirects: files, Source: source})
		}
		out = nothing
	} else {
		f.in = in
		out = r.start(f, words, env, files, source, false)
	}
	if kept != nil {
		return kept(out)
	}
	return out
}

// show puts a command into the script.
func (r *reader) show(f frame, c Command) {
	if f.quiet || !r.step() {
		return
	}
	c.By, c.Async, c.Dir = f.by, f.async, f.dir()
	c.Input = Input{From: f.in.from, Is: f.in.is}
	if len(f.in.alts) == 1 && f.in.alts[0].Known && (f.in.is || len(f.in.from) > 0) {
		c.Input.Text, c.Input.Is = f.in.alts[0], true
	}
	if f.again > 0 {
		for i := range r.Commands[f.again-1:] {
			if repeats(&r.Commands[f.again-1+i], &c) {
				return
			}
		}
	}
	r.Commands = append(r.Commands, c)
}

// repeats reports whether b is a again, as in the next round of a loop.
func repeats(a, b *Command) bool {
	return a.Source == b.Source && a.Name == b.Name && same(a.Dir, b.Dir) && same(a.Path, b.Path) && slices.Equal(a.By, b.By) && a.Input.Is == b.Input.Is && same(a.Input.Text, b.Input.Text) &&
		slices.EqualFunc(a.Args, b.Args, same) &&
		slices.EqualFunc(a.Env, b.Env, func(a, b Assign) bool { return a.Name == b.Name && same(a.Value, b.Value) }) &&
		slices.EqualFunc(a.Redirects, b.Redirects, func(a, b Redirect) bool { return a.Op == b.Op && same(a.Path, b.Path) })
}
