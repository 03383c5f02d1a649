package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// Kinds of mutations, as the report names them.
const (
	kindNegate     = "negated condition"
	kindCompare    = "changed comparison"
	kindLogic      = "swapped && and ||"
	kindArithmetic = "changed arithmetic"
	kindBound      = "moved bound"
	kindDrop       = "dropped statement"
	kindDefer      = "dropped defer"
	kindNil        = "returned nil error"
	kindEarly      = "returned at once"
	kindCase       = "removed case"
)

// mutation is one small change of a file.
type mutation struct {
	Kind     string
	Function string
	Line     int
	Original string // the changed lines
	Mutated  string // the same lines after the change

	pkg        *source
	file       *file
	start, end int // the part of the file that changes
	text       string
	cover      token.Pos // a position that runs if the mutation can have an effect
	schema     func(id string) ([]wrap, []swap)
}

// finder collects the mutations of one file.
type finder struct {
	pkg   *source
	file  *file
	stack []ast.Node
	found []*mutation
}

// findMutations returns all mutations of a package that can be tried. Some do not compile.
func findMutations(pkg *source) []*mutation {
	var all []*mutation
	for _, f := range pkg.files {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		in := &finder{pkg: pkg, file: f}
		ast.PreorderStack(f.syntax, nil, func(n ast.Node, stack []ast.Node) bool {
			in.stack = stack
			return in.visit(n)
		})
		all = append(all, in.found...)
	}
	return all
}

// visit collects the mutations of a node. It returns whether the parts of the node count.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl:
		f.earlyReturn(n)
	case *ast.CallExpr:
		return !f.isPanic(n) && !f.isLog(n)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.SliceExpr:
		f.sliceBounds(n)
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.ReturnStmt:
		f.nilError(n)
	case *ast.DeferStmt:
		f.dropDefer(n)
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt:
		f.statement(n.(ast.Stmt))
	case *ast.SwitchStmt:
		f.cases(n, n.Tag, n.Body)
	case *ast.TypeSwitchStmt:
		f.cases(n, n, n.Body)
	}
	return true
}

// add notes a mutation that changes a part of the file to text.
func (f *finder) add(kind string, at ast.Node, text string, schema func(id string) ([]wrap, []swap)) *mutation {
	m := &mutation{Kind: kind, Function: f.function(), pkg: f.pkg, file: f.file, schema: schema}
	m.start, m.end, m.text, m.cover = f.file.offset(at.Pos()), f.file.offset(at.End()), text, at.Pos()
	m.Line = f.pkg.fset.Position(at.Pos()).Line
	m.show(m.start, m.end, text)
	f.found = append(f.found, m)
	return m
}

// show sets the lines that the report shows: those of a part of the file, before and after.
func (m *mutation) show(start, end int, text string) {
	src := m.file.text
	from := strings.LastIndexByte(src[:start], '\n') + 1
	to := len(src)
	if i := strings.IndexByte(src[end:], '\n'); i >= 0 {
		to = end + i
	}
	m.Original, m.Mutated = oneLine(src[from:to]), oneLine(src[from:start]+text+src[end:to])
}

// oneLine joins lines and cuts what is long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > 200 {
		s = string(runes[:200]) + "…"
	}
	return s
}

// function returns the name of the function around the current node.
func (f *finder) function() string {
	for _, n := range f.stack {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return functionName(fn)
		}
	}
	return ""
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// replaceBool returns a schema that chooses between a condition and another one. Exactly one
// of them is evaluated.
func (f *finder) replaceBool(n ast.Expr, mutated string) func(id string) ([]wrap, []swap) {
	start, end := f.file.offset(n.Pos()), f.file.offset(n.End())
	return func(id string) ([]wrap, []swap) {
		before := "(pawlmutant.On(" + id + ") && (" + mutated + ") || pawlmutant.Off(" + id + ") && ("
		return []wrap{{start, end, before, "))", levelExpression}}, nil
	}
}

// surround returns a schema that puts text around a node. A # in it stands for the number.
func (f *finder) surround(n ast.Node, before, after string, level int) func(id string) ([]wrap, []swap) {
	start, end := f.file.offset(n.Pos()), f.file.offset(n.End())
	return func(id string) ([]wrap, []swap) {
		return []wrap{{start, end, strings.Replace(before, "#", id, 1), after, level}}, nil
	}
}

// replaceIn returns the text of a node with a part replaced.
func (f *finder) replaceIn(n ast.Node, start, end token.Pos, text string) string {
	return f.file.text[f.file.offset(n.Pos()):f.file.offset(start)] + text +
		f.file.text[f.file.offset(end):f.file.offset(n.End())]
}

// comparisons are the operators that replace each other.
var comparisons = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
}

// arithmetic has, for an operator on numbers, the one that replaces it, and the function of
// the package mutant that does either.
var arithmetic = map[token.Token]struct {
	other    token.Token
	function string
}{
	token.ADD: {token.SUB, "AddSub"}, token.SUB: {token.ADD, "SubAdd"},
	token.MUL: {token.QUO, "MulDiv"}, token.QUO: {token.MUL, "DivMul"}, token.REM: {token.MUL, "RemMul"},
}

// binary changes the operator of an expression, or the constant that it compares with.
func (f *finder) binary(n *ast.BinaryExpr) {
	if f.isConstant(n) {
		return
	}
	replaced := func(op token.Token) string {
		return f.replaceIn(n, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), op.String())
	}
	if other, ok := comparisons[n.Op]; ok {
		f.add(kindCompare, n, replaced(other), f.replaceBool(n, replaced(other)))
		f.bound(n, n.X)
		f.bound(n, n.Y)
		return
	}
	switch n.Op {
	case token.LAND:
		f.add(kindLogic, n, replaced(token.LOR), f.replaceBool(n, replaced(token.LOR)))
	case token.LOR:
		f.add(kindLogic, n, replaced(token.LAND), f.replaceBool(n, replaced(token.LAND)))
	}
	by, ok := arithmetic[n.Op]
	if !ok || !f.isNumber(n) {
		return
	}
	start, end, op := f.file.offset(n.Pos()), f.file.offset(n.End()), f.file.offset(n.OpPos)
	f.add(kindArithmetic, n, replaced(by.other), func(id string) ([]wrap, []swap) {
		return []wrap{{start, end, "pawlmutant." + by.function + "(" + id + ", ", ")", levelExpression}},
			[]swap{{op, op + len(n.Op.String()), ", "}}
	})
}

// bound moves a constant number, of which a comparison is made, by one.
func (f *finder) bound(n *ast.BinaryExpr, side ast.Expr) {
	value := f.pkg.info.Types[side].Value
	if value == nil || value.Kind() != constant.Int {
		return
	}
	ops := []token.Token{token.ADD, token.SUB}
	if n.Op == token.EQL || n.Op == token.NEQ {
		ops = ops[:1] // the other one says much the same
	}
	for _, op := range ops {
		moved := "(" + f.file.raw(side) + " " + op.String() + " 1)"
		if lit, ok := side.(*ast.BasicLit); ok && lit.Kind == token.INT {
			moved = constant.BinaryOp(value, op, constant.MakeInt64(1)).ExactString()
		}
		text := f.replaceIn(n, side.Pos(), side.End(), moved)
		f.add(kindBound, n, text, f.replaceBool(n, text))
	}
}

// sliceBounds moves the constant bounds of a slice by one.
func (f *finder) sliceBounds(n *ast.SliceExpr) {
	for _, bound := range []ast.Expr{n.Low, n.High} {
		lit, ok := bound.(*ast.BasicLit)
		value := f.pkg.info.Types[bound].Value
		if !ok || value.Kind() != constant.Int {
			continue
		}
		up := constant.BinaryOp(value, token.ADD, constant.MakeInt64(1)).ExactString()
		f.add(kindBound, lit, up, f.surround(lit, "pawlmutant.Plus(#, ", ", 1)", levelExpression))
		if constant.Sign(value) > 0 {
			down := constant.BinaryOp(value, token.SUB, constant.MakeInt64(1)).ExactString()
			f.add(kindBound, lit, down, f.surround(lit, "pawlmutant.Minus(#, ", ", 1)", levelExpression))
		}
	}
}

// condition negates what an if asks. A plain == or != is negated as a comparison.
func (f *finder) condition(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) || f.isConstant(cond) {
		return
	}
	f.add(kindNegate, cond, "!("+f.file.raw(cond)+")",
		f.surround(cond, "pawlmutant.Not(#, ", ")", levelExpression))
}

func (f *finder) isConstant(e ast.Expr) bool { return f.pkg.info.Types[e].Value != nil }

func (f *finder) isNumber(e ast.Expr) bool {
	t := f.pkg.info.TypeOf(e)
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsInteger|types.IsFloat) != 0
}

func (f *finder) isPanic(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && f.pkg.info.Uses[id] == types.Universe.Lookup("panic")
}

// logs are the last elements of the packages whose functions and methods only log.
var logs = []string{"log", "slog", "logr"}

func (f *finder) isLog(call *ast.CallExpr) bool {
	callee := f.callee(call)
	return callee != nil && callee.Pkg() != nil && slices.Contains(logs, path.Base(callee.Pkg().Path()))
}

// callee returns the function or method that a call names, if it names one.
func (f *finder) callee(call *ast.CallExpr) types.Object {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return f.pkg.info.Uses[fun]
	case *ast.SelectorExpr:
		return f.pkg.info.Uses[fun.Sel]
	}
	return nil
}
