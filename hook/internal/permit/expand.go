package permit

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// The files that a word stands for.

// paths are the files that a word stands for. What the shell expands is looked up now.
func (r *reached) paths(a shell.Word) []Path {
	const most = 1000
	dir := ""
	if r.cmd.Dir.Known && !r.cmd.Dir.Glob {
		dir = r.cmd.Dir.Text
	}
	switch {
	case !a.Known:
		return []Path{{Shown: a.Source, unknown: true}}
	case !a.Glob:
		p := r.path(a.Text, dir)
		p.tree = produced(a)
		return []Path{p}
	case produced(a) && !strings.ContainsAny(a.Text, "*?["):
		p := r.path(a.Text, dir)
		p.tree = true
		return []Path{p}
	}
	name := a.Text
	if !filepath.IsAbs(name) {
		if dir == "" {
			return []Path{{Shown: a.Text, unknown: true}}
		}
		name = globQuoted(dir) + "/" + name
	}
	front, _, deep := strings.Cut(name, "**")
	if deep { // any depth: what lies below the part in front
		if i := strings.IndexAny(front, "*?["); i >= 0 {
			front = front[:i]
		}
		p := r.path(strings.TrimSuffix(front, filepath.Base(front)), dir)
		p.tree = true
		return []Path{p}
	}
	var above []Path
	for part := range strings.SplitSeq(a.Text, "/") {
		if up, _ := path.Match(strings.ReplaceAll(part, "[!", "[^"), ".."); up && part != ".." && part[0] == '.' { // older shells find the directory above, too
			b := a
			b.Text = strings.Replace(a.Text, part, "..", 1)
			b.Glob = strings.ContainsAny(b.Text, "*?[")
			above = r.paths(b)
			break
		}
	}
	hits, err := filepath.Glob(strings.ReplaceAll(name, "[!", "[^"))
	if err != nil || len(hits) > most {
		return []Path{{Shown: a.Text, unknown: true}}
	}
	out := append(above, r.path(a.Text, dir))
	for _, hit := range hits {
		if !r.dots && !produced(a) && hidden(hit, name) {
			continue
		}
		out = append(out, r.path(hit, dir))
	}
	return out
}

// produced reports whether a word is what find or another program puts in its place: a directory stands for all that it found there.
func produced(a shell.Word) bool { return a.Source == "" || strings.Contains(a.Source, "{}") }

func (r *reached) path(text, dir string) Path {
	if p, ok := r.known[[2]string{dir, text}]; ok {
		return p
	}
	p := r.w.path(text, dir)
	if r.known != nil {
		r.known[[2]string{dir, text}] = p
	}
	return p
}

// hidden reports whether a part of hit begins with a dot where the pattern has none: a shell leaves that out.
func hidden(hit, pattern string) bool {
	pats, parts := strings.Split(pattern, "/"), strings.Split(hit, "/")
	for i := 1; i <= min(len(pats), len(parts)); i++ { // from behind: the fronts may be spelled differently
		if p := pats[len(pats)-i]; strings.HasPrefix(parts[len(parts)-i], ".") && p != "" && strings.ContainsRune("*?[", rune(p[0])) {
			return true
		}
	}
	return false
}

func globQuoted(dir string) string {
	if os.PathSeparator != '/' {
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
