package builtin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/near"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

// area is a directory that the file tools reach into. A Root holds them in it, whatever links there are.
type area struct {
	dir, real string // as given (absolute), and without symbolic links
	root      *os.Root
}

// area is the one of a root.
func (w *Workspace) area(root *os.Root) area {
	for _, a := range w.further {
		if a.root == root {
			return a
		}
	}
	switch root {
	case w.out:
		return area{w.outDir, w.outReal, w.out}
	case w.world.root:
		return w.world
	}
	return area{w.dir, w.real, w.root}
}

// areaAt is the area that an absolute path lies in, of several the innermost, and the path relative to it.
func (w *Workspace) areaAt(abs string) (in area, rel string, ok bool) {
	longest := -1
	for _, a := range append([]area{w.area(w.out), w.area(w.root)}, w.further...) {
		for _, dir := range []string{a.dir, a.real} {
			if r, inside := within(abs, dir); inside && len(dir) > longest {
				in, rel, ok, longest = a, r, true, len(dir)
			}
		}
	}
	return in, rel, ok
}

// called is what an area is called where something leads out of it.
func (w *Workspace) called(root *os.Root) string {
	if root == w.root {
		return "the project directory"
	}
	return show(w.area(root).dir)
}

// place is a file or directory in one of the areas.
type place struct {
	root  *os.Root
	rel   string // inside root; without symbolic links when it was looked at. The Root stands for what happens later
	shown string // what the model is told: relative to the project, with slashes; absolute elsewhere
	said  string // what the model named, absolute, with the links in it
}

// locate finds the place that a model means by a relative or absolute path. The file need not exist.
func (w *Workspace) locate(name string) (place, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return place{}, errdefs.Validation.Errorf("%s is no path: it must have at least one character, and no NUL", show(name))
	}
	abs := filepath.FromSlash(name)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.dir, abs)
	}
	abs = filepath.Clean(abs)
	for _, abs := range []string{abs, fence.Resolved(abs)} { // one directory may have several names, through links above it
		if a, rel, ok := w.areaAt(abs); ok {
			p, err := w.follow(a.root, rel, name)
			p.said = filepath.Join(a.real, rel)
			return p, err
		}
	}
	if rel, ok := within(abs, w.world.dir); ok && w.world.root != nil {
		p, err := w.follow(w.world.root, rel, name)
		if err == nil && procFile(w.realPath(p)) {
			err = errdefs.PolicyDenied.Errorf("%s is about this program, not about a command: use bash for what is in /proc", show(name))
		}
		return p, err
	}
	return place{}, w.refuse(show(name) + " is outside of the project directory")
}

// procFile reports whether a path is one of Linux' files about processes: this program's tell its own environment.
func procFile(path string) bool {
	_, in := within(path, "/proc")
	return in && runtime.GOOS == "linux"
}

// locateToWrite is locate without the output directory, and without what lies outside: they are read-only.
func (w *Workspace) locateToWrite(name string) (place, error) {
	p, err := w.locate(name)
	if err != nil {
		return p, err
	}
	if p.root == w.world.root {
		return place{}, w.refuse(show(name) + " is outside of the project directory, where files can only be read")
	}
	if _, kept := within(w.realPath(p), w.outReal); kept {
		return place{}, w.refuse(show(name) + " is in the directory of long outputs, which can only be read")
	}
	return p, nil
}

func (w *Workspace) refuse(why string) error {
	further := ""
	for _, a := range w.further {
		further += ", or an absolute one inside " + a.dir
	}
	return errdefs.PolicyDenied.Errorf("%s: give a path inside %s, relative to it or absolute%s", why, w.dir, further)
}

// within gives abs relative to the first of dirs that it lies in or is.
func within(abs string, dirs ...string) (string, bool) {
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, abs); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// follow resolves the symbolic links in rel as far as it exists, so that errors can say which link leads out, links with an absolute
// target inside the root work, and a file is replaced behind its link. It is no check: a Root that works with the result holds its
// own.
func (w *Workspace) follow(root *os.Root, rel, name string) (place, error) {
	const most = 40
	todo, at := strings.Split(filepath.Clean(rel), string(filepath.Separator)), "."
	for links := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return place{}, w.refuse(show(name) + " leads through a symbolic link out of " + w.called(root))
			}
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, next)
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			rest := filepath.Join(append([]string{at}, todo...)...)
			if !filepath.IsLocal(rest) {
				return place{}, w.refuse(show(name) + " leads through a symbolic link out of " + w.called(root))
			}
			return w.place(root, rest), nil
		}
		if err != nil {
			return place{}, w.reason(w.place(root, at), err)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := root.Readlink(at)
		if err != nil {
			return place{}, w.reason(w.place(root, at), err)
		}
		if links++; links > most {
			return place{}, errdefs.Validation.Errorf("%s: more than %d symbolic links on the way", show(name), most)
		}
		link := at
		at = filepath.Dir(at)
		if filepath.IsAbs(target) {
			inside, ok := within(filepath.Clean(target), w.namesOf(root)...)
			if !ok {
				return place{}, w.refuse(show(name) + ": " + w.place(root, link).shown + " is a symbolic link to " + show(target) + ", which is outside of " + w.called(root))
			}
			target, at = inside, "."
		}
		todo = append(strings.Split(filepath.FromSlash(target), string(filepath.Separator)), todo...)
	}
	return w.place(root, at), nil
}

func (w *Workspace) namesOf(root *os.Root) []string {
	a := w.area(root)
	return []string{a.dir, a.real}
}

func (w *Workspace) place(root *os.Root, rel string) place {
	if root == w.root {
		return place{root: root, rel: rel, shown: show(filepath.ToSlash(rel))}
	}
	return place{root: root, rel: rel, shown: show(filepath.Join(w.area(root).dir, rel))}
}

// enter opens a directory of a root by way of no symbolic link: a place was judged without, and commands in the background may exchange names meanwhile. With create it makes what is missing.
func enter(root *os.Root, dir string, create bool) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	for name := range strings.SplitSeq(filepath.Clean(dir), string(filepath.Separator)) {
		if err != nil {
			return nil, err
		}
		if name == "." {
			continue
		}
		var next *os.Root
		next, err = step(at, name, create)
		_ = at.Close()
		at = next
	}
	return at, err
}

func step(in *os.Root, name string, create bool) (*os.Root, error) {
	info, err := in.Lstat(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = in.Mkdir(name, 0o755); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = in.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, exchanged(name)
	}
	dir, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = exchanged(name)
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

func exchanged(name string) error {
	return errdefs.Conflict.Errorf("%s was exchanged while it was looked at: try again", show(name))
}

// openPlace opens the file of a place, as enter does.
func openPlace(p place) (*os.File, fs.FileInfo, error) {
	dir, base := filepath.Split(p.rel)
	in, err := enter(p.root, dir, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }()
	was, err := in.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	if was.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, exchanged(base)
	}
	f, err := in.OpenFile(base, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(was, info) {
		err = exchanged(base)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// openFile opens a regular file for reading. It never waits, not even for a named pipe.
func (w *Workspace) openFile(p place) (*os.File, fs.FileInfo, error) {
	f, info, err := openPlace(p)
	if err != nil {
		return nil, nil, w.reason(p, err)
	}
	if !info.Mode().IsRegular() {
		err = notRegular(p, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, w.reason(p, err)
	}
	return f, info, nil
}

func notRegular(p place, info fs.FileInfo) error {
	if info.IsDir() {
		return errdefs.Validation.Errorf("%s is a directory: list the files in it with glob", p.shown)
	}
	return errdefs.Validation.Errorf("%s is not a regular file but a device, a pipe or a socket", p.shown)
}

// reason makes the error of a file operation one that helps a model.
func (w *Workspace) reason(p place, err error) error {
	if errdefs.Of(err) != nil {
		return err
	}
	var pe *fs.PathError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.missing(p)
	case errors.Is(err, fs.ErrPermission):
		return errdefs.PolicyDenied.Errorf("%s: permission denied by the file system", p.shown)
	case errors.Is(err, syscall.ENOTDIR):
		return errdefs.NotFound.Errorf("%s: a part of the path is a file, not a directory", p.shown)
	case cause.Error() == "path escapes from parent":
		return w.refuse(p.shown + " leads out of " + w.called(p.root))
	}
	return errdefs.NotAvailable.Errorf("%s: %w", p.shown, cause)
}

// missing is the error for a file that isn't there; it names the nearest names that are.
func (w *Workspace) missing(p place) error {
	dir := p.rel
	for dir != "." { // the deepest directory that exists
		want := filepath.Base(dir)
		dir = filepath.Dir(dir)
		f, err := p.root.Open(dir)
		if err != nil {
			continue
		}
		names, _ := f.Readdirnames(10_000)
		_ = f.Close()
		if meant := near.Names(want, names); len(meant) > 0 {
			for i := range meant {
				meant[i] = w.place(p.root, filepath.Join(dir, meant[i])).shown
			}
			return errdefs.NotFound.Errorf("%s does not exist; did you mean %s?", p.shown, strings.Join(meant, " or "))
		}
		if dir != filepath.Dir(p.rel) {
			return errdefs.NotFound.Errorf("%s does not exist, nor does the directory %s", p.shown, w.place(p.root, filepath.Join(dir, want)).shown)
		}
		break
	}
	return errdefs.NotFound.Errorf("%s does not exist; find files with glob", p.shown)
}
