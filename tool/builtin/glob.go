package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// globMost is how many files glob lists.
const globMost = 500

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

const globSchema = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","description":"which files: ** is any number of directories (also none), * and ? are anything in one name, and there are [a-z] and {a,b}; **/*.go finds all Go files"},
"path":{"type":"string","description":"directory to search in; default the project directory"}}}`

// Glob is the tool that finds files by name: {pattern, path}.
//
// It lists files, not directories, that match the pattern below path, the most recently changed first, then by name; 500 at most,
// and says how many there are in all. Symbolic links to files inside the project are listed, those to directories are not entered.
// What .gitignore files name, at every level, .git and what the policy hides ([WithSandbox]) are left out; a directory that path, or the beginning of the pattern, names
// outright is searched though it is ignored.
//
// Read-only and idempotent.
func (w *Workspace) Glob() tool.Tool { return w.tools[4] }

func (w *Workspace) newGlob() tool.Tool {
	return tool.Func("glob", "Find files by a pattern for their names, the most recently changed first. Files that git ignores are left out."+w.directoriesNote()+w.outsideNote(),
		guarded(w, "glob", w.glob), tool.ReadOnly, tool.Idempotent, tool.WithSchema(json.RawMessage(globSchema)), w.checkRead())
}

type found struct {
	name string
	when time.Time
}

func (w *Workspace) glob(ctx context.Context, in globInput) (tool.Result, error) {
	start, pattern, err := w.globStart(in)
	if errors.Is(err, errNothing) {
		return tool.Result{Content: "no files match"}, nil
	} else if err != nil {
		return tool.Result{}, err
	}
	may, err := w.reading(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	var files []found
	total := 0
	k := walk{w: w, in: start, depth: globDepth(pattern), may: may}
	k.visit = func(p place, below string) error {
		if !doublestar.MatchUnvalidated(pattern, below) {
			return nil
		}
		info, err := w.statFile(p, may)
		if err != nil {
			return nil // gone, or a link that leads out or to a directory
		}
		total++
		if files = append(files, found{p.shown, info.ModTime()}); len(files) >= 20*globMost {
			files = newest(files)
		}
		return nil
	}
	if err := k.run(ctx); err != nil {
		return tool.Result{}, err
	}
	files = newest(files)
	lines := make([]string, 0, len(files)+2)
	for _, f := range files {
		lines = append(lines, f.name)
	}
	switch {
	case total == 0:
		lines = append(lines, "no files match")
	case total > len(files):
		lines = append(lines, fmt.Sprintf("[the newest %d of %d files; a narrower pattern or path shows others]", len(files), total))
	}
	lines = append(lines, skippedNote("unreadable", k.unreadable)...)
	return tool.Result{Content: strings.Join(lines, "\n")}, nil
}

var errNothing = errors.New("nothing to search")

// globStart takes the beginning of a pattern that has no special characters as a part of the path: only what lies there is looked at.
func (w *Workspace) globStart(in globInput) (place, string, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if err := validGlob(pattern); err != nil {
		return place{}, "", err
	}
	dir, pattern := doublestar.SplitPattern(pattern)
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return place{}, "", errdefs.PolicyDenied.Errorf("%s: a pattern cannot have .. after a special character", show(in.Pattern))
	}
	if in.Path != "" {
		p, err := w.locate(in.Path)
		if err == nil {
			err = w.isDir(p)
		}
		if err != nil {
			return place{}, "", err
		}
		if !path.IsAbs(dir) && !filepath.IsAbs(dir) {
			dir = path.Join(filepath.ToSlash(in.Path), dir)
		}
	}
	p, err := w.locate(dir)
	if err != nil {
		return place{}, "", err
	}
	if err := w.isDir(p); err != nil {
		return place{}, "", errNothing
	}
	return p, pattern, nil
}

func (w *Workspace) isDir(p place) error {
	info, err := p.root.Stat(p.rel)
	if err != nil {
		return w.reason(p, err)
	}
	if !info.IsDir() {
		return errdefs.Validation.Errorf("%s is not a directory", p.shown)
	}
	return nil
}

// statFile gives the file itself, also behind a symbolic link to what may be read.
func (w *Workspace) statFile(p place, may func(place) bool) (fs.FileInfo, error) {
	info, err := p.root.Lstat(p.rel)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := w.follow(p.root, p.rel, p.shown)
		if err != nil {
			return nil, err
		}
		info, err = target.root.Lstat(target.rel)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || !may(target) {
			return nil, errNothing
		}
		return info, nil
	}
	return info, err
}

// globDepth is how many levels of directories a pattern can match; 0 when there is no limit to be seen.
func globDepth(pattern string) int {
	if strings.Contains(pattern, "**") || strings.ContainsAny(pattern, `{\[`) {
		return 0
	}
	return 1 + strings.Count(pattern, "/")
}

func newest(files []found) []found {
	slices.SortFunc(files, func(a, b found) int {
		if c := b.when.Compare(a.when); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return files[:min(len(files), globMost)]
}

// skippedNote says in one line what was left out; no line when nothing was.
func skippedNote(why string, names []string) []string {
	const most = 5
	if len(names) == 0 {
		return nil
	}
	list := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		list += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return []string{fmt.Sprintf("[skipped, %s: %s]", why, list)}
}
