package fence

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/sandbox/internal/reach"
)

// The bounds of looking for repositories: what lies behind them is not found.
const (
	mostNames        = 4000    // that are looked at in a directory and below
	mostRepositories = 100     // with worktrees and submodules
	mostFiles        = 50      // of configuration of one repository
	mostHooks        = 50      // directories of hooks of one repository
	mostBytes        = 8 << 20 // of configuration of all
	mostConfig       = 1 << 20 // of one file of git's
)

// repositories finds what decides what git runs in a directory: configuration and hooks of the repository there, of its worktrees and submodules and of repositories below, wherever links, a .git file, an include
// and core.hooksPath lead, as long as that lies in the directory. It reads files only: git runs what a repository says.
type repositories struct {
	root  string // without symbolic links
	names int    // looked at
	seen  map[string]bool
	bytes int // of configuration
	out   []string
}

// gitSettings lists them, with what the user's own configuration of git adds.
func gitSettings(root string) []string {
	r := &repositories{root: root, seen: map[string]bool{}}
	r.worktree(root)
	r.repository(root, "") // the directory may be a bare repository, or a .git
	r.below()
	return reach.Union(r.out, nil)
}

// add takes what is at a path, if it is there and lies in the directory.
func (r *repositories) add(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && real != r.root && reach.Inside(r.root, real) {
		r.out = append(r.out, real)
	}
}

// worktree looks at a directory that may have a .git.
func (r *repositories) worktree(dir string) {
	git := filepath.Join(dir, ".git")
	if text, ok := readGit(git); ok { // of a worktree or a submodule
		r.add(git)
		if to, ok := strings.CutPrefix(text, "gitdir:"); ok {
			r.repository(from(dir, strings.TrimSpace(to)), dir)
		}
		return
	}
	r.repository(git, dir)
}

// repository looks at git's own directory for a worktree, which is "" when it is not known.
func (r *repositories) repository(git, worktree string) {
	git, err := filepath.EvalSymlinks(git)
	if _, e := os.Lstat(filepath.Join(git, "HEAD")); err != nil || e != nil || r.seen[git] || len(r.seen) >= mostRepositories { //nolint:gosec // it is looked at only
		return
	}
	r.seen[git] = true
	common := git
	if text, ok := readGit(filepath.Join(git, "commondir")); ok {
		r.add(filepath.Join(git, "commondir"))
		if common, err = filepath.EvalSymlinks(from(git, strings.TrimSpace(text))); err != nil {
			return
		}
	}
	if worktree == "" {
		if text, ok := readGit(filepath.Join(git, "gitdir")); ok { // of a linked worktree, where its .git is
			worktree = filepath.Dir(from(git, strings.TrimSpace(text)))
		}
	}
	r.add(filepath.Join(common, "hooks"))
	var hooks []string
	read := map[string]bool{}
	for _, file := range append(userConfigs(), filepath.Join(common, "config"), filepath.Join(git, "config.worktree")) {
		r.config(file, read, func(key, value string) {
			switch {
			case key == "core.hookspath" && len(hooks) < mostHooks:
				hooks = append(hooks, value)
			case key == "core.worktree" && worktree == "":
				worktree = from(git, value)
			}
		})
	}
	if worktree == "" {
		worktree = git
	}
	for _, dir := range hooks {
		r.add(from(worktree, dir))
	}
	for _, e := range r.list(filepath.Join(common, "worktrees")) {
		r.repository(filepath.Join(common, "worktrees", e.Name()), "")
	}
	r.modules(filepath.Join(common, "modules"))
}

// modules looks for the repositories of submodules, whose names may have slashes.
func (r *repositories) modules(dir string) {
	for _, e := range r.list(dir) {
		if !e.IsDir() {
			continue
		}
		git := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(filepath.Join(git, "HEAD")); err == nil { //nolint:gosec // it is looked at only
			r.repository(git, "")
		} else {
			r.modules(git)
		}
	}
}

// below looks for repositories in the directory, those that are not so deep first. What is installed has none that anybody works with.
func (r *repositories) below() {
	for queue := []string{r.root}; len(queue) > 0; queue = queue[1:] {
		for _, e := range r.list(queue[0]) {
			switch {
			case e.Name() == ".git":
				r.worktree(queue[0])
			case e.IsDir() && e.Name() != "node_modules":
				queue = append(queue, filepath.Join(queue[0], e.Name()))
			}
		}
	}
}

// list gives the entries of a directory, as far as names may still be looked at.
func (r *repositories) list(dir string) []os.DirEntry {
	left := mostNames - r.names
	if left <= 0 {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // names only
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	entries, _ := d.ReadDir(left)
	r.names += len(entries)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// config takes a file of git's configuration, and those that it includes, whatever the condition. read are those of this repository so far; each gets every value.
func (r *repositories) config(file string, read map[string]bool, each func(key, value string)) {
	if read[file] || len(read) >= mostFiles || r.bytes >= mostBytes {
		return
	}
	read[file] = true
	r.add(file)
	text, _ := readGit(file)
	r.bytes += len(text)
	gitConfig(text, func(key, value string) {
		if key == "include.path" || strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path") {
			r.config(from(filepath.Dir(file), value), read, each)
		}
		each(key, value)
	})
}

// userConfigs are the system's and the user's own configuration of git.
func userConfigs() []string {
	home, _ := os.UserHomeDir()
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	files := []string{"/etc/gitconfig", filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
	if other := os.Getenv("GIT_CONFIG_GLOBAL"); other != "" {
		files = append(files, other)
	}
	return files
}

// from is a path of git's configuration, as seen from a directory.
func from(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, _ := os.UserHomeDir()
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readGit reads a file that a repository names: it may be a pipe, without an end, or a device that does something when it is opened.
func readGit(path string) (string, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { //nolint:gosec // it is looked at only
		return "", false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // paths of git's are looked at, nothing is done with them
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, mostConfig))
	return string(b), err == nil
}

// gitConfig reads text in the form of git's configuration: keys as section.key, or section.subsection.key, in lower case but for the subsection. Lines that git would refuse are passed over.
func gitConfig(text string, each func(key, value string)) {
	s := strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	section := ""
	for s = strings.TrimLeft(s, " \t\n"); s != ""; s = strings.TrimLeft(s, " \t\n") {
		switch n := len(s) - len(strings.TrimLeftFunc(s, ofKey)); {
		case s[0] == '[':
			section, s = gitSection(s[1:])
		case n > 0:
			key := section + "." + strings.ToLower(s[:n])
			s = strings.TrimLeft(s[n:], " \t")
			if rest, ok := strings.CutPrefix(s, "="); ok {
				var value string
				value, s = gitValue(rest)
				each(key, value)
			}
		default:
			_, s, _ = strings.Cut(s, "\n")
		}
	}
}

func ofKey(c rune) bool {
	return c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// gitSection reads what is behind [, and gives what is behind ].
func gitSection(s string) (name, rest string) {
	var b strings.Builder
	for i, quoted := 0, false; i < len(s) && s[i] != '\n'; i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case quoted:
			b.WriteByte(c)
		case c == ']':
			return b.String(), s[i+1:]
		case c == ' ' || c == '\t':
			b.WriteByte('.')
		default:
			b.WriteString(strings.ToLower(string(rune(c))))
		}
	}
	_, rest, _ = strings.Cut(s, "\n")
	return b.String(), rest
}

// gitValue reads what is behind =, and gives what is behind its last line.
func gitValue(s string) (value, rest string) {
	var b strings.Builder
	kept := 0 // without the spaces at the end
	s = strings.TrimLeft(s, " \t")
	for i, quoted := 0, false; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			return b.String()[:kept], s[i+1:]
		case c == '"':
			quoted = !quoted
			kept = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(s[i:], "\n")
			return b.String()[:kept], rest
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == '\n' {
				continue
			}
			b.WriteString(map[byte]string{'n': "\n", 't': "\t", 'b': "\b"}[s[i]])
			if s[i] == '\\' || s[i] == '"' {
				b.WriteByte(s[i])
			}
		case !quoted && (c == ' ' || c == '\t'):
			b.WriteByte(c)
			continue
		default:
			b.WriteByte(c)
		}
		kept = b.Len()
	}
	return b.String()[:kept], ""
}
