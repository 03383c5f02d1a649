package main

import (
	"cmp"
	"slices"
	"strings"
)

// Levels order insertions around the same piece of text: statements enclose expressions.
const (
	levelEntry      = iota // in front of the first statement of a body
	levelStatement         // around a statement
	levelExpression        // around an expression
)

// wrap inserts text around a piece of a file. A wrap without text after it only inserts in
// front.
type wrap struct {
	start, end    int // offsets in the file
	before, after string
	level         int
}

// swap replaces a piece of a file, such as an operator.
type swap struct {
	start, end int
	text       string
}

// insertion is one half of a wrap, or a swap, with what orders it among others.
type insertion struct {
	at, end int
	text    string
	class   int // 0 closes, 1 opens or replaces
	span    int // length of the wrap that it belongs to
	level   int
	index   int
}

// rewrite applies wraps and swaps to a file. Wraps nest: of two that start at the same
// offset the longer one is outside, of two equal ones the one with the lower level.
func rewrite(src string, wraps []wrap, swaps []swap) string {
	var all []insertion
	for i, w := range wraps {
		span := w.end - w.start
		all = append(all, insertion{w.start, w.start, w.before, 1, -span, w.level, i})
		if w.after != "" {
			all = append(all, insertion{w.end, w.end, w.after, 0, span, -w.level, -i})
		}
	}
	for i, s := range swaps {
		all = append(all, insertion{s.start, s.end, s.text, 1, 0, levelExpression, i})
	}
	slices.SortStableFunc(all, func(a, b insertion) int {
		return cmp.Or(a.at-b.at, a.class-b.class, a.span-b.span, a.level-b.level, a.index-b.index)
	})
	var out strings.Builder
	done := 0
	for _, in := range all {
		out.WriteString(src[done:in.at])
		out.WriteString(in.text)
		done = in.end
	}
	out.WriteString(src[done:])
	return out.String()
}
