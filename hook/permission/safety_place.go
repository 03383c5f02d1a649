package permission

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/shell"
)

// A fence is what may be written: a project, further directories, and those for temporary files.
type fence struct {
	dir   string   // the project
	roots []string // it and the further ones, by their other names too
	temps []string
	home  string
}

func newFence(dir string, further []string) *fence {
	f := &fence{temps: []string{"/tmp", "/var/tmp", "/private/tmp", "/dev/shm"}}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	f.dir = filepath.ToSlash(dir)
	f.home, _ = os.UserHomeDir()
	f.roots = names(f.dir)
	for _, dir := range further {
		if abs, err := filepath.Abs(dir); err == nil {
			f.roots = append(f.roots, names(filepath.ToSlash(abs))...)
		}
	}
	f.temps = append(f.temps, names(filepath.ToSlash(os.TempDir()))...)
	return f
}

// names are the ones under which a directory is known. The whole file system is nobody's project.
func names(dir string) []string {
	out := []string{path.Clean(dir)}
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		out = append(out, filepath.ToSlash(real))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "/" || s == "." })
}

// env is what is known of the variables that bash is started with. The others are not: what the tool's environment has is not to be seen here.
func (f *fence) env(name string) (string, bool) {
	switch name {
	case "HOME":
		return f.home, f.home != ""
	case "TMPDIR":
		return filepath.ToSlash(os.TempDir()), true
	case "USER", "LOGNAME":
		return os.LookupEnv(name)
	}
	return "", false
}

func (f *fence) isTemp(p string) bool {
	return slices.ContainsFunc(f.temps, func(t string) bool { return within(p, t) })
}

// isHome reports whether p, a path below the directory t for temporary files, is the home directory or lies
// in it. A home directory is not temporary, even if somebody made it below t. A parent of the home directory
// counts as well if the effect extends to everything in it.
func (f *fence) isHome(what effect, p, t string) bool {
	return slices.ContainsFunc(names(filepath.ToSlash(f.home)), func(home string) bool {
		return home != t && within(home, t) && (within(p, home) || within(home, p) && what != overwrites && what != creates)
	})
}

// within reports whether p is dir or lies in it.
func within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

// An effect is what a command does to a path.
type effect int

const (
	removes    effect = iota // it is gone afterwards, and all in it
	moves                    // it is elsewhere afterwards
	overwrites               // its content is another one
	changes                  // its mode or owner is another one
	creates                  // it is there afterwards; what was there stays
)

var verbs = [...]string{"removes", "moves away", "writes", "changes the mode or owner of", "makes"}

// A place is where a path leads.
type place int

const (
	inside  place = iota
	project       // the whole project
	git           // its history and settings
	temp
	temps // the whole directory for temporary files
	outside
	device
	sink // a device that keeps nothing
	network
	nowhere // not known
)

// path judges one path that a program has an effect on.
func (j *examiner) path(who string, what effect, w, dir shell.Word) {
	at, p := j.place(what, w, dir)
	if j.remote {
		if at != sink && what != creates {
			j.ask("%s %s %s on another machine", who, verbs[what], p)
		}
		return
	}
	switch at {
	case outside:
		if what == creates {
			j.ask("%s %s %s, which is outside the project", who, verbs[what], p)
			return
		}
		j.deny("%s %s %s, which is outside the project and the directories for temporary files: stay inside, or let a person do it", who, verbs[what], p)
	case device:
		j.deny("%s %s the device %s: nothing may be written there", who, verbs[what], p)
	case sink:
		if what == removes || what == moves || what == changes {
			j.deny("%s %s the device %s: others need it", who, verbs[what], p)
		}
	case network:
		j.ask("%s sends to the network: %s", who, p)
	case project:
		if what == removes || what == moves {
			j.ask("%s %s the whole project: %s", who, verbs[what], p)
		}
	case temps:
		if what == removes || what == moves || what == changes {
			j.ask("%s %s the directory for temporary files as a whole: %s", who, verbs[what], p)
		}
	case git:
		if what != creates {
			j.ask("%s %s %s, the project's history", who, verbs[what], p)
		}
	case nowhere:
		if what != creates {
			j.ask("%s %s a path that is not known: %s", who, verbs[what], p)
		}
	}
}

// place finds where a path leads, and how to call it.
func (j *examiner) place(what effect, w, dir shell.Word) (place, string) {
	text := w.Text
	if !w.Known {
		if j.certain(text) {
			return outside, text + "…"
		}
		if w.Source != "" {
			text = w.Source
		}
		return nowhere, text
	}
	if text == "" {
		return inside, text // no program takes the empty path
	}
	if !path.IsAbs(text) {
		if !dir.Known {
			return nowhere, text
		}
		if dir.Glob {
			w.Glob = true
		}
		text = dir.Text + "/" + text
	}
	if w.Glob {
		return j.pattern(what, text)
	}
	p := path.Clean(text)
	if len(j.links) > 0 {
		return j.where(what, j.through(text, what)), p
	}
	return j.where(what, p), p
}

// certain reports whether a path that begins with prefix leads outside, whatever follows.
func (j *examiner) certain(prefix string) bool {
	i := strings.LastIndexByte(prefix, '/')
	if i <= 0 || prefix[0] != '/' || strings.Contains(prefix, "..") {
		return false
	}
	dir := path.Clean(prefix[:i])
	if dir == "/" || j.where(removes, dir) != outside && j.where(removes, dir) != device {
		return false
	}
	return !slices.ContainsFunc(append(slices.Clip(j.roots), j.temps...), func(r string) bool { return within(r, dir) })
}

// through follows the links that the script itself made.
func (j *examiner) through(p string, what effect) string {
	slash := strings.HasSuffix(p, "/")
	p = path.Clean(p)
	for range 8 {
		next := p
		for link, to := range j.links {
			if strings.HasPrefix(p, link+"/") || p == link && (slash || what == overwrites || what == changes) {
				next = to + strings.TrimPrefix(p, link)
			}
		}
		if next == p {
			break
		}
		p = path.Clean(next)
	}
	return p
}

// where classifies a clean absolute path.
func (j *examiner) where(what effect, p string) place {
	if at, ok := j.byRoot(what, p); ok {
		return at
	}
	switch p {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/full", "/dev/zero":
		return sink
	}
	for _, t := range j.temps {
		if p == t {
			return temps
		}
		if within(p, t) && !j.isHome(what, p, t) {
			return temp
		}
	}
	switch {
	case within(p, "/dev/fd") || strings.HasPrefix(p, "/proc/self/fd/"):
		return sink
	case within(p, "/dev/tcp") || within(p, "/dev/udp"):
		return network
	case within(p, "/dev"):
		return device
	}
	return outside
}

// byRoot classifies a path that is a root, or lies in one or above one. Of several roots the strictest counts. What a root lies in is outside, but for
// what is put there beside the root.
func (j *examiner) byRoot(what effect, p string) (at place, ok bool) {
	above := false
	for _, r := range j.roots {
		switch {
		case p == r:
			at, ok = max(at, project), true
		case within(r, p): // a root lies in it
			above = true
		case within(p, r):
			at, ok = max(at, inRoot(what, p[len(r)+1:])), true
		}
	}
	if !ok && above && what != overwrites && what != creates {
		return outside, true
	}
	return at, ok
}

// inRoot classifies a path in a root, relative to it.
func inRoot(what effect, rest string) place {
	switch {
	case rest != ".git" && !strings.HasPrefix(rest, ".git/"), strings.HasSuffix(rest, ".lock"):
		return inside
	case what == overwrites && (rest == ".git/info/exclude" || strings.HasSuffix(rest, "_MSG") || strings.HasSuffix(rest, "_EDITMSG")):
		return inside
	}
	return git
}

// pattern classifies what a glob stands for: what lies below the directories in front of it.
func (j *examiner) pattern(what effect, text string) (place, string) {
	base, rest := "", ""
	clean := path.Clean(text)
	for i := 0; i <= len(clean); {
		part, _, _ := strings.Cut(clean[i:], "/")
		if strings.ContainsAny(part, "*?[…") || strings.HasPrefix(part, "@(") || strings.HasPrefix(part, "!(") || strings.HasPrefix(part, "+(") {
			base, rest = clean[:max(0, i-1)], clean[i:]
			break
		}
		i += len(part) + 1
	}
	if rest == "" { // quoted, or cleaned away by ..
		return j.where(what, j.through(text, what)), path.Clean(text)
	}
	if strings.Contains(text, "**") && strings.Contains(text, "..") {
		return nowhere, text
	}
	if base == "" {
		base = "/"
	}
	at := j.where(what, j.through(base+"/", what))
	switch {
	case at == project && what == overwrites, at == project && !broad(rest), at == temps && !broad(rest):
		if at == project && strings.HasPrefix(rest, ".g") && (what == removes || what == moves) && strings.Contains(".git", strings.TrimRight(strings.SplitN(rest, "/", 2)[0], "*?")) {
			return git, text
		}
		return inside, text
	}
	return at, text
}

// broad reports whether a pattern leaves nothing out to speak of.
func broad(p string) bool {
	if strings.Contains(p, "!(") { // all but
		return true
	}
	return strings.Trim(p, "*?./[]!^-+@()") == ""
}
