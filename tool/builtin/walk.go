package builtin

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-dev/pawl/errdefs"
)

// walk goes through the files of a directory tree.
type walk struct {
	w          *Workspace
	in         place
	depth      int                               // how many levels of directories; 0 means all
	may        func(p place) bool                // what the policy lets be read; the rest is left out
	visit      func(p place, below string) error // regular files and symbolic links; below is relative to in, with slashes
	unreadable []string                          // directories that could not be read
}

// run visits in the order of names. It never enters .git, the output directory and symbolic links, nor, when the workspace heeds
// .gitignore files, what they name.
func (k *walk) run(ctx context.Context) error {
	var g *ignores
	at := filepath.ToSlash(k.in.rel)
	if k.heeds() {
		g = ignoresFor(k.in.root, at)
	}
	return k.dir(ctx, at, ".", g, 1)
}

func (k *walk) heeds() bool { return k.w.gitignore && k.in.root != k.w.out }

func (k *walk) dir(ctx context.Context, dir, below string, g *ignores, level int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := k.list(dir)
	if err != nil {
		p := k.w.place(k.in.root, filepath.FromSlash(dir))
		if below == "." {
			return k.w.reason(p, err)
		}
		k.unreadable = append(k.unreadable, p.shown)
		return nil
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, e.Name())
		if e.Name() == ".git" || g.ignored(name, e.IsDir()) {
			continue
		}
		p := k.w.place(k.in.root, filepath.FromSlash(name))
		switch {
		case !e.IsDir() && !k.may(p): // something in a hidden directory may be shown
		case e.IsDir():
			if k.depth > 0 && level >= k.depth || k.isOutput(p) {
				continue
			}
			deeper := g
			if k.heeds() {
				deeper = g.in(k.in.root, name)
			}
			err = k.dir(ctx, name, path.Join(below, e.Name()), deeper, level+1)
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			err = k.visit(p, path.Join(below, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *walk) isOutput(p place) bool {
	return p.root != k.w.out && k.w.realPath(p) == k.w.outReal
}

func (k *walk) list(dir string) ([]fs.DirEntry, error) {
	f, err := k.in.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// validGlob checks a pattern that a model wrote.
func validGlob(pattern string) error {
	if pattern == "" || strings.ContainsRune(pattern, 0) || !doublestar.ValidatePattern(pattern) {
		return errdefs.Validation.Errorf("%s is not a valid glob pattern: use *, ?, **, [a-z] and {a,b}, and escape other special characters with a backslash", show(pattern))
	}
	return nil
}
