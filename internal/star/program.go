package star

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/pawl-dev/pawl/errdefs"
)

// Program is a compiled file. It is immutable: it runs any number of times, at the same time too.
type Program struct{ p *starlark.Program }

// Load compiles a file that has names beside the language's own. The error is an *[Error], as of [Compile].
func Load(where, source string, names ...string) (*Program, error) {
	if err := fitsSource(where, source); err != nil {
		return nil, err
	}
	f, err := options.Parse(where, source, 0)
	if err != nil {
		return nil, problems(err)
	}
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	p, err := program(f, func(name string) bool { return known[name] })
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// Run runs the file on t, a thread of a [Meter], with the values of its names. The error is for [Explain].
func (p *Program) Run(t *starlark.Thread, names starlark.StringDict) error {
	_, err := p.p.Init(t, predeclared(names))
	return err
}

// longestSource bounds how deep the parser and the compiler can nest.
const longestSource = 128 << 10

func fitsSource(where, source string) error {
	if len(source) > longestSource {
		return &Error{[]Problem{{where + ":1:1", fmt.Sprintf("the source has %d bytes: at most %d can be read", len(source), longestSource)}}}
	}
	return nil
}

// Explain makes of what a thread failed with, and of what its done gave, an error that names the place and the calls that led there. Its class is that of the limit or of the cause,
// errdefs.Validation when the cause has none; a cancel stays one.
func Explain(err, over error) error { return failure(err, over, true) }

// Freeze makes values immutable, with all that they reach: functions with what they captured and the globals of their file. It is an error when that nests too deep, or when a function has captured itself: the
// interpreter would never come back.
func Freeze(vs ...starlark.Value) error {
	f := freezer{seen: map[starlark.Value]bool{}}
	for _, v := range vs {
		if err := f.look(v, 0); err != nil {
			return err
		}
	}
	for _, m := range f.mutable { // the innermost first, so that none of these goes deep
		m.Freeze()
	}
	return nil
}

// freezer goes the way that Freeze of the interpreter goes: lists, dicts and sets remember that they are frozen, anything else is gone through as often as it is met.
type freezer struct {
	seen    map[starlark.Value]bool
	mutable []starlark.Value
	steps   int
}

func (f *freezer) look(v starlark.Value, depth int) error {
	if f.steps++; depth > deepestFrozen || f.steps > 10_000_000 {
		return errdefs.Validation.Errorf("what is captured nests too deep, or a function has captured itself: define it at the top of the file")
	}
	switch v := v.(type) {
	case *starlark.List:
		if f.seen[v] {
			return nil
		}
		f.seen[v] = true
		for i := range v.Len() {
			if err := f.look(v.Index(i), depth+1); err != nil {
				return err
			}
		}
		f.mutable = append(f.mutable, v)
	case *starlark.Dict:
		if f.seen[v] {
			return nil
		}
		f.seen[v] = true
		for k, x := range v.Entries() {
			if err := errors.Join(f.look(k, depth+1), f.look(x, depth+1)); err != nil {
				return err
			}
		}
		f.mutable = append(f.mutable, v)
	case *starlark.Set:
		if f.seen[v] {
			return nil
		}
		f.seen[v] = true
		for x := range v.Elements() {
			if err := f.look(x, depth+1); err != nil {
				return err
			}
		}
		f.mutable = append(f.mutable, v)
	case starlark.Tuple:
		for _, x := range v {
			if err := f.look(x, depth+1); err != nil {
				return err
			}
		}
	case *Struct:
		for _, x := range v.values {
			if err := f.look(x, depth+1); err != nil {
				return err
			}
		}
	case *starlark.Builtin:
		if r := v.Receiver(); r != nil {
			return f.look(r, depth+1)
		}
	case *starlark.Function:
		for i := range v.NumParams() {
			if d := v.ParamDefault(i); d != nil {
				if err := f.look(d, depth+1); err != nil {
					return err
				}
			}
		}
		for i := range v.NumFreeVars() {
			if _, x := v.FreeVar(i); x != nil {
				if err := f.look(x, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

const deepestFrozen = 1000

// Globals are the values of a function's file, in the order of their names.
func Globals(fn *starlark.Function) []starlark.Value {
	all := fn.Globals()
	vs := make([]starlark.Value, 0, len(all))
	for _, name := range all.Keys() {
		vs = append(vs, all[name])
	}
	return vs
}

// Count counts, on the thread's meter, going through values, and making their lists and dicts: for builtins that give what is not in the program yet. Texts are not counted as made: they are shared.
func Count(t *starlark.Thread, vs ...starlark.Value) error {
	c := counterOf(t)
	size, err := c.look(vs...)
	if err != nil {
		return err
	}
	var texts int64
	for _, v := range vs {
		if s, ok := starlark.AsString(v); ok {
			texts += int64(len(s))
		}
	}
	return c.make(size - texts)
}

// CountBytes counts what a builtin makes beside values.
func CountBytes(t *starlark.Thread, n int) error { return counterOf(t).make(int64(n)) }

// CountSteps counts what a builtin takes.
func CountSteps(t *starlark.Thread, n int) error { return counterOf(t).work(int64(n)) }
