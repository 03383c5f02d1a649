package permit

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// World is what paths in rules and calls are relative to. Safe for concurrent use.
type World struct {
	dir, real string // the project as given (absolute), and without symbolic links
	home      string // "" when it is not known
	fold      bool   // names that differ in case name the same file
	env       func(string) (string, bool)
	most      int // names below a directory that are looked at
}

// NewWorld is for a project directory. home may be "". fold says that the file system does not tell names apart by their case.
func NewWorld(dir, home string, fold bool, env func(string) (string, bool)) (*World, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, errdefs.Validation.Errorf("the project directory %q: %w", dir, err)
	}
	w := &World{dir: abs, real: resolve(abs), fold: fold, env: env, most: 100_000}
	if filepath.IsAbs(home) {
		w.home = filepath.Clean(home)
	}
	return w, nil
}

// Path is a file or directory that a call means.
type Path struct {
	Shown   string
	names   []string // absolute and clean: as it is said, and with the symbolic links on the way resolved
	tree    bool     // what lies below it is meant too
	unknown bool     // it may be any
	guess   bool     // it may not be meant as a file at all
	any     bool     // what lies below it need not be there yet: it is written, or what is shown of it is looked at later
	there   bool     // it is changed or removed: nothing comes to be below it
	from    []Path   // what comes to be below it has the names that there are in these
}

// procLink leads from any process to where it is: not to where we are.
var procLink = lazy.Regexp(`^/proc/(?:self|thread-self|\d+)(?:/task/\d+)?/(root|cwd)(/.*)?$`)

// path is what text means in the directory dir, which is "" when it is not known.
func (w *World) path(text, dir string) Path {
	p := Path{Shown: text}
	name := filepath.FromSlash(text)
	switch {
	case strings.ContainsRune(text, 0), !filepath.IsAbs(name) && dir == "":
		p.unknown = true
		return p
	case !filepath.IsAbs(name):
		name = dir + string(filepath.Separator) + name
	}
	p.add(name)
	if m := procLink.Get().FindStringSubmatch(filepath.Clean(name)); m != nil && m[1] == "root" {
		p.add("/" + m[2])
	} else if m != nil {
		p.add(dir + m[2])
	}
	if rest, ok := strings.CutPrefix(text, "~"); ok && w.home != "" && (rest == "" || rest[0] == '/') {
		p.add(w.home + filepath.FromSlash(rest))
	}
	return p
}

// add takes up a name: cleaned as text, as the file tools do, and resolved as a kernel does, for which a ".." behind a link leads elsewhere.
func (p *Path) add(name string) {
	clean := filepath.Clean(name)
	for _, n := range []string{clean, resolve(clean), resolve(name)} {
		if !slices.Contains(p.names, n) {
			p.names = append(p.names, n)
		}
	}
}

// resolve follows the symbolic links in an absolute path, as far as it exists.
func resolve(name string) string {
	const most = 255
	sep := string(filepath.Separator)
	root := filepath.VolumeName(name) + sep
	at, todo := root, strings.Split(name[len(filepath.VolumeName(name)):], sep)
	for links := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, next)
		target, err := os.Readlink(at)
		if err != nil {
			continue // no link, or nothing there
		}
		if links++; links > most {
			return filepath.Join(append([]string{at}, todo...)...)
		}
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = root
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	return at
}

// below gives name relative to dir, with slashes, when it is dir ("") or lies in it.
func below(dir, name string) (string, bool) {
	rel, err := filepath.Rel(dir, name)
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return "", false
	case rel == ".":
		return "", true
	}
	return filepath.ToSlash(rel), true
}

// inside reports whether all names of p lie in the project.
func (w *World) inside(p Path) bool { return w.within(p, w.dir, w.real) }

func (w *World) within(p Path, dirs ...string) bool {
	return !p.unknown && !slices.ContainsFunc(p.names, func(name string) bool {
		return !slices.ContainsFunc(dirs, func(dir string) bool { _, ok := below(dir, name); return ok })
	})
}

// pattern is the path of a rule, as in a .gitignore: what matches it, and all that lies below that.
type pattern struct {
	lit      string   // the directory or file in front that has no special characters, absolute
	real     []string // lit, and what it was when the rule was read, without symbolic links: for rules that permit
	glob     string   // below lit; "" means lit itself
	floating bool     // at any depth: glob begins with **/
	all      bool     // everything
	rooted   bool     // it was said with one slash in front, by which many mean the file system's root
}

func (w *World) parsePath(spec string) (*pattern, error) {
	p := &pattern{}
	text := spec
	if text != "/" {
		text = strings.TrimSuffix(text, "/")
	}
	for strings.HasSuffix(text, "/**") { // a directory stands for what is in it
		text = strings.TrimSuffix(text, "/**")
		if strings.Trim(text, "/") == "" || text == "." {
			text += "/"
		}
	}
	from := w.dir
	switch {
	case strings.ContainsRune(spec, 0):
		return nil, errdefs.Validation.Errorf("a path has no NUL")
	case strings.HasPrefix(text, "!"):
		return nil, errdefs.Validation.Errorf("a rule cannot be negated with !: write a rule of another list; \\! means a name that begins with it")
	case strings.HasPrefix(spec, "//"):
		from, text = string(filepath.Separator), strings.TrimLeft(text, "/")
	case strings.HasPrefix(text, "~"):
		if text != "~" && text[1] != '/' {
			return nil, errdefs.Validation.Errorf("whose home %s is cannot be said: write ~/ for your own, or //ABSOLUTE/PATH; \\~ means a name that begins with it", strings.SplitN(text, "/", 2)[0])
		}
		if w.home == "" {
			return nil, errdefs.Validation.Errorf("the home directory is not known, as HOME is not set: write //ABSOLUTE/PATH")
		}
		from, text = w.home, text[1:]
	case strings.HasPrefix(text, "/"):
		p.rooted = true
	case !strings.Contains(strings.TrimSuffix(spec, "/"), "/") && text != "." && text != "..", strings.HasPrefix(text, "**/"):
		p.floating = true
	}
	if p.floating {
		p.glob = cleanGlob("**/" + text)
		p.all = strings.Trim(p.glob, "*/") == ""
		return p, validGlob(p.glob)
	}
	p.lit = from
	parts := strings.Split(text, "/")
	for len(parts) > 0 && !strings.ContainsAny(parts[0], `*?[{\`) {
		p.lit = filepath.Join(p.lit, parts[0]) // ".." too
		parts = parts[1:]
	}
	if slices.Contains(parts, "..") {
		return nil, errdefs.Validation.Errorf("a path cannot have .. behind a special character")
	}
	p.glob = cleanGlob(strings.Join(parts, "/"))
	p.all = p.glob == "" && (filepath.Dir(p.lit) == p.lit || p.rooted && p.lit == w.dir)
	p.real = []string{p.lit}
	if rel, ok := below(w.dir, p.lit); ok { // a link in the project may be the model's own work: only the way to the project counts
		p.real = append(p.real, filepath.Join(w.real, rel))
	} else {
		p.real = append(p.real, resolve(p.lit))
	}
	return p, validGlob(p.glob)
}

func cleanGlob(glob string) string {
	parts := strings.Split(glob, "/")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "." })
	return strings.Join(parts, "/")
}

func validGlob(glob string) error {
	if !doublestar.ValidatePattern(glob) {
		return errdefs.Validation.Errorf("%s is no valid pattern: close every [ and {, and put nothing behind a last \\", glob)
	}
	return nil
}

// binds says whether a rule that refuses is about p: any of its names is enough.
func (w *World) binds(r *pattern, p Path) Match {
	if p.guess && (r.all || p.unknown) {
		return No
	}
	if r.all {
		return Yes
	}
	if p.unknown {
		return May
	}
	m := No
	for _, name := range p.names {
		is := w.bindsName(r, name, p.tree)
		if is == May && (!p.any || p.there || w.takesAll(r, p.from)) && !w.holds(r, name) {
			is = No
		}
		m = max(m, is)
	}
	return m
}

// takesAll reports whether what comes from these directories and files is known, and nothing of it has a name that the rule is about wherever it lies.
func (w *World) takesAll(r *pattern, from []Path) bool {
	name, one := strings.CutPrefix(r.glob, "**/")
	if !r.floating || !one || strings.Contains(name, "/") || len(from) == 0 {
		return false
	}
	return !slices.ContainsFunc(from, func(p Path) bool {
		return p.unknown || slices.ContainsFunc(p.names, func(dir string) bool { return !exists(dir) || w.holds(r, dir) })
	})
}

// holds reports whether something below dir is what the rule is about, or whether there is too much to look.
func (w *World) holds(r *pattern, dir string) (found bool) {
	n := 0
	switch {
	case !r.floating && r.glob == "" && !r.rooted:
		return exists(r.lit)
	case !exists(dir):
		return false
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		n++
		names := []string{name}
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			names = append(names, resolve(name))
		}
		for i, name := range names {
			if err != nil || n > w.most || w.bindsName(r, name, i > 0) != No {
				found = true
				return fs.SkipAll
			}
		}
		return nil
	})
	return found || err != nil
}

func (w *World) bindsName(r *pattern, name string, tree bool) Match {
	if r.floating {
		rel := strings.TrimPrefix(filepath.ToSlash(name[len(filepath.VolumeName(name)):]), "/")
		for _, dir := range []string{w.dir, w.real} {
			if in, ok := below(dir, name); ok {
				rel = in
				break
			}
		}
		switch {
		case ancestors(w.folded(r.glob), w.folded(rel)):
			return Yes
		case tree:
			return May
		}
		return No
	}
	lits := []string{r.lit, resolve(r.lit)}
	if abs, ok := below(w.dir, r.lit); ok && r.rooted {
		lits = append(lits, filepath.FromSlash("/"+abs))
	}
	name = w.folded(name)
	m := No
	for _, lit := range lits {
		lit = w.folded(lit)
		if rel, ok := below(lit, name); ok {
			switch {
			case r.glob == "" || ancestors(w.folded(r.glob), rel):
				return Yes
			case tree && reaches(w.folded(r.glob), rel):
				m = May
			}
		} else if _, above := below(name, lit); tree && above {
			m = May
		}
	}
	return m
}

// permits says whether a rule that permits is about p, and what lies below if that is meant too: all of its names have to match, and as they are written.
func (w *World) permits(r *pattern, p Path) bool {
	if p.unknown || len(p.names) == 0 {
		return false
	}
	for _, name := range p.names {
		ok := false
		if r.floating {
			for _, dir := range []string{w.dir, w.real} {
				if rel, in := below(dir, name); in {
					ok = ok || r.all || ancestors(r.glob, rel)
				}
			}
		}
		for _, lit := range r.real {
			if rel, in := below(lit, name); in {
				ok = ok || r.glob == "" || ancestors(r.glob, rel)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// ancestors reports whether rel, or a directory that it lies in, matches.
func ancestors(glob, rel string) bool {
	for at := rel; at != "" && at != "."; at = path.Dir(at) {
		if doublestar.MatchUnvalidated(glob, at) {
			return true
		}
	}
	return false
}

// reaches reports whether something below rel may match.
func reaches(glob, rel string) bool {
	if rel == "" || strings.ContainsAny(glob, `{\`) {
		return true
	}
	pats := strings.Split(glob, "/")
	for i, part := range strings.Split(rel, "/") {
		switch {
		case i >= len(pats) || pats[i] == "**":
			return true
		case !doublestar.MatchUnvalidated(pats[i], part):
			return false
		}
	}
	return true
}

// folded is a name by which files are told apart.
func (w *World) folded(name string) string {
	if !w.fold {
		return name
	}
	return norm.NFC.String(strings.ToLower(name))
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
