package shell

import (
	"path"
	"slices"
	"strings"

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

// redirects opens the files of a compound command, in each way in which their names can be expanded.
func (r *reader) redirects(f *frame, st *syntax.Stmt) (in stream, files []Redirect, kept func([]Word) []Word) {
	ch := &choices{}
	for first := true; first || ch.next() && ch.turns < maxChoices; first = false {
		g := *f
		g.choice = ch
		i, more, k := r.open(g, st.Redirs)
		if first {
			in, kept = i, k
		}
		files = append(files, more...)
	}
	return in, files, kept
}

// open expands redirections: where input comes from, which files are named, and what becomes of the output, nil if that goes where it went.
func (r *reader) open(f frame, rs []*syntax.Redirect) (in stream, files []Redirect, kept func([]Word) []Word) {
	in = f.in
	for _, rd := range rs {
		op := rd.Op.String()
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			body := r.body(f, rd.Hdoc, rd.Word)
			if rd.Op == syntax.DashHdoc && body.Known {
				body.Text = strings.ReplaceAll("\n"+body.Text, "\n\t", "\n")[1:]
			}
			in = stream{alts: []Word{body}, is: true}
		case syntax.WordHdoc:
			body := r.one(f, rd.Word)
			if body.Known {
				body.Text += "\n"
			}
			in = stream{alts: []Word{body}, is: true}
		case syntax.RdrIn:
			p := r.one(f, rd.Word)
			files = append(files, Redirect{Op: op, Path: p})
			in = stream{alts: r.file(f, p), file: r.stranger(f, p)}
		case syntax.DplIn, syntax.DplOut:
			p := r.one(f, rd.Word)
			if d := strings.Trim(p.Text, "0123456789-"); p.Known && d == "" {
				if rd.Op == syntax.DplOut && (rd.N == nil || rd.N.Value == "1") && p.Text != "1" && p.Text != "2" {
					kept = func([]Word) []Word { return nothing }
				}
				if rd.Op == syntax.DplIn && p.Text != "-" {
					in = stream{alts: unknown}
				}
				continue
			}
			files = append(files, Redirect{Op: op, Path: p, Write: rd.Op == syntax.DplOut})
			if rd.Op == syntax.DplOut {
				kept = func([]Word) []Word { return nothing }
			}
		default:
			p := r.one(f, rd.Word)
			files = append(files, Redirect{Op: op, Path: p, Write: true})
			if rd.N != nil && rd.N.Value != "1" {
				continue
			}
			appends := rd.Op == syntax.AppOut || rd.Op == syntax.AppAll || rd.Op == syntax.RdrInOut
			kept = func(out []Word) []Word {
				r.keep(f, p, out, appends)
				return nothing
			}
			if rd.Op == syntax.RdrInOut {
				in = stream{alts: unknown}
			}
		}
	}
	return in, files, kept
}

// abs joins a path to the directory of f.
func abs(f frame, p Word) (string, bool) {
	if !p.Known || p.Glob || p.Text == "" {
		return "", false
	}
	if path.IsAbs(p.Text) {
		return path.Clean(p.Text), true
	}
	d := f.dir()
	return path.Join(d.Text, p.Text), d.Known
}

// keep remembers what the script wrote to a file.
func (r *reader) keep(f frame, p Word, out []Word, appends bool) {
	name, ok := abs(f, p)
	if !ok {
		return
	}
	old, written := r.files[name]
	if appends && written {
		out = either(concat(old, out), out)
	} else if appends {
		out = either(unknown, out)
	}
	r.write(name, either(old, out))
}

// write notes what may be in a file. Files are there whoever wrote them, so that branches and subshells only ever add to it.
func (r *reader) write(name string, alts []Word) {
	if r.files == nil {
		r.files = map[string][]Word{}
	}
	r.files[name] = settle(alts)
}

// file gives what is in a file: known only if the script wrote it.
func (r *reader) file(f frame, p Word) []Word {
	name, ok := abs(f, p)
	if !ok {
		return unknown
	}
	if name == "/dev/null" {
		return nothing
	}
	if alts, ok := r.files[name]; ok {
		return alts
	}
	return unknown
}

// stranger reports whether a file that is named is there without the script's doing.
func (r *reader) stranger(f frame, p Word) bool {
	name, ok := abs(f, p)
	if !ok || strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		return false
	}
	_, written := r.files[name]
	return !written
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
		return r.loop(f, 0, func(g frame) []Word {
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
		f = f.fork()
		f.async, f.in = true, stream{alts: unknown}
		r.stmt(f, c.Stmt)
		return nothing
	case *syntax.ArithmCmd:
		r.arithmetic(f, c.X)
		r.assigned(f, c)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithmetic(f, x)
			r.subscripts([]Word{lit(text(f.src, x))})
		}
		r.assigned(f, c)
	case *syntax.TestClause:
		r.test(f, c)
	default:
		r.sweep(f, c)
		r.doubt("a kind of command that is not understood")
	}
	return nothing
}

// assigned makes the variables numbers that arithmetic assigns to.
func (r *reader) assigned(f frame, n syntax.Node) {
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
			r.sets(f, w.Lit(), opaque)
		}
		return true
	})
}

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
	for i := from; i < len(r.Commands); i++ {
		y.in.from = append(y.in.from, i)
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
// It has rounds of them at most; 0 is any number.
func (r *reader) loop(f frame, rounds int, body func(frame) []Word) []Word {
	from := len(r.Commands)
	for pass := range 4 {
		g := f.fork()
		g.depth++
		if pass > 0 && g.again == 0 {
			g.again = from + 1
		}
		g.loop = &wayOut{base: f.sc}
		out := body(g)
		last := g.sc.gone && !g.loop.rounds || rounds == pass+1
		changes := false
		for name, v := range g.sc.vars {
			old, ok := f.sc.lookup(name)
			if !ok || !equal(old, union([]variable{old, v})) {
				changes = changes || ok || !strings.HasPrefix(name, "\x00")
				if pass == 2 && !strings.HasPrefix(name, "\x00function ") {
					g.sc.vars[name] = variable{alts: unknown}
				}
			}
		}
		f.sc.join(rounds > 0 && pass == 0, append(g.loop.states, g.sc)...)
		if !changes || last || r.steps > maxSteps {
			return either(out, nothing)
		}
	}
	return unknown
}

func (r *reader) each(f frame, c *syntax.ForClause) []Word {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.sweep(f, c.Loop)
		r.assigned(f, c.Loop)
		return r.loop(f, 0, func(g frame) []Word { return r.stmts(g, c.Do) })
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
	return r.loop(f, rounds, func(g frame) []Word {
		r.sets(g, iter.Name.Value, alts)
		return r.stmts(g, c.Do)
	})
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

func (r *reader) define(f frame, c *syntax.FuncDecl) []Word {
	if c.Name == nil {
		r.doubt("a function without a name")
		return nothing
	}
	fn := function{c.Name.Value, c.Body, f.src}
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

// simple reads a simple command in each way in which it can be expanded.
func (r *reader) simple(f frame, st *syntax.Stmt, c *syntax.CallExpr) []Word {
	ch := &choices{}
	var out []Word
	var scopes []*scope
	for {
		g := f.fork()
		g.choice, g.quiet = ch, f.quiet
		printed := r.expanded(g, st, c)
		if scopes == nil {
			out = printed
		} else {
			out = either(out, printed)
		}
		scopes = append(scopes, g.sc)
		if !ch.next() {
			break
		}
		if ch.turns >= maxChoices {
			r.doubt("more than %d ways to expand a command", maxChoices)
			break
		}
	}
	if len(scopes) == 1 {
		f.sc.absorb(scopes[0])
	} else {
		f.sc.join(true, scopes...)
	}
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
					r.sweep(f, e.Index)
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
			f.sc.set(a.Name.Value, variable{list: list, array: true, alts: unknown})
			continue
		case a.Index != nil:
			r.sweep(f, a.Index)
			r.one(f, a.Value)
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
	if f.again > 0 && slices.ContainsFunc(r.Commands[f.again-1:], func(o Command) bool { return repeats(o, c) }) {
		return
	}
	r.Commands = append(r.Commands, c)
}

// repeats reports whether b is a again, as in the next round of a loop.
func repeats(a, b Command) bool {
	return a.Source == b.Source && a.Name == b.Name && same(a.Dir, b.Dir) && same(a.Path, b.Path) && slices.Equal(a.By, b.By) && a.Input.Is == b.Input.Is && same(a.Input.Text, b.Input.Text) &&
		slices.EqualFunc(a.Args, b.Args, same) &&
		slices.EqualFunc(a.Env, b.Env, func(a, b Assign) bool { return a.Name == b.Name && same(a.Value, b.Value) }) &&
		slices.EqualFunc(a.Redirects, b.Redirects, func(a, b Redirect) bool { return a.Op == b.Op && same(a.Path, b.Path) })
}
