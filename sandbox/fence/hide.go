package fence

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/sandbox"
	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// The bounds of looking for what HidePatterns and ProtectPatterns name: behind one a command does not start, rather than see or change what it should not.
const (
	mostLookedAt = 1_000_000 // names, of all patterns together
	mostHidden   = 1000      // files and directories that match
)

// pattern is one of HidePatterns or ProtectPatterns.
type pattern struct {
	dir  string // in front of the first special character, with none
	rest string // below dir; "" means dir itself
	name string // if rest is **/NAME, that: the most common, and the cheapest to look for
	text bool   // name has no special characters
	seen bool   // it is of ProtectPatterns: it can be read
}

// readPattern takes a pattern that is valid.
func readPattern(text string) pattern {
	p := pattern{dir: string(filepath.Separator)}
	parts := strings.Split(strings.TrimPrefix(text, p.dir), "/")
	for len(parts) > 0 {
		part, plain := literal(parts[0])
		if !plain {
			break
		}
		p.dir, parts = filepath.Join(p.dir, part), parts[1:]
	}
	p.rest = strings.Join(parts, "/")
	if name, any := strings.CutPrefix(p.rest, "**/"); any && !strings.ContainsAny(name, `/{`) && name != "**" { // an alternative may have a slash in it
		if p.name, p.text = literal(name); !p.text {
			p.name = name
		}
	}
	return p
}

// literal is what a part of a pattern without special characters stands for.
func literal(part string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*', '?', '[', '{':
			return "", false
		case '\\':
			if i++; i == len(part) {
				return "", false
			}
		}
		b.WriteByte(part[i])
	}
	return b.String(), true
}

// HidePattern quotes a path, absolute, for Policy.HidePatterns and ProtectPatterns, and puts a pattern for what lies below it behind; "" is the path itself.
func HidePattern(dir, below string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(filepath.ToSlash(dir))
	if below == "" {
		return quoted
	}
	return strings.TrimSuffix(quoted, "/") + "/" + below
}

// validPattern says what is wrong with one.
func validPattern(text string) string {
	switch {
	case !filepath.IsAbs(text) || strings.ContainsRune(text, 0) || filepath.ToSlash(filepath.Clean(text)) != text:
		return "is no absolute, clean path"
	case !doublestar.ValidatePattern(text):
		return "is no valid pattern"
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "has .. in it"
	}
	return ""
}

// folded is a name as the system's usual file system tells names apart.
func folded(name string) string {
	if runtime.GOOS == "darwin" {
		return strings.ToLower(name)
	}
	return name
}

// is reports whether name in the directory rel, below the pattern's, matches.
func (p pattern) is(rel, name string) bool {
	switch {
	case p.text:
		return folded(name) == folded(p.name)
	case p.name != "":
		return doublestar.MatchUnvalidated(folded(p.name), folded(name))
	}
	return doublestar.MatchUnvalidated(folded(p.rest), folded(path.Join(rel, name)))
}

// covers reports whether a path, or a directory that it lies in, matches.
func (p pattern) covers(file string) bool {
	rel, err := filepath.Rel(folded(p.dir), folded(file))
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	if p.rest == "" {
		return true
	}
	for at := filepath.ToSlash(rel); at != "."; at = path.Dir(at) {
		if p.is(path.Dir(at), path.Base(at)) {
			return true
		}
	}
	return false
}

// hiding are the patterns for what is hidden.
func hiding(p sandbox.Policy) (out []pattern) {
	for _, text := range p.HidePatterns {
		out = append(out, readPattern(text))
	}
	return out
}

// protecting are those for what is protected, where it could be written.
func protecting(p sandbox.Policy) (out []pattern) {
	for _, text := range p.ProtectPatterns {
		if MatchesInside(p, text) {
			pat := readPattern(text)
			pat.seen = true
			out = append(out, pat)
		}
	}
	return out
}

// hit is something that a pattern matches.
type hit struct {
	path string
	held bool // the directories that it lies in have to keep their names: elsewhere the pattern would not match it
	seen bool // it is protected, not hidden
}

// found looks for what the policy's patterns match now.
func found(p sandbox.Policy) ([]hit, error) {
	s := seeker{policy: p}
	byDir := map[string][]pattern{}
	for _, pat := range append(hiding(p), protecting(p)...) { // what is hidden is not looked at any more
		pat.dir = Resolved(pat.dir)
		if pat.rest == "" {
			if _, err := os.Lstat(pat.dir); err == nil {
				s.hits = append(s.hits, hit{pat.dir, true, pat.seen})
			} else if dir := shut(pat.dir, err); dir != "" {
				s.hits = append(s.hits, hit{dir, true, pat.seen})
			}
			continue
		}
		byDir[pat.dir] = append(byDir[pat.dir], pat)
	}
	for dir, pats := range byDir {
		if err := s.walk(dir, "", pats); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.hits, func(a, b hit) int { return strings.Compare(a.path, b.path) })
	return s.hits, nil
}

// seeker looks for what patterns match.
type seeker struct {
	policy sandbox.Policy
	looked int
	hits   []hit
}

// walk looks below dir, at rel, for what matches one of pats, which all begin in dir. A directory that can't be read by us a command can't read either, unless it is ours: then the command can change that, so
// it is taken for a match.
func (s *seeker) walk(dir, rel string, pats []pattern) error {
	at := filepath.Join(dir, filepath.FromSlash(rel))
	d, err := os.Open(at) //nolint:gosec // what a policy names
	if err != nil {
		if dir := shut(at, err); dir != "" {
			s.hits = append(s.hits, hit{dir, true, !slices.ContainsFunc(pats, func(p pattern) bool { return !p.seen })})
			return nil
		}
		if info, e := os.Lstat(at); e == nil && info.IsDir() && !errors.Is(err, fs.ErrPermission) {
			return errdefs.NotAvailable.Errorf("sandbox: look for what is to be hidden or protected: %w", err)
		}
		return nil
	}
	entries, err := d.ReadDir(-1)
	_ = d.Close()
	if err != nil && len(entries) > 0 {
		return errdefs.NotAvailable.Errorf("sandbox: look for what is to be hidden or protected: %w", err)
	}
	for _, e := range entries {
		if s.looked++; s.looked > mostLookedAt {
			return errdefs.NotAvailable.Errorf("sandbox: look for what is to be hidden or protected: there are more than %d names to look at below %s: name directories instead of patterns with **", mostLookedAt, dir)
		}
		i := slices.IndexFunc(pats, func(p pattern) bool { return p.is(rel, e.Name()) })
		if i < 0 && !e.IsDir() {
			continue
		}
		below, left := path.Join(rel, e.Name()), pats
		if i >= 0 {
			if err := s.hit(filepath.Join(at, e.Name()), e, pats[i], pats[i].name == "" || !slices.Contains(writable(s.policy), dir)); err != nil {
				return err
			}
			left = nil
			if pats[i].seen { // something in it may be hidden
				left = slices.DeleteFunc(slices.Clone(pats), func(p pattern) bool { return p.seen })
			}
		}
		if e.IsDir() && slices.ContainsFunc(left, func(p pattern) bool { return p.deeper(below) }) {
			if err := s.walk(dir, below, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// shut gives the directory that keeps us from looking at a path, and whose mode we, and so commands, can change; "" when err says something else.
func shut(path string, err error) string {
	for errors.Is(err, fs.ErrPermission) {
		info, e := os.Lstat(path) //nolint:gosec // it is looked at only
		switch {
		case e == nil && info.IsDir() && ours(info):
			return path
		case e == nil || path == filepath.Dir(path):
			return ""
		}
		path = filepath.Dir(path)
	}
	return ""
}

// deeper reports whether something below rel may match.
func (p pattern) deeper(rel string) bool {
	return strings.Contains(p.rest, "**") || strings.ContainsAny(p.rest, `{\`) || strings.Count(rel, "/") < strings.Count(p.rest, "/")
}

func (s *seeker) hit(path string, e fs.DirEntry, by pattern, held bool) error {
	if e.Type()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if err != nil || slices.ContainsFunc(writable(s.policy), func(dir string) bool { return reach.Inside(target, dir) }) { // a link to all of the project hides nothing
			return nil
		}
		path, held = target, true
	}
	if len(s.hits) >= mostHidden {
		return errdefs.NotAvailable.Errorf("sandbox: look for what is to be hidden or protected: there are more than %d files and directories of the patterns: name the directories that they lie in", mostHidden)
	}
	s.hits = append(s.hits, hit{path, held, by.seen})
	return nil
}

// Resolved is a path with the symbolic links of what exists of it resolved; what does not exist is taken to be no link.
func Resolved(path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// MatchesInside reports whether a pattern may match something in what may be written, which can be hidden or protected where [Capabilities] Inside holds only. Both are resolved ([Resolve]).
func MatchesInside(p sandbox.Policy, text string) bool {
	pat := readPattern(text)
	return slices.ContainsFunc(writable(p), func(dir string) bool {
		return reach.Inside(dir, pat.dir) || pat.rest != "" && reach.Inside(pat.dir, dir)
	})
}

// view is what a command that starts now can't see.
type view struct {
	hidden []string // all that is there and hidden
	held   []string // those whose directories keep their names: elsewhere they would not be known
	read   []string // Policy.Read, without what is hidden all the same
	kept   []string // what stays read-only of what may be written
}

// look says what there is to hide now.
func (f *Fence) look() (view, error) {
	p := f.policy
	v := view{hidden: hidden(p), read: p.Read}
	for _, path := range p.Protect { // what somebody outside has removed needs no protection; a command can't
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			v.kept = append(v.kept, path)
		}
	}
	v.held = slices.Clone(v.hidden)
	if len(p.HidePatterns)+len(p.ProtectPatterns) > 0 {
		hits, err := found(p)
		if err != nil {
			return v, err
		}
		for _, h := range hits {
			if h.seen {
				continue
			}
			v.read = slices.DeleteFunc(slices.Clone(v.read), func(path string) bool {
				return reach.Inside(h.path, path) || !f.caps.Inside.Holds && reach.Inside(path, h.path)
			})
		}
		for _, h := range hits {
			in := func(dir string) bool { return reach.Inside(dir, h.path) }
			if h.seen && !slices.ContainsFunc(writable(p), in) {
				continue
			}
			if h.seen {
				v.kept = reach.Union(v.kept, []string{h.path})
			} else if !slices.ContainsFunc(v.hidden, in) || slices.ContainsFunc(v.read, in) {
				v.hidden = append(v.hidden, h.path)
			}
			if h.held {
				v.held = append(v.held, h.path)
			}
		}
	}
	if f.caps.Inside.Holds {
		return v, nil
	}
	if len(v.kept) > 0 {
		return v, errdefs.NotAvailable.Errorf("sandbox: protecting %s, which lies in a directory that may be written, can't be enforced here: %s", v.kept[0], f.caps.Inside.Why)
	}
	for _, secret := range v.hidden {
		for _, dir := range writable(p) {
			if reach.Inside(dir, secret) {
				return v, errdefs.NotAvailable.Errorf("sandbox: hiding %s, which lies in the writable directory %s (choose a directory below it, or name the secret in Policy.Read), can't be enforced here: %s", secret, dir, f.caps.Inside.Why)
			}
		}
	}
	return v, nil
}

// Readable gives a function that reports whether the policy lets a file be read: for tools that run in this process and look at many. What the policy hides is looked for once, links that are
// to come are not known to it. The paths are absolute and resolved.
func Readable(p sandbox.Policy) func(path string) bool {
	if p.Off {
		return func(string) bool { return true }
	}
	hidden, shown, patterns := map[string]bool{}, map[string]bool{}, hiding(p)
	for _, dir := range concealed(p, places()) {
		hidden[dir] = true
	}
	for _, dir := range p.Read {
		shown[dir] = true
	}
	for _, pat := range patterns {
		real := Resolved(pat.dir)
		if pat.rest == "" {
			hidden[real] = true
			delete(shown, real)
		} else if real != pat.dir {
			pat.dir = real
			patterns = append(patterns, pat)
		}
	}
	return func(path string) bool {
		if slices.ContainsFunc(patterns, func(p pattern) bool { return p.covers(path) }) {
			return false
		}
		for dir := path; !shown[dir]; dir = filepath.Dir(dir) {
			if hidden[dir] {
				return false
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
		return true
	}
}
