package star

import (
	"fmt"

	"go.starlark.net/syntax"
)

// The interpreter bounds steps, not what one step makes: "x" * 10**9 is one. So operations that make or go through as much as their operands say are calls of
// guards, from the syntax tree on; what they do is the same. The guards' names are none that a program can write.
const (
	guardOp     = "@"       // x + y is @+(x, y), x += y is x = @+=(x, y)
	guardAt     = "@at"     // a[i] += y is @at+=(a, i, y)
	guardKey    = "@key"    // of a dict, before it is hashed
	guardDict   = "@dict"   // after one was displayed
	guardSlice  = "@slice"  // x[a:b]
	guardSpread = "@spread" // f(*x), f(**x)
	guardAttr   = "@attr"   // x.join
	guardNone   = "@none"   // a bound that a slice doesn't have
)

// guarded are the operators whose results or work grow with their operands.
var guarded = map[syntax.Token]bool{
	syntax.PLUS: true, syntax.STAR: true, syntax.PERCENT: true, syntax.LTLT: true, syntax.PIPE: true, syntax.AMP: true, syntax.CIRCUMFLEX: true, syntax.MINUS: true,
	syntax.EQL: true, syntax.NEQ: true, syntax.LT: true, syntax.GT: true, syntax.LE: true, syntax.GE: true, syntax.IN: true, syntax.NOT_IN: true,
}

var augmented = map[syntax.Token]syntax.Token{
	syntax.PLUS_EQ: syntax.PLUS, syntax.MINUS_EQ: syntax.MINUS, syntax.STAR_EQ: syntax.STAR, syntax.SLASH_EQ: syntax.SLASH, syntax.SLASHSLASH_EQ: syntax.SLASHSLASH,
	syntax.PERCENT_EQ: syntax.PERCENT, syntax.AMP_EQ: syntax.AMP, syntax.PIPE_EQ: syntax.PIPE, syntax.CIRCUMFLEX_EQ: syntax.CIRCUMFLEX,
	syntax.LTLT_EQ: syntax.LTLT, syntax.GTGT_EQ: syntax.GTGT,
}

// rewriter puts guards into a syntax tree, and finds what programs may not have.
type rewriter struct{ problems []Problem }

func (r *rewriter) problem(at syntax.Position, format string, args ...any) {
	r.problems = append(r.problems, Problem{place(at), fmt.Sprintf(format, args...)})
}

func (r *rewriter) block(stmts []syntax.Stmt) {
	for i, s := range stmts {
		stmts[i] = r.stmt(s)
	}
}

func (r *rewriter) stmt(s syntax.Stmt) syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return r.assign(s)
	case *syntax.DefStmt:
		r.params(s.Params)
		r.block(s.Body)
	case *syntax.ExprStmt:
		s.X = r.expr(s.X)
	case *syntax.ForStmt:
		r.target(s.Vars)
		s.X = r.expr(s.X)
		r.block(s.Body)
	case *syntax.WhileStmt:
		s.Cond = r.expr(s.Cond)
		r.block(s.Body)
	case *syntax.IfStmt:
		s.Cond = r.expr(s.Cond)
		r.block(s.True)
		r.block(s.False)
	case *syntax.LoadStmt:
		r.problem(s.Load, "there is no load: a program is one file")
	case *syntax.ReturnStmt:
		if s.Result != nil {
			s.Result = r.expr(s.Result)
		}
	}
	return s
}

func (r *rewriter) assign(s *syntax.AssignStmt) syntax.Stmt {
	if _, ok := augmented[s.Op]; !ok {
		r.target(s.LHS)
		s.RHS = r.expr(s.RHS)
		return s
	}
	left := s.LHS
	for paren, ok := left.(*syntax.ParenExpr); ok; paren, ok = left.(*syntax.ParenExpr) {
		left = paren.X
	}
	switch x := left.(type) {
	case *syntax.Ident:
		s.RHS = call(guardOp+s.Op.String(), s.OpPos, &syntax.Ident{NamePos: x.NamePos, Name: x.Name}, r.expr(s.RHS))
		s.Op = syntax.EQ
	case *syntax.IndexExpr:
		return &syntax.ExprStmt{X: call(guardAt+s.Op.String(), s.OpPos, r.expr(x.X), r.expr(x.Y), r.expr(s.RHS))}
	case *syntax.DotExpr:
		r.target(x)
	default:
		s.RHS = r.expr(s.RHS) // the resolver says what is wrong
	}
	return s
}

// target is what is assigned to.
func (r *rewriter) target(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		r.target(x.X)
	case *syntax.TupleExpr:
		for _, e := range x.List {
			r.target(e)
		}
	case *syntax.ListExpr:
		for _, e := range x.List {
			r.target(e)
		}
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.key(x.Y)
	case *syntax.DotExpr:
		r.problem(x.Dot, "fields can't be set")
	}
}

func (r *rewriter) params(ps []syntax.Expr) {
	for _, p := range ps {
		if b, ok := p.(*syntax.BinaryExpr); ok {
			b.Y = r.expr(b.Y) // a default
		}
	}
}

func (r *rewriter) exprs(xs []syntax.Expr) {
	for i, x := range xs {
		xs[i] = r.expr(x)
	}
}

func (r *rewriter) expr(x syntax.Expr) syntax.Expr {
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		x.X, x.Y = r.expr(x.X), r.expr(x.Y)
		if guarded[x.Op] {
			return call(guardOp+x.Op.String(), x.OpPos, x.X, x.Y)
		}
	case *syntax.CallExpr:
		x.Fn = r.expr(x.Fn)
		r.args(x.Args)
	case *syntax.Comprehension:
		for _, c := range x.Clauses {
			switch c := c.(type) {
			case *syntax.ForClause:
				r.target(c.Vars)
				c.X = r.expr(c.X)
			case *syntax.IfClause:
				c.Cond = r.expr(c.Cond)
			}
		}
		if x.Curly {
			x.Body = r.entry(x.Body)
			return call(guardDict, x.Lbrack, x)
		}
		x.Body = r.expr(x.Body)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = r.expr(x.Cond), r.expr(x.True), r.expr(x.False)
	case *syntax.DictExpr:
		for i, e := range x.List {
			x.List[i] = r.entry(e)
		}
		return call(guardDict, x.Lbrace, x)
	case *syntax.DotExpr:
		x.X = r.expr(x.X)
		if methods[x.Name.Name] {
			return call(guardAttr, x.Dot, x.X, &syntax.Literal{Token: syntax.STRING, TokenPos: x.NamePos, Value: x.Name.Name})
		}
	case *syntax.IndexExpr:
		x.X, x.Y = r.expr(x.X), r.key(x.Y)
	case *syntax.LambdaExpr:
		r.params(x.Params)
		x.Body = r.expr(x.Body)
	case *syntax.ListExpr:
		r.exprs(x.List)
	case *syntax.TupleExpr:
		r.exprs(x.List)
	case *syntax.ParenExpr:
		x.X = r.expr(x.X)
	case *syntax.SliceExpr:
		return call(guardSlice, x.Lbrack, r.expr(x.X), r.bound(x.Lo, x.Lbrack), r.bound(x.Hi, x.Lbrack), r.bound(x.Step, x.Lbrack))
	case *syntax.UnaryExpr:
		if x.X != nil {
			x.X = r.expr(x.X)
		}
	}
	return x
}

// bound of a slice; none is None.
func (r *rewriter) bound(x syntax.Expr, at syntax.Position) syntax.Expr {
	if x == nil {
		return &syntax.Ident{NamePos: at, Name: guardNone}
	}
	return r.expr(x)
}

func (r *rewriter) args(args []syntax.Expr) {
	for i, a := range args {
		switch a := a.(type) {
		case *syntax.BinaryExpr:
			if a.Op == syntax.EQ { // a named argument
				a.Y = r.expr(a.Y)
				continue
			}
		case *syntax.UnaryExpr:
			switch a.Op {
			case syntax.STAR:
				a.X = call(guardSpread, a.OpPos, r.expr(a.X))
				continue
			case syntax.STARSTAR:
				a.X = call(guardSpread, a.OpPos, r.expr(a.X))
				continue
			}
		}
		args[i] = r.expr(a)
	}
}

func (r *rewriter) entry(x syntax.Expr) syntax.Expr {
	e, ok := x.(*syntax.DictEntry)
	if !ok { // of a set
		return r.key(x)
	}
	e.Key, e.Value = r.key(e.Key), r.expr(e.Value)
	return e
}

// key is what will be hashed: a nest of tuples that share can take for ever.
func (r *rewriter) key(x syntax.Expr) syntax.Expr {
	if _, ok := x.(*syntax.Literal); ok {
		return x
	}
	return call(guardKey, syntax.Start(x), r.expr(x))
}

func call(fn string, at syntax.Position, args ...syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: fn}, Lparen: at, Args: args, Rparen: at}
}
