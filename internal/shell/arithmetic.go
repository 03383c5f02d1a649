package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Arithmetic and conditions, in which names of variables are evaluated.

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
