package builtin

import (
	"fmt"
	"slices"
	"strings"
)

// The limits of a difference as it is shown, and of the search for a short one.
const (
	diffLines   = 200  // lines
	diffLineCap = 500  // bytes of a line
	diffContext = 3    // unchanged lines around a change
	diffEffort  = 1000 // changed lines; with more of them between the first and the last change, all there counts as changed
)

// showDiff is the unified difference of two versions of a file, shortened for a model.
func showDiff(name, from, to string) string {
	lines := strings.Split(strings.TrimSuffix(unified(from, to, diffContext), "\n"), "\n")
	left := 0
	if len(lines) > diffLines {
		left = len(lines) - diffLines
		lines = lines[:diffLines]
	}
	for i, l := range lines {
		if len(l) > diffLineCap {
			lines[i] = cut(l, diffLineCap) + fmt.Sprintf(" [cut: %d bytes]", len(l))
		}
	}
	out := fmt.Sprintf("--- a/%s\n+++ b/%s\n%s", name, name, valid(strings.Join(lines, "\n")))
	if left > 0 {
		out += fmt.Sprintf("\n[%s of the difference left out]", plural(left, "more line"))
	}
	return out
}

// unified gives the hunks of the unified difference, "" for equal texts.
func unified(from, to string, context int) string {
	a, b := strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")
	a, b = dropEmpty(a), dropEmpty(b)
	var out strings.Builder
	changes := compare(a, b)
	for len(changes) > 0 {
		n := 1 // changes with at most 2*context lines between them share a hunk
		for n < len(changes) && changes[n].a0-changes[n-1].a1 <= 2*context {
			n++
		}
		hunk(&out, a, b, changes[:n], context)
		changes = changes[n:]
	}
	return out.String()
}

func dropEmpty(lines []string) []string {
	if n := len(lines); lines[n-1] == "" {
		return lines[:n-1]
	}
	return lines
}

func hunk(out *strings.Builder, a, b []string, changes []change, context int) {
	first, last := changes[0], changes[len(changes)-1]
	a0, a1 := max(0, first.a0-context), min(len(a), last.a1+context)
	b0, b1 := first.b0-(first.a0-a0), last.b1+(a1-last.a1)
	fmt.Fprintf(out, "@@ -%s +%s @@\n", span(a0, a1), span(b0, b1))
	at := a0
	for _, c := range changes {
		put(out, " ", a[at:c.a0])
		put(out, "-", a[c.a0:c.a1])
		put(out, "+", b[c.b0:c.b1])
		at = c.a1
	}
	put(out, " ", a[at:a1])
}

// span is a range of lines as hunks give it: its first line, counted from 1, and its length. An empty one has the line before.
func span(from, to int) string {
	if to > from {
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
	return fmt.Sprintf("%d,0", from)
}

func put(out *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		out.WriteString(sign + l)
		if !strings.HasSuffix(l, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// change says that a[a0:a1] became b[b0:b1].
type change struct{ a0, a1, b0, b1 int }

// compare finds what changed, in order.
func compare(a, b []string) []change {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) == 0 && len(y) == 0 {
		return nil
	}
	changes := []change{{0, len(x), 0, len(y)}}
	if len(x) > 0 && len(y) > 0 {
		if found, ok := shortest(x, y); ok {
			changes = found
		}
	}
	for i := range changes {
		c := &changes[i]
		c.a0, c.a1, c.b0, c.b1 = c.a0+head, c.a1+head, c.b0+head, c.b1+head
	}
	return changes
}

// shortest finds the fewest lines to take away and to add (Myers' greedy algorithm); not ok when they are more than diffEffort.
func shortest(a, b []string) ([]change, bool) {
	most := min(len(a)+len(b), diffEffort)
	reach := make([]int, 2*most+2) // how far in a one gets on each diagonal, which is offset by most
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(reach[most-d:most+d+2]))
		for k := -d; k <= d; k += 2 {
			i := 0
			switch {
			case d == 0:
			case k == -d || k != d && reach[most+k-1] < reach[most+k+1]:
				i = reach[most+k+1]
			default:
				i = reach[most+k-1] + 1
			}
			j := i - k
			for i < len(a) && j < len(b) && a[i] == b[j] {
				i, j = i+1, j+1
			}
			reach[most+k] = i
			if i >= len(a) && j >= len(b) {
				return walkBack(trace, len(a), len(b)), true
			}
		}
	}
	return nil, false
}

// walkBack follows the trace from its end; trace[d] holds the diagonals -d to d+1 as they were before round d.
func walkBack(trace [][]int, i, j int) (changes []change) {
	for d := len(trace) - 1; d > 0; d-- {
		row := func(k int) int { return trace[d][k+d] }
		k := i - j
		from := k - 1
		if k == -d || k != d && row(k-1) < row(k+1) {
			from = k + 1
		}
		pi := row(from)
		pj := pi - from
		c := change{pi, pi, pj, pj}
		if from == k-1 {
			c.a1++
		} else {
			c.b1++
		}
		if n := len(changes); n > 0 && changes[n-1].a0 == c.a1 && changes[n-1].b0 == c.b1 {
			changes[n-1].a0, changes[n-1].b0 = c.a0, c.b0
		} else {
			changes = append(changes, c)
		}
		i, j = pi, pj
	}
	slices.Reverse(changes)
	return changes
}
