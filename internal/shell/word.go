package shell

import (
	"slices"
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

// room is for n words. Commands have few, so that they share what is allocated.
func (r *reader) room(n int) []Word {
	const many = 64
	if n > many/4 {
		return make([]Word, 0, n)
	}
	if cap(r.spare)-len(r.spare) < n {
		r.spare = make([]Word, 0, min(max(2*cap(r.spare), 2*n, 8), many))
	}
	i := len(r.spare)
	r.spare = r.spare[:i+n]
	return r.spare[i : i : i+n]
}

// words expands ws to fields.
func (r *reader) words(f frame, ws []*syntax.Word) []Word {
	x := expander{r: r, f: f, fields: r.room(len(ws))}
	for _, w := range ws {
		switch lit := plain(w); {
		case lit != "":
			x.fields = append(x.fields, Word{Text: lit, Known: true, Source: lit})
		case braced(w) && (!f.marked || !strings.Contains(text(f.src, w), "{}")):
			ones, all := alternatives(w)
			for _, one := range ones {
				x.source(one, w)
			}
			if !all {
				r.doubt("braces that stand for too many words")
				x.fields = append(x.fields, Word{})
			}
		default:
			x.word(w)
		}
	}
	if len(x.fields) > maxWords {
		r.doubt("a command with more than %d words", maxWords)
		x.fields = append(x.fields[:maxWords], Word{})
	}
	return x.fields
}

// alternatives are the words that one with braces stands for; false when there are more than these.
func alternatives(w *syntax.Word) (ones []*syntax.Word, all bool) {
	split := *w
	split.Parts = slices.Clone(w.Parts)
	syntax.SplitBraces(&split)
	for one, err := range expand.BracesSeq(nil, &split) {
		if err != nil || len(ones) > maxWords {
			return ones, false
		}
		ones = append(ones, one)
	}
	return ones, true
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
	if !ok {
		return ""
	}
	for i := range len(lit.Value) {
		switch lit.Value[i] {
		case '\\', '~', '{', '*', '?', '[':
			return ""
		}
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
	if x.f.marked {
		if front, _, ok := strings.Cut(s, "{}"); ok {
			x.cur.Text += front
			x.cur.Known = false
			return
		}
	}
	if len(x.cur.Text)+len(s) > maxSource {
		x.cur.Known = false
		return
	}
	x.cur.Text += s
	x.cur.Number = x.cur.Number && s == ""
}

// value appends a value, split at IFS and with its globs if it stands unquoted.
func (x *expander) value(v Word, quoted bool) {
	switch {
	case !v.Known:
		x.add(v.Text)
		x.cur.Known, x.cur.Glob = false, x.cur.Glob || v.Glob
	case quoted || x.assign:
		alone := x.cur.Text == ""
		x.add(v.Text)
		x.cur.Glob = x.cur.Glob || v.Glob
		x.cur.Number = v.Number && alone
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
			alone := x.cur.Text == ""
			x.add(s[:i])
			x.cur.Glob = x.cur.Glob || v.Glob || strings.ContainsAny(s[:i], "*?[")
			x.cur.Number = v.Number && alone
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
		v := x.f.choice.pickAt(p, out)
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
		case *syntax.ArithmExp:
			r.evaluated(f, n.X)
			r.assigned(f, n.X)
		case *syntax.ParamExp:
			r.looked(f, n)
		case *syntax.SglQuoted:
			r.index(n.Value)
		case *syntax.Lit:
			r.index(strings.ReplaceAll(n.Value, `\`, ""))
		}
		return true
	})
}

// looked notes what ${…} evaluates.
func (r *reader) looked(f frame, p *syntax.ParamExp) {
	at := false
	if w, ok := p.Index.(*syntax.Word); ok {
		at = w.Lit() == "@" || w.Lit() == "*"
	}
	if p.Index != nil && !at {
		r.evaluated(f, p.Index)
		r.assigned(f, p.Index)
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			r.evaluated(f, x)
			r.assigned(f, x)
		}
	}
	if !p.Excl || p.Names != 0 || p.Param == nil || at {
		return
	}
	for _, v := range r.variable(f, p.Param.Value).alts { // it is the name of another one
		if p.Index != nil || !v.Known || v.Glob || !syntax.ValidName(v.Text) {
			r.evaluates(text(f.src, p))
		}
	}
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
