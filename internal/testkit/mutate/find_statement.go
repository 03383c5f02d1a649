package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statement drops a call or an assignment to a field or an element, or changes its operator.
func (f *finder) statement(n ast.Stmt) {
	if !f.isListed(n) {
		return
	}
	switch n := n.(type) {
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !f.isPanic(call) && !f.isLog(call) && !f.isLock(call) {
			f.drop(kindDrop, n)
		}
	case *ast.IncDecStmt:
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		f.otherwise(n, f.file.raw(n.X)+other)
	case *ast.AssignStmt:
		f.assignment(n)
	}
}

func (f *finder) assignment(n *ast.AssignStmt) {
	switch n.Tok {
	case token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.QUO_ASSIGN:
		if f.isNumber(n.Lhs[0]) {
			other := map[token.Token]string{
				token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
			}[n.Tok]
			f.otherwise(n, f.replaceIn(n, n.TokPos, n.TokPos+2, other))
		}
	case token.DEFINE:
		return
	}
	for _, left := range n.Lhs {
		switch left.(type) {
		case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		default:
			return
		}
	}
	f.drop(kindDrop, n)
}

// drop leaves a statement out.
func (f *finder) drop(kind string, n ast.Stmt) {
	f.add(kind, n, "/* dropped */", f.surround(n, "if pawlmutant.Off(#) { ", " }", levelStatement))
}

// otherwise does something else instead of a statement.
func (f *finder) otherwise(n ast.Stmt, text string) {
	f.add(kindArithmetic, n, text,
		f.surround(n, "if pawlmutant.On(#) { "+text+" } else { ", " }", levelStatement))
}

// isListed reports whether a statement stands in a list, so that text can go around it.
func (f *finder) isListed(n ast.Stmt) bool {
	if len(f.stack) == 0 {
		return false
	}
	for _, s := range statements(f.stack[len(f.stack)-1]) {
		if s == n {
			return true
		}
	}
	return false
}

// statements returns the list of statements that a node has, without the clauses of a switch.
func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		if len(n.List) > 0 {
			switch n.List[0].(type) {
			case *ast.CaseClause, *ast.CommClause:
				return nil
			}
		}
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// isLock reports whether a call is a method of package sync. A missing one blocks or crashes
// at once, which says nothing about the tests.
func (f *finder) isLock(call *ast.CallExpr) bool {
	callee := f.callee(call)
	return callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == "sync"
}

// dropDefer leaves out a deferred call that has a name.
func (f *finder) dropDefer(n *ast.DeferStmt) {
	if _, literal := n.Call.Fun.(*ast.FuncLit); !literal && f.isListed(n) && !f.isLog(n.Call) && !f.isPanic(n.Call) {
		f.drop(kindDefer, n)
	}
}

// nilError returns nil instead of an error. What makes the error still runs.
func (f *finder) nilError(n *ast.ReturnStmt) {
	for _, result := range n.Results {
		tv := f.pkg.info.Types[result]
		if tv.IsNil() || tv.Type == nil || !implementsError(tv.Type) {
			continue
		}
		text := "nil"
		if _, call := result.(*ast.CallExpr); call {
			text = "nil /* after " + f.file.raw(result) + " */"
		}
		f.add(kindNil, result, text, f.surround(result, "pawlmutant.Nil(#, ", ")", levelExpression))
	}
}

func implementsError(t types.Type) bool {
	if _, tuple := t.(*types.Tuple); tuple {
		return false
	}
	return types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// earlyReturn makes a function return zero values without doing anything.
func (f *finder) earlyReturn(fn *ast.FuncDecl) {
	if fn.Body == nil || len(fn.Body.List) == 0 || returnsZero(fn.Body.List) {
		return
	}
	var zeros []string
	if fn.Type.Results != nil {
		for _, field := range fn.Type.Results.List {
			for range max(1, len(field.Names)) {
				zeros = append(zeros, "*new("+f.file.raw(field.Type)+")")
			}
		}
	}
	text := strings.TrimSpace("return " + strings.Join(zeros, ", "))
	first := fn.Body.List[0]
	m := f.add(kindEarly, fn.Name, "", f.surround(first, "if pawlmutant.On(#) { "+text+" }; ", "", levelEntry))
	m.Function = functionName(fn)
	m.cover = first.Pos()
	brace := f.file.offset(fn.Body.Lbrace) + 1
	m.show(brace, brace, " "+text+" /* at once */;")
}

// returnsZero reports whether a body is one return of zero values.
func returnsZero(body []ast.Stmt) bool {
	ret, ok := body[0].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	for _, result := range ret.Results {
		switch r := result.(type) {
		case *ast.BasicLit:
			if r.Value != "0" && r.Value != `""` {
				return false
			}
		case *ast.Ident:
			if r.Name != "nil" && r.Name != "false" {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// cases removes one clause of a switch after the other. The default takes what it matched.
func (f *finder) cases(sw ast.Stmt, tag ast.Node, body *ast.BlockStmt) {
	defaults := ""
	for _, s := range body.List {
		if clause := s.(*ast.CaseClause); clause.List == nil && len(clause.Body) > 0 {
			last := clause.Body[len(clause.Body)-1]
			defaults = f.file.text[f.file.offset(clause.Body[0].Pos()):f.file.offset(last.End())] + "; "
			if isTerminating(last) {
				defaults = strings.TrimSuffix(defaults, "; ")
			}
		}
	}
	for _, s := range body.List {
		f.removeCase(sw, tag, s.(*ast.CaseClause), defaults)
	}
}

// removeCase makes a clause do what the default does. In a switch without a value its
// conditions become false, so that later ones are asked.
func (f *finder) removeCase(sw ast.Stmt, tag ast.Node, clause *ast.CaseClause, defaults string) {
	if tag == nil && clause.List != nil {
		m := f.add(kindCase, clause.List[0], "false", func(id string) (wraps []wrap, swaps []swap) {
			for _, e := range clause.List {
				w, _ := f.surround(e, "(pawlmutant.Off(#) && (", "))", levelExpression)(id)
				wraps = append(wraps, w...)
			}
			return wraps, nil
		})
		m.cover = sw.Pos()
		f.showRemoved(m, clause)
		return
	}
	text := defaults
	if clause.List == nil {
		text = ""
	}
	if text == "" || strings.HasSuffix(text, "; ") {
		text += "break"
	}
	start, end := f.file.offset(clause.Colon)+1, f.file.offset(clause.End())
	m := f.add(kindCase, clause, "", func(id string) ([]wrap, []swap) {
		return []wrap{{start, end, " if pawlmutant.On(" + id + ") { " + text + " }; ", "", levelEntry}}, nil
	})
	m.cover = sw.Pos()
	if len(clause.Body) > 0 {
		m.cover = clause.Body[0].Pos()
	}
	f.showRemoved(m, clause)
}

func (f *finder) showRemoved(m *mutation, clause *ast.CaseClause) {
	start, end := f.file.offset(clause.Pos()), f.file.offset(clause.Colon)+1
	m.start, m.end = start, end
	m.Line = f.pkg.fset.Position(clause.Pos()).Line
	m.show(start, end, "/* removed: "+f.file.text[start:end]+" */")
}

// isTerminating reports whether a statement surely leaves the list that it ends.
func isTerminating(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		id, ok := call.Fun.(*ast.Ident)
		return ok && id.Name == "panic"
	}
	return false
}
