package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// Arithmetic and conditions, in which names of variables are evaluated.

// arithmetic gives the value of an expression: digits, whatever it is.
func (r *reader) arithmetic(f frame, n syntax.ArithmExpr) Word {
	if n == nil {
		return number[0]
	}
	if w, ok := n.(*syntax.Word); ok {
		if _, err := strconv.Atoi(w.Lit()); err == nil {
			return Word{Text: w.Lit(), Known: true}
		}
	}
	r.sweep(f, n)
	r.evaluated(f, n)
	r.assigned(f, n)
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
		return number[0]
	}
	v, err := expand.Arithm(&expand.Config{Env: e}, n)
	if e.runs {
		r.doubt("arithmetic with a value that runs a command")
	}
	if err != nil || e.missed {
		return number[0]
	}
	return Word{Text: strconv.Itoa(v), Known: true}
}

func isAssign(op syntax.BinAritOperator) bool {
	return strings.HasSuffix(op.String(), "=") && op != syntax.Eql && op != syntax.Neq && op != syntax.Leq && op != syntax.Geq
}

// numeric is a value that arithmetic takes for a number, and for nothing else.
var numeric = lazy.Regexp(`^[ \t\n]*[-+]?([0-9][0-9a-zA-Z#@_]*)?[ \t\n]*$`)

// evaluated notes what of an expression is not known to be a number.
func (r *reader) evaluated(f frame, n syntax.Node) {
	if n == nil {
		return
	}
	f.quiet = true
	syntax.Walk(n, func(n syntax.Node) bool {
		if b, ok := n.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
			if w, ok := b.X.(*syntax.Word); ok && syntax.ValidName(w.Lit()) { // what it was is not looked at
				r.evaluated(f, b.Y)
				return false
			}
		}
		w, ok := n.(*syntax.Word)
		if ok {
			r.evaluatedWord(f, w)
		}
		return !ok
	})
}

func (r *reader) evaluatedWord(f frame, w *syntax.Word) {
	name := w.Lit()
	if p := element(w); p != nil {
		name = p.Param.Value
		r.evaluated(f, p.Index)
	}
	var values []Word
	if syntax.ValidName(name) {
		v := r.variable(f, name)
		if values = v.list; !v.array {
			values = v.alts
		}
	} else {
		values = r.every(f, []*syntax.Word{{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: w.Parts}}}})
	}
	for _, v := range values {
		if syntax.ValidName(v.Text) && v.Known && !v.Glob && name == "" { // of [[ x -eq 1 ]]
			values = append(values, r.variable(f, v.Text).alts...)
		}
	}
	for _, v := range values {
		if !v.Known || !v.Number && (v.Glob || !numeric.Get().MatchString(v.Text)) {
			r.evaluates(text(f.src, w))
		}
	}
}

// element is a[1] in arithmetic.
func element(w *syntax.Word) *syntax.ParamExp {
	if len(w.Parts) != 1 {
		return nil
	}
	p, ok := w.Parts[0].(*syntax.ParamExp)
	if !ok || !p.Short || p.Param == nil || p.Index == nil {
		return nil
	}
	return p
}

func (r *reader) evaluates(what string) {
	if len(r.Evaluates) < maxDoubts && !slices.Contains(r.Evaluates, what) {
		r.Evaluates = append(r.Evaluates, what)
	}
}

// subscript reads the index of an array, which is arithmetic.
func (r *reader) subscript(f frame, n syntax.ArithmExpr) {
	r.sweep(f, n)
	if w, ok := n.(*syntax.Word); ok && (w.Lit() == "@" || w.Lit() == "*") {
		return
	}
	r.evaluated(f, n)
	r.assigned(f, n)
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
	numbers := func(names bool, ws ...syntax.TestExpr) {
		for _, w := range ws {
			w, ok := w.(*syntax.Word)
			if !ok {
				continue
			}
			if names {
				for _, v := range r.every(f, []*syntax.Word{w}) {
					if !v.Known || v.Glob || !syntax.ValidName(v.Text) {
						r.evaluates(text(f.src, w))
					}
				}
			} else {
				r.evaluatedWord(f, w)
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
				numbers(false, n.X, n.Y)
			}
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
				numbers(true, n.X)
			}
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		}
		return true
	})
}
