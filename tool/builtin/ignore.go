package builtin

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignores are the rules of the .gitignore files from the root of the project down to one directory. nil ignores nothing.
type ignores struct {
	above *ignores
	dir   string // with slashes, "." for the root
	rules []ignoreRule
}

type ignoreRule struct {
	pattern  string
	anchored bool // matches the path below dir; else the name in any directory
	dirOnly  bool
	negated  bool
}

// ignored reports whether a file or directory that lies in no ignored directory is ignored. The last rule that matches decides, those
// of deeper directories before those above.
func (g *ignores) ignored(name string, isDir bool) bool {
	for ; g != nil; g = g.above {
		below := name
		if g.dir != "." {
			below = strings.TrimPrefix(name, g.dir+"/")
		}
		for i := len(g.rules) - 1; i >= 0; i-- {
			r := g.rules[i]
			if r.dirOnly && !isDir {
				continue
			}
			subject := below
			if !r.anchored {
				subject = path.Base(name)
			}
			if doublestar.MatchUnvalidated(r.pattern, subject) {
				return !r.negated
			}
		}
	}
	return false
}

// in adds the rules of dir's own .gitignore, if it has one. A .gitignore that is a symbolic link doesn't count, as in git.
func (g *ignores) in(root *os.Root, dir string) *ignores {
	const most = 1 << 20 // bytes
	name := filepath.Join(filepath.FromSlash(dir), ".gitignore")
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return g
	}
	f, err := root.OpenFile(name, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return g
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return g
	}
	if rules := parseIgnore(b); len(rules) > 0 {
		return &ignores{g, dir, rules}
	}
	return g
}

func parseIgnore(file []byte) (rules []ignoreRule) {
	file = bytes.TrimPrefix(file, []byte("\xef\xbb\xbf"))
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if r, ok := parseRule(line); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// parseRule reads a line as gitignore(5) says.
func parseRule(line string) (r ignoreRule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	r.anchored = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if strings.HasSuffix(line, "/**") { // what is in it, not the directory itself
		line += "/*"
	}
	r.pattern = plainBraces(line)
	return r, line != "" && doublestar.ValidatePattern(r.pattern)
}

// plainBraces escapes what doublestar knows beyond git: alternatives in braces.
func plainBraces(pattern string) string {
	var out strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			out.WriteByte(c)
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case (c == '{' || c == '}') && !class:
			out.WriteByte('\\')
		}
		out.WriteByte(pattern[i])
	}
	return out.String()
}

// ignoresFor are the rules for what is directly in dir. Who asks for an ignored directory by name gets what is in it: then the rules
// from above don't count there.
func ignoresFor(root *os.Root, dir string) *ignores {
	var g *ignores
	at := "."
	g = g.in(root, at)
	if dir == "." {
		return g
	}
	for _, part := range strings.Split(dir, "/") {
		at = path.Join(at, part)
		if g.ignored(at, true) {
			g = nil
		}
		g = g.in(root, at)
	}
	return g
}
