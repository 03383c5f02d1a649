package trace

import "strings"

// isDiff reports whether a text has a unified difference in it.
func isDiff(text string) bool {
	_, rest, ok := strings.Cut(text, "\n+++ ")
	if !ok {
		return false
	}
	_, rest, ok = strings.Cut(rest, "\n")
	return ok && strings.HasPrefix(rest, "@@ -")
}

// output writes what a tool gave; a difference with the colours of what went and what came.
func (p *page) output(text string) {
	if isDiff(text) {
		p.lines(text)
		return
	}
	p.element("pre", "", text)
}

// lines writes a unified difference.
func (p *page) lines(diff string) {
	p.raw("<pre class=\"diff\">")
	for line := range strings.Lines(diff) {
		class := ""
		switch {
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "came"
		case strings.HasPrefix(line, "-"):
			class = "went"
		}
		if class == "" {
			p.text(line)
			continue
		}
		p.element("span", class, line)
	}
	p.raw("</pre>")
}

// asDiff is what an edit would change: the lines that go, those that come, and the same ones around them.
func asDiff(from, to string) string {
	a, b := strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	put := func(sign string, lines []string) {
		for _, l := range lines {
			if l != "" {
				out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
			}
		}
	}
	put(" ", a[:head])
	put("-", a[head:len(a)-tail])
	put("+", b[head:len(b)-tail])
	put(" ", a[len(a)-tail:])
	return out.String()
}
