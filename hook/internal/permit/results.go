package permit

import (
	"fmt"
	"slices"
	"strings"
)

// Withhold takes from what a search found the lines about files that one of the rules is about. A line is about a file when it begins with its name, as in
// "path", "path:text" and "path-text"; when in doubt it goes. text is given back as it is when nothing has to go.
func (w *World) Withhold(c *Call, rules []*Rule, text string) string {
	if !c.searches {
		return text
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool {
		return r.path == nil || r.tool != read && r.tool != c.tool || r.bindsPaths(c.reads) == No
	})
	if len(rules) == 0 {
		return text
	}
	var kept []string
	withheld := 0
	f := filter{w: w, rules: rules, known: map[string]bool{}}
	for _, line := range strings.Split(text, "\n") {
		if f.about(line) {
			withheld++
		} else {
			kept = append(kept, line)
		}
	}
	if withheld == 0 {
		return text
	}
	noun := "lines"
	if withheld == 1 {
		noun = "line"
	}
	return strings.Join(append(kept, fmt.Sprintf("[%d %s withheld: %s]", withheld, noun, names(rules))), "\n")
}

func names(rules []*Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Text)
	}
	return strings.Join(out, ", ")
}

// filter remembers which names the rules are about: most lines of a file begin with the same.
type filter struct {
	w     *World
	rules []*Rule
	known map[string]bool
}

// about looks at every beginning of a line that may be a name: it ends before a colon or a dash. A note in brackets has its names
// between commas.
func (f *filter) about(line string) bool {
	const most = 4096 // no path is longer
	if rest, note := strings.CutPrefix(line, "["); note {
		_, rest, _ = strings.Cut(strings.TrimSuffix(rest, "]"), ": ")
		for _, name := range strings.Split(rest, ", ") {
			if name, _, _ = strings.Cut(name, " and "); f.bound(name) {
				return true
			}
		}
	}
	if f.bound(line) {
		return true
	}
	for i := range min(len(line), most) {
		if (line[i] == ':' || line[i] == '-') && f.bound(line[:i]) {
			return true
		}
	}
	return false
}

func (f *filter) bound(name string) bool {
	if name == "" {
		return false
	}
	yes, done := f.known[name]
	if !done {
		p := f.w.path(name, f.w.dir)
		yes = slices.ContainsFunc(f.rules, func(r *Rule) bool { return f.w.binds(r.path, p) == Yes })
		f.known[name] = yes
	}
	return yes
}
