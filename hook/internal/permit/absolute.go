package permit

import (
	"path/filepath"
	"slices"
	"strings"
)

// Absolute gives a rule that is written for the project at dir as one that means the same in every other project below it: with its path, if it has one that is relative to dir, as an absolute one. A path
// behind one slash, by which many mean the file system's root, becomes both. What is no rule stays as it is.
func Absolute(text, dir string) []string {
	name, spec, has := strings.Cut(strings.TrimSpace(text), "(")
	spec, closed := strings.CutSuffix(spec, ")")
	spec = strings.TrimSpace(spec)
	if !has || !closed || spec == "" || spec == "*" || !slices.Contains(pathTools, canonical(strings.TrimSpace(name))) {
		return []string{text}
	}
	rule := func(path string) string { return strings.TrimSpace(name) + "(" + path + ")" }
	in := func(dir, spec string) string {
		return rule("//" + strings.TrimLeft(special.Replace(filepath.ToSlash(dir))+"/"+spec, "/"))
	}
	whole := strings.TrimSuffix(spec, "/")
	switch {
	case strings.HasPrefix(spec, "//"), strings.HasPrefix(spec, "~"), strings.HasPrefix(spec, "!"), strings.HasPrefix(spec, "**/"):
		return []string{text}
	case strings.HasPrefix(spec, "/"):
		return []string{in(dir, strings.TrimLeft(spec, "/")), rule("/" + spec)}
	case !strings.Contains(whole, "/") && whole != "." && whole != "..": // a name at any depth
		return []string{text}
	}
	for { // behind the directory's special characters, .. would be none
		if rest, ok := strings.CutPrefix(spec, "./"); ok {
			spec = rest
		} else if rest, ok := strings.CutPrefix(spec, "../"); ok {
			spec, dir = rest, filepath.Dir(dir)
		} else {
			break
		}
	}
	switch spec {
	case ".":
		spec = ""
	case "..":
		spec, dir = "", filepath.Dir(dir)
	}
	return []string{in(dir, spec)}
}

// special takes their meaning from the characters of a pattern.
var special = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)
