package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The limits of memory and rules.
const (
	maxMemoryFile  = 1 << 20 // of a file
	maxMemoryTotal = 4 << 20 // of all files together
	maxIncludes    = 8       // how deep files include files
	maxTries       = 2000    // lines that look like an include: each costs a look at the disk
)

// memory reads AGENTS.md of every directory from the root to the working directory, the nearest last.
func (l *loader) memory(p *Project) {
	names := []string{"AGENTS.md"}
	if p.Settings.Compat {
		names = append(names, "CLAUDE.md")
	}
	m := &memory{loader: l, seen: map[string]bool{}}
	var files []string
	for _, dir := range l.way() {
		for _, name := range names {
			file := path.Join(dir, name)
			if real := m.real(file); !m.seen[real] { // CLAUDE.md may be a link to AGENTS.md
				m.seen[real] = true
				files = append(files, file)
			}
		}
	}
	var parts []string
	for _, file := range files {
		text, err := m.text(file)
		var broken *fileError
		switch {
		case errors.As(err, &broken):
			l.problem(broken.at(l.project.place(file)))
		case err != nil || strings.TrimSpace(text) == "":
		case file == "AGENTS.md":
			parts = append(parts, strings.TrimSpace(m.include(file, text, nil)))
		default:
			parts = append(parts, "### "+file+"\n\n"+strings.TrimSpace(m.include(file, text, nil)))
		}
	}
	p.Memory = strings.Join(parts, "\n\n")
}

// way are the directories from the root to the working directory, relative to the root.
func (l *loader) way() []string {
	dirs := []string{"."}
	if l.workdir == "" {
		return dirs
	}
	work := l.workdir
	if !filepath.IsAbs(work) {
		work = filepath.Join(l.root, work)
	}
	if real, err := filepath.EvalSymlinks(work); err == nil {
		work = real
	}
	rel, err := filepath.Rel(l.root, work)
	if err != nil || !filepath.IsLocal(rel) {
		l.problem(Problem{Place{File: "."}, fmt.Sprintf("the working directory %s is not in the project: only the root's AGENTS.md counts", clip(l.workdir)), "work in the project"})
		return dirs
	}
	at := ""
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if part != "." {
			at = path.Join(at, part)
			dirs = append(dirs, at)
		}
	}
	return dirs
}

// memory puts included files into their places. Each file counts once, so that no web of includes grows beyond its files.
type memory struct {
	*loader
	seen  map[string]bool // by resolved path
	size  int64
	tries int
}

func (m *memory) real(name string) string {
	abs := m.project.abs(name)
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

// text reads a file within the limits.
func (m *memory) text(name string) (string, error) {
	if m.forbidden(m.project, name) {
		return "", errForbidden
	}
	data, err := m.project.read(name, maxMemoryFile)
	if err != nil {
		return "", err
	}
	if m.size+int64(len(data)) > maxMemoryTotal {
		return "", &fileError{fmt.Sprintf("all memory together is larger than %s", size(maxMemoryTotal)), "make it smaller"}
	}
	m.size += int64(len(data))
	return strings.ReplaceAll(string(data), "\r\n", "\n"), nil
}

// include replaces the lines of a text that are an include. above are the files that it was included from.
func (m *memory) include(name, text string, above []string) string {
	above = append(slices.Clip(above), m.real(name))
	var out strings.Builder
	var f codeFence
	line := 0
	for l := range strings.Lines(text) {
		line++
		said := strings.TrimSuffix(l, "\n")
		inside := f.next(said)
		rel, ok := strings.CutPrefix(strings.TrimLeft(said, " "), "@")
		if indent := len(said) - len(rel) - 1; inside || !ok || rel == "" || indent > 3 {
			out.WriteString(l)
			continue
		}
		at := m.project.place(name)
		at.Line, at.Column = line, len(said)-len(rel)
		if part, ok := m.part(name, strings.TrimRight(rel, " \t"), at, above); ok {
			out.WriteString(strings.TrimRight(part, "\n"))
			if strings.HasSuffix(l, "\n") {
				out.WriteByte('\n')
			}
			continue
		}
		out.WriteString(l)
	}
	return out.String()
}

// part gives what stands for an include. What is prose stays, and so does what can't be included, with a problem.
func (m *memory) part(from, rel string, at Place, above []string) (string, bool) {
	wrong := func(reason, remedy string) (string, bool) {
		if likePath(rel) {
			m.problem(Problem{at, fmt.Sprintf("@%s is not included: %s", clip(rel), reason), remedy})
		}
		return "", false
	}
	if m.tries++; m.tries > maxTries {
		return wrong(fmt.Sprintf("more than %d lines begin with @", maxTries), "have fewer")
	}
	name := path.Join(path.Dir(from), rel)
	if path.IsAbs(rel) || strings.HasPrefix(rel, "~") || !fs.ValidPath(name) {
		return wrong("it is outside of the project", "put the file into the project")
	}
	kind := m.project.kind(name)
	switch {
	case kind == 0:
		m.trace.file(m.project, name)
		return wrong("there is no such file", "make it, or correct the path")
	case kind != 'f' && !likePath(rel):
		return "", false
	}
	real := m.real(name)
	switch {
	case slices.Contains(above, real):
		return wrong("it includes itself in the end", "remove one of the includes")
	case m.seen[real]: // its content stands elsewhere
		return "", false
	case len(above) > maxIncludes:
		return wrong(fmt.Sprintf("it is more than %d includes deep", maxIncludes), "include it further up")
	}
	text, err := m.text(name)
	var broken *fileError
	if errors.As(err, &broken) {
		m.problem(Problem{at, fmt.Sprintf("@%s is not included: %s", clip(rel), broken.reason), broken.remedy})
		return "", false
	} else if err != nil {
		return wrong("there is no such file", "make it, or correct the path")
	}
	m.seen[real] = true
	return m.include(name, text, above), true
}

// kind says what a name is: 'f' a file, 'd' a directory, 'x' something that can't be looked at, 0 nothing.
func (t tree) kind(name string) byte {
	info, err := fs.Stat(t.fs, name)
	switch {
	case absent(err):
		return 0
	case err != nil:
		return 'x'
	case info.IsDir():
		return 'd'
	}
	return 'f'
}

// likePath reports whether somebody who writes @ and this means a file, there or not: it has no blanks, and begins or ends as a path does. Names of people don't.
func likePath(s string) bool {
	if strings.ContainsAny(s, " \t") {
		return false
	}
	for _, p := range []string{"./", "../", "~/", "/"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	ext := strings.TrimPrefix(path.Ext(s), ".")
	return ext != "" && len(ext) <= 8 && plainName(ext)
}

// codeFence follows the fenced code blocks of a Markdown text.
type codeFence struct{ open string } // the fence that is open: its characters

// next reports whether a line is in a code block, or opens or closes one.
func (f *codeFence) next(line string) bool {
	s := strings.TrimLeft(line, " ")
	if len(line)-len(s) > 3 {
		return f.open != ""
	}
	run := ""
	for _, c := range []string{"`", "~"} {
		if n := len(s) - len(strings.TrimLeft(s, c)); n >= 3 {
			run = s[:n]
		}
	}
	rest := strings.TrimSpace(s[len(run):])
	switch {
	case f.open != "":
		if strings.HasPrefix(run, f.open) && rest == "" {
			f.open = ""
		}
		return true
	case run != "" && (run[0] == '~' || !strings.Contains(rest, "`")):
		f.open = run
		return true
	}
	return false
}

// rules reads .agents/rules/*.md in their order.
func (l *loader) rules(p *Project) {
	const dir = ".agents/rules"
	list, err := l.project.list(dir)
	var broken *fileError
	if errors.As(err, &broken) {
		l.problem(broken.at(l.project.place(dir)))
	}
	var names []string
	for _, e := range list {
		if path.Ext(e.name) != ".md" || e.dir {
			continue
		}
		names = append(names, e.name)
	}
	slices.SortFunc(names, compareRules)
	total := 0
	for _, name := range names {
		file := path.Join(dir, name)
		data, err := l.text(p, l.project, file, maxMemoryFile)
		if err == nil && total+len(data) > maxMemoryTotal {
			err = &fileError{fmt.Sprintf("all rules together are larger than %s", size(maxMemoryTotal)), "make them smaller"}
		}
		r := rule{Problem: Problem{Place: l.project.place(file)}}
		switch {
		case errors.As(err, &broken):
			r.Problem = broken.at(r.Place)
			l.problem(r.Problem)
		case err != nil:
			continue // it went away
		default:
			total += len(data)
			r.text, r.readable = strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n")), true
		}
		p.rules = append(p.rules, r)
	}
	p.Rules = joinRules(p.rules)
}

// rule is a file of .agents/rules.
type rule struct {
	Problem  // why it can't be read: without a Reason it can
	text     string
	readable bool
}

func joinRules(rules []rule) string {
	var parts []string
	for _, r := range rules {
		if r.text != "" {
			parts = append(parts, r.text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// compareRules orders rules by the number before the first dash, those without one last, then by name.
func compareRules(a, b string) int {
	x, numberedX := prefix(a)
	y, numberedY := prefix(b)
	switch {
	case numberedX != numberedY:
		if numberedX {
			return -1
		}
		return 1
	case len(x) != len(y): // of any length, without zeros in front
		return len(x) - len(y)
	case x != y:
		return strings.Compare(x, y)
	}
	return strings.Compare(a, b)
}

func prefix(name string) (string, bool) {
	digits, _, ok := strings.Cut(name, "-")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	return strings.TrimLeft(digits, "0"), true
}
