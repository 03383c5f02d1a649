package permission

import "github.com/pawl-dev/pawl/hook/internal/permit"

// From gives a rule that is written for the project at dir, an absolute path, as rules that mean the same for a project below it: a path that is relative to dir becomes absolute. A name at any depth stays
// one, and binds outside of dir too.
func (r Rule) From(dir string) []Rule {
	var out []Rule
	for _, text := range permit.Absolute(r.Text, dir) {
		r.Text = text
		out = append(out, r)
	}
	return out
}
