package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// expander makes fields of words as the shell does: braces, tilde, variables, substitutions, splitting, quotes. Globs stay patterns.
type expander struct {
	r      *reader
	f      frame
	fields []Word
	cur    Word
	open   bool // cur has begun
	assign bool // the value of an assignment: it is not split
}

// words expands ws to fields.
func (r *reader) words(f frame, ws []*syntax.Word) []Word {
	x := expander{r: r, f: f, fields: make([]Word, 0, len(ws))}
	for _, w := range ws {
		if lit := plain(w); lit != "" {
			x.fields = append(x.fields, Word{Text: lit, Known: true, Source: lit})
			continue
		}
		if !braced(w) {
			x.word(w)
			continue
		}
		split := *w
		split.Parts = append([]syntax.WordPart(nil), w.Parts...)
		syntax.SplitBraces(&split)
		for one, err := range expand.BracesSeq(nil, &split) {
			if err != nil || len(x.fields) > maxWords {
				r.doubt("braces that stand for too many words")
				x.fields = append(x.fields, Word{})
				break
			}
			x.source(one, w)
		}
	}
	if len(x.fields) > maxWords {
		r.doubt("a command with more than %d words", maxWords)
		x.fields = append(x.fields[:maxWords], Word{})
	}
	return x.fields
}

// one expands w to a single value, as in an assignment, a redirection or a case.
func (r *reader) one(f frame, w *syntax.Word) Word {
	if w == nil {
		return Word{Known: true}
	}
	x := expander{r: r, f: f, assign: true}
	x.word(w)
	if len(x.fields) == 0 {
		return Word{Known: true, Source: text(f.src, w)}
	}
	return x.fields[0]
}

// body expands a heredoc, in which quotes have no meaning; if its delimiter is quoted nothing has.
func (r *reader) body(f frame, w, delimiter *syntax.Word) Word {
	if w == nil {
		return Word{Known: true}
	}
	if plain(delimiter) == "" && strings.ContainsAny(text(f.src, delimiter), "'\"\\") {
		raw := Word{Known: true}
		for _, p := range w.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				raw.Text += lit.Value
			} else {
				raw.Known = false
			}
		}
		return raw
	}
	x := expander{r: r, f: f}
	x.begin()
	for _, p := range w.Parts {
		x.part(p, true, false)
	}
	return x.cur
}

// plain gives w when it is a literal without any character that means something.
func plain(w *syntax.Word) string {
	if len(w.Parts) != 1 {
		return ""
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\~{*?[") {
		return ""
	}
	return lit.Value
}

func braced(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			return true
		}
	}
	return false
}

// text is what n looks like in src.
func text(src string, n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(src) || from > to {
		return ""
	}
	return src[from:to]
}

func (x *expander) word(w *syntax.Word) { x.source(w, w) }

func (x *expander) source(w, as *syntax.Word) {
	n := len(x.fields)
	for i, p := range w.Parts {
		x.part(p, false, i == 0)
	}
	x.end()
	src := text(x.f.src, as)
	for i := n; i < len(x.fields); i++ {
		x.fields[i].Source = src
	}
}

func (x *expander) begin() {
	if !x.open {
		x.open, x.cur = true, Word{Known: true}
	}
}

func (x *expander) end() {
	if x.open && len(x.fields) <= maxWords {
		x.fields = append(x.fields, x.cur)
	}
	x.open, x.cur = false, Word{}
}

// add appends what is quoted or can't be split.
func (x *expander) add(s string) {
	x.begin()
	if !x.cur.Known {
		return
	}
	if len(x.cur.Text)+len(s) > maxSource {
		x.cur.Known = false
		return
	}
	x.cur.Text += s
}

// value appends a value, split at IFS and with its globs if it stands unquoted.
func (x *expander) value(v Word, quoted bool) {
	switch {
	case !v.Known:
		x.add(v.Text)
		x.cur.Known, x.cur.Glob = false, x.cur.Glob || v.Glob
	case quoted || x.assign:
		x.add(v.Text)
		x.cur.Glob = x.cur.Glob || v.Glob
	default:
		ifs := " \t\n"
		if w, ok := x.f.sc.lookup("IFS"); ok && len(w.alts) == 1 && w.alts[0].Known {
			ifs = w.alts[0].Text
		}
		for s := v.Text; s != ""; {
			i := strings.IndexAny(s, ifs)
			if i == 0 {
				if !strings.Contains(" \t\n", s[:1]) {
					x.begin() // two commas have an empty word between them
				}
				x.end()
				s = s[1:]
				continue
			}
			if i < 0 {
				i = len(s)
			}
			x.add(s[:i])
			x.cur.Glob = x.cur.Glob || v.Glob || strings.ContainsAny(s[:i], "*?[")
			s = s[i:]
		}
	}
}

func (x *expander) list(ws []Word, quoted, joined bool) {
	for i, w := range ws {
		if i > 0 && (!quoted || !joined) && !x.assign {
			x.end()
		} else if i > 0 {
			x.add(" ")
		}
		if quoted {
			x.begin()
		}
		x.value(w, quoted)
	}
}

func (x *expander) part(p syntax.WordPart, quoted, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		x.literal(p.Value, quoted, first)
	case *syntax.SglQuoted:
		x.begin()
		v := p.Value
		if p.Dollar {
			s, _, err := expand.Format(nil, v, nil)
			if err != nil {
				x.value(Word{}, true)
				return
			}
			v, _, _ = strings.Cut(s, "\x00")
		}
		x.add(v)
	case *syntax.DblQuoted:
		if len(p.Parts) != 1 || !isList(p.Parts[0]) { // "$@" of nothing is no word
			x.begin()
		}
		for _, q := range p.Parts {
			x.part(q, true, false)
		}
	case *syntax.ParamExp:
		x.param(p, quoted)
	case *syntax.CmdSubst:
		out := x.r.substitute(x.f, p.Stmts, "$(…)")
		v := x.f.choice.pick(p, out)
		v.Text = strings.TrimRight(v.Text, "\n")
		if v.Known {
			v.Text = strings.ReplaceAll(v.Text, "\x00", "")
		}
		x.value(v, quoted)
	case *syntax.ArithmExp:
		x.value(x.r.arithmetic(x.f, p.X), quoted)
	case *syntax.ProcSubst:
		x.add(x.r.process(x.f, p))
	case *syntax.ExtGlob:
		x.add(text(x.f.src, p))
		x.cur.Glob = true
		if strings.ContainsAny(p.Pattern.Value, "$`") {
			x.cur.Known = false
		}
	default: // a BraceExp that was no sequence of words
		x.value(Word{}, quoted)
	}
}

func isList(p syntax.WordPart) bool {
	pe, ok := p.(*syntax.ParamExp)
	if !ok || pe.Length || pe.Excl || pe.Exp != nil || pe.Param == nil {
		return false
	}
	lit, ok := pe.Index.(*syntax.Word)
	return pe.Param.Value == "@" || ok && lit.Lit() == "@"
}

// literal appends text that stands in the script, with its backslashes, tilde and globs.
func (x *expander) literal(s string, quoted, first bool) {
	if s == "" && !quoted {
		return // of a brace
	}
	x.begin()
	if first && !quoted && strings.HasPrefix(s, "~") || x.assign && !quoted && strings.Contains(s, ":~") {
		s = x.tilde(s, first)
	}
	for s != "" && x.cur.Known {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			i = len(s)
		}
		x.add(s[:i])
		x.cur.Glob = x.cur.Glob || !quoted && strings.ContainsAny(s[:i], "*?[")
		if s = s[i:]; s == "" {
			return
		}
		switch {
		case len(s) == 1:
			x.add(s)
			s = ""
		case s[1] == '\n':
			s = s[2:]
		case quoted && !strings.ContainsRune("$`\"\\", rune(s[1])):
			x.add(s[:2])
			s = s[2:]
		default:
			x.add(s[1:2])
			s = s[2:]
		}
	}
}

// tilde replaces the home directories at the beginning, and in an assignment behind colons, by their names.
func (x *expander) tilde(s string, first bool) string {
	parts := strings.Split(s, ":")
	if !x.assign {
		parts = []string{s}
	}
	for i, p := range parts {
		if !strings.HasPrefix(p, "~") || i == 0 && !first {
			continue
		}
		user, rest, slash := strings.Cut(p[1:], "/")
		if slash {
			rest = "/" + rest
		}
		var home Word
		switch {
		case user == "":
			home = x.f.choice.pick("HOME", x.r.variable(x.f, "HOME").alts)
		case user == "+":
			home = x.f.dir()
		case user == "-":
			home = x.f.choice.pick("OLDPWD", x.r.variable(x.f, "OLDPWD").alts)
		case user == "root":
			home = Word{Text: "/root", Known: true}
		case syntax.ValidName(strings.ReplaceAll(user, "-", "_")):
			home = Word{Text: "/home/" + user, Known: true}
		default:
			continue
		}
		if !home.Known {
			x.value(home, true)
			return ""
		}
		parts[i] = home.Text + rest
	}
	return strings.Join(parts, ":")
}

// variable gives what is known of a variable.
func (r *reader) variable(f frame, name string) variable {
	if v, ok := f.sc.lookup(name); ok {
		return v
	}
	switch name {
	case "IFS":
		return variable{alts: []Word{{Text: " \t\n", Known: true}}}
	case "PWD":
		v, _ := f.sc.lookup(dirKey)
		return v
	case "?", "$", "!", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "SHLVL", "HOSTNAME", "MACHTYPE", "HOSTTYPE", "OSTYPE", "OPTIND", "BASH_VERSION", "BASH_SUBSHELL":
		return variable{alts: opaque}
	case "0":
		if v, ok := f.sc.lookup(argZero); ok {
			return v
		}
		return variable{alts: []Word{{Text: "bash", Known: true}}}
	case "-":
		return variable{alts: []Word{{Text: "hBc", Known: true}}}
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 {
		args, ok := r.params(f)
		switch {
		case !ok:
			return variable{alts: unknown}
		case n <= len(args):
			return variable{alts: []Word{args[n-1]}}
		}
		return variable{alts: nothing}
	}
	if r.o.Env != nil && !f.remote {
		if v, ok := r.o.Env(name); ok {
			return variable{alts: []Word{{Text: v, Known: true}}}
		}
	}
	return variable{alts: unknown}
}

// params are the positional parameters; false when they are not known. A command has none.
func (r *reader) params(f frame) ([]Word, bool) {
	v, ok := f.sc.lookup(argsKey)
	return v.list, !ok || v.array
}

func (x *expander) param(p *syntax.ParamExp, quoted bool) {
	if p.Param == nil || p.Flags != nil || p.NestedParam != nil {
		x.value(Word{}, quoted)
		return
	}
	name := p.Param.Value
	v := x.r.variable(x.f, name)
	if name == "@" || name == "*" {
		args, ok := x.r.params(x.f)
		v = variable{list: args, array: ok, alts: unknown}
	}
	all := name == "@" || name == "*"
	if p.Index != nil {
		x.r.sweep(x.f, p.Index)
		w, _ := p.Index.(*syntax.Word)
		switch i, err := strconv.Atoi(wordLit(w)); {
		case wordLit(w) == "@" || wordLit(w) == "*":
			all = true
			name = wordLit(w)
			if !v.array && len(v.alts) == 1 {
				v.list, v.array = v.alts, true
			}
		case v.array && err == nil && i >= 0:
			v.alts = nothing
			if i < len(v.list) {
				v.alts = v.list[i : i+1]
			}
		case err == nil && i == 0:
		default:
			v.alts = unknown
		}
	} else if v.array && !all && name != "" {
		v.alts = nothing
		if len(v.list) > 0 {
			v.alts = v.list[:1]
		}
	}
	simple := !p.Excl && !p.Length && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	switch {
	case all && simple && v.array:
		x.list(v.list, quoted, name == "*")
	case all && p.Length && v.array:
		x.value(Word{Text: strconv.Itoa(len(v.list)), Known: true}, quoted)
	case name == "#" && simple:
		if args, ok := x.r.params(x.f); ok {
			x.value(Word{Text: strconv.Itoa(len(args)), Known: true}, quoted)
			return
		}
		x.value(opaque[0], quoted)
	case simple:
		x.value(x.f.choice.pick(name, v.alts), quoted)
	default:
		x.value(x.operate(p, v, all), quoted)
	}
}

func wordLit(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return w.Lit()
}

// operate gives ${name:-word} and its relatives.
func (x *expander) operate(p *syntax.ParamExp, v variable, all bool) Word {
	cur := x.f.choice.pick(p.Param.Value, v.alts)
	word := func() Word { return x.r.one(x.f, p.Exp.Word) }
	switch {
	case p.Excl:
		if p.Names != 0 || p.Exp != nil || !cur.Known || cur.Glob || !syntax.ValidName(cur.Text) {
			return Word{}
		}
		return x.f.choice.pick(cur.Text, x.r.variable(x.f, cur.Text).alts)
	case p.Length:
		if cur.Known && !cur.Glob {
			return Word{Text: strconv.Itoa(len(cur.Text)), Known: true}
		}
		return opaque[0]
	case all:
		x.r.sweep(x.f, p)
		return Word{}
	case p.Exp != nil && p.Exp.Op <= syntax.AssignUnsetOrNull:
		w := word()
		switch p.Exp.Op {
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if cur.Known && cur.Text == "" {
				return Word{Known: true}
			}
			if cur.Known {
				return w
			}
			return x.f.choice.pick(p, []Word{w, {Known: true}})
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
			return cur
		}
		if cur.Known && cur.Text != "" {
			return cur
		}
		if !cur.Known { // it is what it is, or the default
			w = x.f.choice.pick(p, []Word{w, cur})
		}
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			x.r.sets(x.f, p.Param.Value, []Word{w})
		}
		return w
	}
	if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && wordLit(p.Exp.Word) == "P" {
		x.r.doubt("${%s@P}, which runs what it expands to", p.Param.Value)
		return Word{}
	}
	x.r.sweep(x.f, p)
	if p.Slice != nil {
		x.r.arithmetic(x.f, p.Slice.Offset)
		x.r.arithmetic(x.f, p.Slice.Length)
	}
	if !cur.Known || len(cur.Text) > 4<<10 || p.Index != nil {
		return Word{}
	}
	e := &environ{r: x.r, f: x.f}
	out, err := expand.Literal(&expand.Config{Env: e}, &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{p}}}})
	if err != nil || e.missed {
		return Word{}
	}
	return Word{Text: out, Known: true, Glob: cur.Glob}
}

// arithmetic gives the value of an expression: digits, whatever it is.
func (r *reader) arithmetic(f frame, n syntax.ArithmExpr) Word {
	if n == nil {
		return opaque[0]
	}
	if w, ok := n.(*syntax.Word); ok {
		if _, err := strconv.Atoi(w.Lit()); err == nil {
			return Word{Text: w.Lit(), Known: true}
		}
	}
	r.sweep(f, n)
	e := &environ{r: r, f: f}
	heavy := false
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryArithm:
			heavy = heavy || n.Op == syntax.Pow || n.Op == syntax.PowAssgn || isAssign(n.Op)
		case *syntax.UnaryArithm:
			heavy = heavy || n.Op == syntax.Inc || n.Op == syntax.Dec
		case *syntax.Lit:
			if syntax.ValidName(n.Value) {
				e.Get(n.Value)
			}
		}
		return true
	})
	if heavy || e.missed || e.runs {
		if e.runs {
			r.doubt("arithmetic with a value that runs a command")
		}
		return opaque[0]
	}
	v, err := expand.Arithm(&expand.Config{Env: e}, n)
	if e.runs {
		r.doubt("arithmetic with a value that runs a command")
	}
	if err != nil || e.missed {
		return opaque[0]
	}
	return Word{Text: strconv.Itoa(v), Known: true}
}

func isAssign(op syntax.BinAritOperator) bool {
	return strings.HasSuffix(op.String(), "=") && op != syntax.Eql && op != syntax.Neq && op != syntax.Leq && op != syntax.Geq
}

// environ shows the variables to package expand, and notes when one is asked for that is not known.
type environ struct {
	r      *reader
	f      frame
	missed bool
	runs   bool // a value has a substitution in it, which arithmetic would run
}

// Get is of [expand.Environ].
func (e *environ) Get(name string) expand.Variable {
	if name == "" || !syntax.ValidName(name) && strings.Trim(name, "0123456789") != "" {
		return expand.Variable{}
	}
	w := e.f.choice.pick(name, e.r.variable(e.f, name).alts)
	if !w.Known {
		e.missed = true
		return expand.Variable{}
	}
	if strings.Contains(w.Text, "$(") || strings.Contains(w.Text, "`") {
		e.runs = true
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: w.Text}
}

// Each is of [expand.Environ]; nothing that is asked of package expand here needs it.
func (e *environ) Each(func(string, expand.Variable) bool) {}

// sweep reads the substitutions in n, wherever they stand.
func (r *reader) sweep(f frame, n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.substitute(f, n.Stmts, "$(…)")
			return false
		case *syntax.ProcSubst:
			r.process(f, n)
			return false
		case *syntax.SglQuoted:
			r.index(n.Value)
		case *syntax.Lit:
			r.index(strings.ReplaceAll(n.Value, `\`, ""))
		}
		return true
	})
}

// index notes the name of an array element whose index is a command: arithmetic runs it, and so does what asks for a variable by its name.
func (r *reader) index(name string) {
	if strings.Contains(name, "[$(") || strings.Contains(name, "[`") {
		r.doubt("an index that is a command: %s", clip(name))
	}
}

// test reads [[ … ]], in which some operators take arithmetic or the name of a variable.
func (r *reader) test(f frame, c *syntax.TestClause) {
	r.sweep(f, c)
	f.quiet = true
	numbers := func(ws ...syntax.TestExpr) {
		for _, w := range ws {
			w, ok := w.(*syntax.Word)
			if !ok {
				continue
			}
			for _, v := range r.every(f, []*syntax.Word{{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: w.Parts}}}}) {
				r.index(v.Text)
				for _, v := range r.variable(f, v.Text).alts {
					r.index(v.Text)
				}
			}
		}
	}
	syntax.Walk(c, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryTest:
			if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
				numbers(n.X, n.Y)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				numbers(n.X)
			}
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		}
		return true
	})
}

// substitute reads a command substitution and gives what it would print.
func (r *reader) substitute(f frame, stmts []*syntax.Stmt, by string) []Word {
	f = f.under(by).fork()
	f.in, f.choice = stream{}, nil
	if len(stmts) == 1 && stmts[0].Cmd == nil && len(stmts[0].Redirs) == 1 && stmts[0].Redirs[0].Op == syntax.RdrIn { // $(<file)
		path := r.one(f, stmts[0].Redirs[0].Word)
		r.show(f, Command{Name: ":", Path: Word{Text: ":", Known: true}, Redirects: []Redirect{{Op: "<", Path: path}}, Source: text(f.src, stmts[0])})
		return r.file(f, path)
	}
	return r.stmts(f, stmts)
}

// process reads a process substitution and gives the name of the file that stands for it.
func (r *reader) process(f frame, p *syntax.ProcSubst) string {
	r.subst++
	name := "/dev/fd/" + strconv.Itoa(63+r.subst)
	g := f.under(p.Op.String() + "…)").fork()
	g.choice, g.async = nil, true
	g.in = stream{}
	if p.Op == syntax.CmdOut {
		g.in = stream{alts: unknown, is: false}
	}
	r.write(name, r.stmts(g, p.Stmts))
	return name
}
