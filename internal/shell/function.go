package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// Functions of the script's own.

func (r *reader) define(f frame, c *syntax.FuncDecl) []Word {
	if c.Name == nil {
		r.doubt("a function without a name")
		return nothing
	}
	fn := function{c.Name.Value, c.Body, f.src}
	r.named = true
	f.sc.set(funcKey(fn.name), variable{body: []function{fn}})
	if !slices.ContainsFunc(r.funcs, func(o function) bool { return o.body == fn.body }) {
		r.funcs = append(r.funcs, fn)
	}
	return nothing
}

// uncalled reads the functions that nothing called: something that isn't seen here may.
func (r *reader) uncalled(f frame) {
	for i := 0; i < len(r.funcs); i++ { // reading one may define another
		if fn := r.funcs[i]; !r.done[fn.body] {
			g := f
			g.sc = newScope(f.sc)
			g.sc.set(argsKey, variable{alts: unknown})
			r.call(g, fn)
		}
	}
}

// call reads the body of a function.
func (r *reader) call(f frame, fn function) []Word {
	if r.done == nil {
		r.done = map[*syntax.Stmt]bool{}
	}
	r.done[fn.body] = true
	depth := 0
	for _, b := range f.active {
		if b == fn.body {
			depth++
		}
	}
	if depth > 1 {
		return unknown // recursion: what the second round runs the others do, too
	}
	if depth == 1 {
		f.sc.set(argsKey, variable{alts: unknown}) // of any round
	}
	f = f.under("function " + fn.name)
	f.src, f.choice, f.loop = fn.src, nil, nil
	f.active = append(slices.Clip(f.active), fn.body)
	f.fn = &wayOut{base: f.sc}
	g := f.fork()
	out := r.stmt(g, fn.body)
	states := append(f.fn.states, g.sc)
	for _, s := range states {
		for _, name := range f.fn.locals {
			delete(s.vars, name)
		}
	}
	f.sc.join(true, states...)
	return out
}
