package star

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/pawl-dev/pawl/errdefs"
)

// options: loops and conditions anywhere, names that are set again, sets; no recursion, which bounds the stack.
var options = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}

// A Problem is what is wrong with a source, and where: "FILE:LINE:COLUMN".
type Problem struct{ Place, Reason string }

// Error is all that is wrong with a source. Its class is errdefs.Validation.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Place + ": " + p.Reason
	}
	return strings.Join(lines, "\n")
}

// Class is errdefs.Validation.
func (e *Error) Class() *errdefs.Class { return errdefs.Validation }

// Is asks for the class.
func (e *Error) Is(target error) bool { return target == errdefs.Validation }

// Expr is a compiled expression, or the body of a function. Safe for concurrent use.
type Expr struct {
	names []string // in the order of the parameters
	fn    *starlark.Function
}

// exprLimits of [Expr.Eval].
var exprLimits = Limits{Steps: 100_000, Bytes: 256 << 20}

// Compile makes an Expr of an expression over names: it has these, and Starlark's own functions without effects (no print, no load); json.encode and json.decode are there too. where is
// what errors call the source. The error is an *[Error]: what doesn't parse, and each name that is unknown, with its place.
func Compile(where, source string, names ...string) (*Expr, error) {
	if err := fitsSource(where, source); err != nil {
		return nil, err
	}
	x, err := options.ParseExpr(where, source, 0)
	if err != nil {
		return nil, problems(err)
	}
	return compile(where, []syntax.Stmt{&syntax.ReturnStmt{Return: syntax.Start(x), Result: x}}, names)
}

// CompileBody is Compile for the body of a function: statements, among them return. What it returns is its value; without a return that is None.
func CompileBody(where, source string, names ...string) (*Expr, error) {
	if err := fitsSource(where, source); err != nil {
		return nil, err
	}
	f, err := options.Parse(where, source, 0)
	if err != nil {
		return nil, problems(err)
	}
	if len(f.Stmts) == 0 {
		return nil, &Error{[]Problem{{where + ":1:1", "it is empty"}}}
	}
	return compile(where, f.Stmts, names)
}

const exprName = "@expr"

func compile(where string, body []syntax.Stmt, names []string) (*Expr, error) {
	e := &Expr{}
	used := map[string]bool{}
	for _, s := range body {
		syntax.Walk(s, func(n syntax.Node) bool {
			if id, ok := n.(*syntax.Ident); ok && slices.Contains(names, id.Name) {
				used[id.Name] = true
			}
			return true
		})
	}
	e.names = slices.Sorted(maps.Keys(used))
	at := syntax.MakePosition(&where, 1, 1)
	def := &syntax.DefStmt{Def: at, Name: &syntax.Ident{NamePos: at, Name: exprName}, Lparen: at, Rparen: at, Body: body}
	for _, n := range e.names {
		def.Params = append(def.Params, &syntax.Ident{NamePos: at, Name: n})
	}
	prog, err := program(&syntax.File{Path: where, Stmts: []syntax.Stmt{def}, Options: options}, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	globals, err := prog.Init(&starlark.Thread{}, predeclared(nil)) // it only defines
	if err != nil {
		return nil, errdefs.Internal.Errorf("%s: %w", where, err)
	}
	e.fn = globals[exprName].(*starlark.Function)
	return e, nil
}

// Names lists those of the names that the expression uses, in order.
func (e *Expr) Names() []string { return slices.Clone(e.names) }

// Eval gives the value over the names' values; of those that the expression uses each must be there. Values that other evaluations have at the same time must be frozen ([Freeze]). It takes 100,000 steps at most. The error names the place; its class is
// errdefs.Validation, or BudgetExceeded past a limit.
func (e *Expr) Eval(names map[string]starlark.Value) (starlark.Value, error) {
	return e.Call(context.Background(), NewMeter(exprLimits), names)
}

// Call is Eval that counts on m and ends with ctx.
func (e *Expr) Call(ctx context.Context, m *Meter, names map[string]starlark.Value) (starlark.Value, error) {
	args := make(starlark.Tuple, len(e.names))
	for i, n := range e.names {
		if args[i] = names[n]; args[i] == nil {
			return nil, errdefs.Validation.Errorf("%s: %s is not set", e.fn.Position().Filename(), n)
		}
	}
	t, done := m.Thread(ctx, exprName)
	v, err := starlark.Call(t, e.fn, args, nil)
	if over := done(); over != nil || err != nil {
		return nil, failure(err, over, false)
	}
	return v, nil
}

// Bool is Eval of a condition: any value but a bool is errdefs.Validation.
func (e *Expr) Bool(names map[string]starlark.Value) (bool, error) {
	v, err := e.Eval(names)
	if err != nil {
		return false, err
	}
	b, ok := v.(starlark.Bool)
	if !ok {
		return false, errdefs.Validation.Errorf("%s: the condition is a %s: make it a bool, by a comparison or bool(…)", e.fn.Position().Filename(), v.Type())
	}
	return bool(b), nil
}

// program puts guards into a file, and compiles it.
func program(f *syntax.File, known func(string) bool) (*starlark.Program, error) {
	var r rewriter
	r.block(f.Stmts)
	prog, err := starlark.FileProgram(f, func(name string) bool { return known(name) || ours[name] != nil })
	if err != nil {
		r.problems = append(r.problems, problems(err).Problems...)
	} else {
		syntax.Walk(f, func(n syntax.Node) bool { // what is universal, and nothing here
			if id, ok := n.(*syntax.Ident); ok {
				if b, ok := id.Binding.(*resolve.Binding); ok && b.Scope == resolve.Universal && !slices.Contains(plain, id.Name) {
					r.problem(id.NamePos, "undefined: %s", id.Name)
				}
			}
			return true
		})
	}
	if r.problems != nil {
		return nil, &Error{r.problems}
	}
	return prog, nil
}

// ours is what every program has beside the plain functions of the language.
var ours = func() starlark.StringDict {
	all := maps.Clone(guards)
	all["json"] = jsonModule
	all["struct"] = starlark.NewBuiltin("struct", newStruct)
	return all
}()

func predeclared(names starlark.StringDict) starlark.StringDict {
	if len(names) == 0 {
		return ours
	}
	all := maps.Clone(ours)
	maps.Copy(all, names)
	return all
}

// problems of the parser and the resolver.
func problems(err error) *Error {
	var one syntax.Error
	var many resolve.ErrorList
	switch {
	case errors.As(err, &one):
		return &Error{[]Problem{{place(one.Pos), one.Msg}}}
	case errors.As(err, &many):
		e := &Error{}
		for _, p := range many {
			e.Problems = append(e.Problems, Problem{place(p.Pos), p.Msg})
		}
		return e
	}
	return &Error{[]Problem{{"", err.Error()}}}
}

// place is "FILE:LINE:COLUMN".
func place(at syntax.Position) string { return fmt.Sprintf("%s:%d:%d", at.Filename(), at.Line, at.Col) }
