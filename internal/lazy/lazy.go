// Package lazy makes what a package needs when it is first needed: regular expressions, tables of functions.
//
// What a package makes as it is initialized, every program pays for that imports it: time before main, and all that is named there is linked, used or not. Variables of these types begin as plain data, and the linker leaves out those that nobody asks,
// with all that they would have named. That is why a table's function is given with the question, and why there is no sync.OnceValue, which has to run to be made.
package lazy

import (
	"regexp"
	"sync"
)

// Value is made once. The zero value is ready. It may be used at the same time; what it gives is shared, and not to be changed.
type Value[T any] struct {
	once sync.Once
	v    T
}

// Of gives the value, which the first call has made.
func (l *Value[T]) Of(made func() T) T {
	l.once.Do(func() { l.v = made() })
	return l.v
}

// Pattern is a regular expression that is compiled once. Make it with [Regexp]. It may be used at the same time.
type Pattern struct {
	once sync.Once
	expr string
	re   *regexp.Regexp
}

// Regexp gives the pattern of an expression.
func Regexp(expr string) *Pattern { return &Pattern{expr: expr} }

// Get gives the regular expression. It panics at one that does not compile, each time.
func (p *Pattern) Get() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	if p.re == nil {
		panic("lazy: this does not compile: " + p.expr)
	}
	return p.re
}
