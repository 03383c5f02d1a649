package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What sets variables.

// assigned makes the variables numbers that arithmetic assigns to.
func (r *reader) assigned(f frame, n syntax.Node) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		var x syntax.ArithmExpr
		switch n := n.(type) {
		case *syntax.BinaryArithm:
			if isAssign(n.Op) {
				x = n.X
			}
		case *syntax.UnaryArithm:
			if n.Op == syntax.Inc || n.Op == syntax.Dec {
				x = n.X
			}
		}
		if w, ok := x.(*syntax.Word); ok && w.Lit() != "" {
			r.sets(f, w.Lit(), number)
		} else if ok {
			if p := element(w); p != nil {
				r.sets(f, p.Param.Value, unknown)
			}
		}
		return true
	})
}

// assigns expands the assignments in front of a command.
func (r *reader) assigns(f frame, as []*syntax.Assign) []Assign {
	if len(as) == 0 {
		return nil
	}
	out := make([]Assign, 0, len(as))
	for _, a := range as {
		if a.Name == nil {
			continue
		}
		v := Word{}
		switch {
		case a.Array != nil:
			ws := make([]*syntax.Word, 0, len(a.Array.Elems))
			for _, e := range a.Array.Elems {
				if e.Index != nil {
					r.subscript(f, e.Index)
				}
				if e.Value != nil {
					ws = append(ws, e.Value)
				}
			}
			list := r.words(f, ws)
			if a.Append {
				old := r.variable(f, a.Name.Value)
				if list = append(slices.Clip(old.list), list...); !old.array {
					list = []Word{{}}
				}
			}
			r.element(f, a.Name.Value, list)
			f.sc.set(a.Name.Value, variable{list: list, array: true, alts: unknown})
			continue
		case a.Index != nil:
			r.subscript(f, a.Index)
			r.element(f, a.Name.Value, []Word{r.one(f, a.Value)})
			f.sc.set(a.Name.Value, variable{alts: unknown})
			continue
		default:
			v = r.one(f, a.Value)
		}
		if a.Append {
			old := f.choice.pick(a.Name.Value, r.variable(f, a.Name.Value).alts)
			if !old.Known || !v.Known {
				v = Word{Text: old.Text, Source: v.Source}
			} else {
				v = Word{Text: old.Text + v.Text, Known: true, Glob: old.Glob || v.Glob, Source: v.Source}
			}
		}
		out = append(out, Assign{a.Name.Value, v})
		if len(v.Text) > maxSource/8 {
			out[len(out)-1].Value = Word{}
		}
		if len(as) > 1 { // the next one may use it
			f.sc.set(a.Name.Value, variable{alts: []Word{out[len(out)-1].Value}})
		}
	}
	return out
}

// element notes that a variable is set by its elements: PATH=(x) is PATH=x.
func (r *reader) element(f frame, name string, values []Word) {
	all := Word{Known: true}
	for _, v := range values {
		all.Known, all.Glob = all.Known && v.Known, all.Glob || v.Glob
		all.Text += v.Text + " "
	}
	if !f.quiet && len(r.Assigns) < maxCommands {
		r.Assigns = append(r.Assigns, Assign{name, all})
	}
}

func (r *reader) keepAssigns(f frame, env []Assign) {
	for _, a := range env {
		f.sc.set(a.Name, variable{alts: []Word{a.Value}})
	}
	if !f.quiet && len(r.Assigns) < maxCommands {
		r.Assigns = append(r.Assigns, env...)
	}
}

// sets gives a variable its values by something else than an assignment: a loop, read, arithmetic.
func (r *reader) sets(f frame, name string, alts []Word) {
	f.sc.set(name, variable{alts: alts})
	for _, w := range alts {
		if !f.quiet && len(r.Assigns) < maxCommands && !slices.ContainsFunc(r.Assigns, func(a Assign) bool { return a.Name == name && same(a.Value, w) }) {
			r.Assigns = append(r.Assigns, Assign{name, w})
		}
	}
}

// declare reads export, declare, local, readonly.
func (r *reader) declare(f frame, st *syntax.Stmt, c *syntax.DeclClause) []Word {
	ch := &choices{}
	var scopes []*scope
	for first := true; first || ch.next() && ch.turns < maxChoices; first = false {
		g := f.fork()
		g.choice = ch
		var plain []*syntax.Assign
		args := []Word{{Text: c.Variant.Value, Known: true, Source: c.Variant.Value}}
		for _, a := range c.Args {
			switch {
			case a.Naked && a.Name == nil:
				for _, w := range r.words(g, []*syntax.Word{a.Value}) {
					if name, v, ok := strings.Cut(w.Text, "="); ok && syntax.ValidName(name) {
						r.keepAssigns(g, []Assign{{name, Word{Text: v, Known: w.Known, Glob: w.Glob, Source: w.Source}}})
					}
					args = append(args, w)
				}
			case a.Naked:
				args = append(args, Word{Text: a.Name.Value, Known: true, Source: a.Name.Value})
			default:
				plain = append(plain, a)
			}
		}
		env := r.assigns(g, plain)
		if c.Variant.Value == "nameref" || len(args) > 1 && strings.HasPrefix(args[1].Text, "-") && strings.ContainsAny(args[1].Text, "nilu") { // it stands for something else
			for i := range env {
				env[i].Value = Word{Source: env[i].Value.Source}
			}
		}
		r.keepAssigns(g, env)
		if f.fn != nil && (c.Variant.Value == "local" || (c.Variant.Value == "declare" || c.Variant.Value == "typeset") && (len(args) < 2 || !strings.Contains(args[1].Text, "g"))) {
			for _, a := range c.Args {
				if a.Name != nil {
					f.fn.locals = append(f.fn.locals, a.Name.Value)
				}
			}
		}
		if c.Variant.Value == "export" {
			r.commandsIn(g, env)
		}
		for _, a := range env {
			args = append(args, Word{Text: a.Name + "=" + a.Value.Text, Known: a.Value.Known, Glob: a.Value.Glob, Source: a.Name + "=" + a.Value.Source})
		}
		r.subscripts(args)
		_, files, _ := r.open(g, st.Redirs)
		r.show(g, Command{Name: c.Variant.Value, Path: args[0], Args: args[1:], Redirects: files, Source: text(f.src, c)})
		scopes = append(scopes, g.sc)
	}
	f.sc.join(true, scopes...)
	return nothing
}
