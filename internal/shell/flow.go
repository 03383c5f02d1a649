package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Which commands run, and how often: lists, pipes, branches and loops.

func (r *reader) binary(f frame, c *syntax.BinaryCmd) []Word {
	switch c.Op {
	case syntax.AndStmt:
		return r.and(f, c)
	case syntax.OrStmt:
		x := f.fork()
		out := r.stmt(x, c.X)
		y := f.fork() // it runs where c.X failed: all of it may have been done, or nothing
		y.sc.join(false, x.sc)
		more := r.stmt(y, c.Y)
		f.sc.join(true, x.sc, y.sc)
		return either(out, more)
	}
	x, y := f.fork(), f.fork()
	x.async, y.async = true, true
	from := len(r.Commands)
	out := r.stmt(x, c.X)
	y.in = stream{alts: out}
	if n := len(r.Commands); n > from {
		y.in.from = make([]int, 0, n-from)
		for i := from; i < n; i++ {
			y.in.from = append(y.in.from, i)
		}
	}
	return r.stmt(y, c.Y)
}

// and reads X && Y. Of a command that hardly fails, such as cd, it is taken that it succeeded: who wrote it thought so.
func (r *reader) and(f frame, c *syntax.BinaryCmd) []Word {
	var chain []*syntax.Stmt
	for {
		chain = append(chain, c.Y)
		x, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || x.Op != syntax.AndStmt || len(c.X.Redirs) > 0 || c.X.Background || c.X.Negated {
			break
		}
		c = x
	}
	chain = append(chain, c.X)
	slices.Reverse(chain)
	return r.chain(f, chain)
}

func (r *reader) chain(f frame, list []*syntax.Stmt) []Word {
	if len(list) == 1 {
		return r.stmt(f, list[0])
	}
	out := r.stmt(f, list[0])
	if f.sc.gone {
		return out
	}
	if succeeds(list[0]) {
		return concat(out, r.chain(f, list[1:]))
	}
	g := f.fork()
	out = concat(out, r.chain(g, list[1:]))
	f.sc.join(false, g.sc)
	return out
}

// succeeds reports whether a command is taken to succeed.
func succeeds(st *syntax.Stmt) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated {
		_, ok := st.Cmd.(*syntax.DeclClause)
		return ok
	}
	if len(c.Args) == 0 {
		return true
	}
	switch c.Args[0].Lit() {
	case "cd", "pushd", "popd", "true", ":", "echo", "printf", "set", "shopt", "mkdir", "alias", "source", ".":
		return true
	}
	return false
}

func either(a, b []Word) []Word {
	if slices.EqualFunc(a, b, same) {
		return a
	}
	return settle(append(slices.Clip(a), b...))
}

func (r *reader) branch(f frame, c *syntax.IfClause) []Word {
	var scopes []*scope
	var out []Word
	all := false
	for ; c != nil; c = c.Else {
		if len(c.Cond) > 0 {
			r.stmts(f, c.Cond)
		} else {
			all = true
		}
		g := f.fork()
		printed := r.stmts(g, c.Then)
		if scopes == nil {
			out = printed
		} else {
			out = either(out, printed)
		}
		scopes = append(scopes, g.sc)
	}
	if !all {
		out = either(out, nothing)
	}
	f.sc.join(all, scopes...)
	return out
}

func (r *reader) cases(f frame, c *syntax.CaseClause) []Word {
	r.sweep(f, c.Word)
	var scopes []*scope
	out := nothing
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			r.sweep(f, p)
		}
		g := f.fork()
		out = either(out, r.stmts(g, item.Stmts))
		scopes = append(scopes, g.sc)
	}
	f.sc.join(false, scopes...)
	return out
}

// loop reads a body until it changes nothing any more. What keeps changing is not known.
// It has rounds of them at most; 0 is any number. Each round begins by setting own, if there is such a variable, to one of alts.
func (r *reader) loop(f frame, rounds int, own string, alts []Word, body func(frame) []Word) []Word {
	from := len(r.Commands)
	for pass := range 4 {
		g := f.fork()
		g.depth++
		if pass > 0 && g.again == 0 {
			g.again = from + 1
		}
		if own != "" {
			r.sets(g, own, alts)
		}
		g.loop = &wayOut{base: f.sc}
		wrote := len(r.wrote)
		out := body(g)
		last := g.sc.gone && !g.loop.rounds || rounds == pass+1
		changes := len(r.wrote) > wrote
		if pass == 2 {
			for _, name := range r.wrote[wrote:] {
				r.files[name] = unknown
			}
		}
		states := append(g.loop.states, g.sc)
		for _, s := range states {
			for name, v := range s.vars {
				if name == own && !v.array && slices.EqualFunc(v.alts, settle(alts), same) {
					continue // the next round sets it again
				}
				old, ok := f.sc.lookup(name)
				if ok && equal(old, union([]variable{old, v})) {
					continue
				}
				changes = true
				if pass == 2 && !strings.HasPrefix(name, "\x00function ") {
					s.vars[name] = variable{alts: unknown}
				}
			}
		}
		f.sc.join(rounds > 0 && pass == 0, states...)
		if !changes || last || r.steps > maxSteps {
			return either(out, nothing)
		}
	}
	return unknown
}

func (r *reader) each(f frame, c *syntax.ForClause) []Word {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		if c, ok := c.Loop.(*syntax.CStyleLoop); ok {
			for _, x := range []syntax.ArithmExpr{c.Init, c.Cond, c.Post} {
				r.arithmetic(f, x)
			}
		}
		return r.loop(f, 0, "", nil, func(g frame) []Word { return r.stmts(g, c.Do) })
	}
	alts := unknown
	if args, known := r.params(f); !iter.InPos.IsValid() && known {
		alts = args
	} else if iter.InPos.IsValid() {
		alts = r.every(f, iter.Items)
	}
	if len(alts) == 0 {
		return nothing // no round at all
	}
	rounds := 0
	if !slices.ContainsFunc(alts, func(w Word) bool { return !w.Known || w.Glob }) && !c.Select {
		rounds = len(alts)
	}
	return r.loop(f, rounds, iter.Name.Value, alts, func(g frame) []Word { return r.stmts(g, c.Do) })
}

// every gives the fields of ws in all ways in which they can be expanded.
func (r *reader) every(f frame, ws []*syntax.Word) (alts []Word) {
	ch := &choices{}
	for first := true; first || ch.next(); first = false {
		g := f
		g.choice, g.quiet = ch, f.quiet || !first
		for _, w := range r.words(g, ws) {
			if !slices.ContainsFunc(alts, func(o Word) bool { return same(o, w) }) {
				alts = append(alts, w)
			}
		}
		if ch.turns > maxChoices {
			return append(alts, Word{})
		}
	}
	return alts
}
