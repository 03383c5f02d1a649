package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// tree is a directory that files are read from: the project's, through an os.Root, so that no link leads out of it, or the user's home, whose links are the user's own.
type tree struct {
	fs    fs.FS
	dir   string // absolute, resolved
	shown string // put before names in places
	trace *trace
}

func (t tree) place(name string) Place { return Place{File: t.shown + name} }

func (t tree) abs(name string) string { return filepath.Join(t.dir, filepath.FromSlash(name)) }

// fileError says why a file that is there can't be used.
type fileError struct{ reason, remedy string }

func (e *fileError) Error() string { return e.reason + ": " + e.remedy }

func (e *fileError) at(p Place) Problem { return Problem{p, e.reason, e.remedy} }

// absent reports whether an error says that nothing is there.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// read gives the content of a file of at most so many bytes, as UTF-8 without a byte order mark. What is not there is fs.ErrNotExist, anything else a *fileError.
func (t tree) read(name string, most int64) (_ []byte, err error) {
	defer func() { t.trace.note(t.shown+name, err) }()
	t.trace.file(t, name)
	info, err := fs.Stat(t.fs, name)
	switch {
	case absent(err):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, unreadable(err)
	case info.IsDir():
		return nil, &fileError{"it is a directory", "want a file of that name"}
	case !info.Mode().IsRegular(): // opening a pipe could wait for ever
		return nil, &fileError{"it is no ordinary file", "want a file of that name"}
	}
	f, err := t.fs.Open(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, unreadable(err)
	}
	t.trace.note("content", string(data))
	if int64(len(data)) > most {
		return nil, &fileError{fmt.Sprintf("it is larger than %s", size(most)), "make it smaller"}
	}
	data = []byte(strings.TrimPrefix(string(data), "\ufeff"))
	if at := invalid(data); at >= 0 {
		return nil, &fileError{fmt.Sprintf("line %d is no UTF-8 text", 1+strings.Count(string(data[:at]), "\n")), "save it as UTF-8"}
	}
	return data, nil
}

// invalid gives the offset of the first byte that is no text: no UTF-8, or NUL; -1 when there is none.
func invalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func unreadable(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &fileError{"it can't be read: " + err.Error(), "give yourself the right to read it"}
	case strings.Contains(err.Error(), "escapes"): // os.Root has no error value for it
		return &fileError{"a symbolic link leads out of the project", "put the file into the project"}
	}
	return &fileError{"it can't be read: " + err.Error(), "correct that"}
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// maxEntries is how much of a directory is looked at.
const maxEntries = 2000

// list gives the names in a directory, in order; links count as what they lead to.
func (t tree) list(name string) (entries []entryOf, err error) {
	defer func() {
		t.trace.note(t.shown+name, err)
		for _, e := range entries {
			t.trace.note(e.name, e.err, fmt.Sprint(e.dir))
		}
	}()
	t.trace.directory(t, name)
	list, err := fs.ReadDir(t.fs, name)
	switch {
	case absent(err):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, unreadable(err)
	case len(list) > maxEntries:
		return nil, &fileError{fmt.Sprintf("it has more than %d entries", maxEntries), "have fewer"}
	}
	for _, e := range list {
		out := entryOf{name: e.Name(), dir: e.IsDir()}
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := fs.Stat(t.fs, path.Join(name, e.Name()))
			if err != nil {
				out.err = unreadable(err)
			} else {
				out.dir = info.IsDir()
			}
		}
		entries = append(entries, out)
	}
	return entries, nil
}

// entryOf is an entry of a directory.
type entryOf struct {
	name string
	dir  bool
	err  error // of a link that leads nowhere
}

// trace remembers what was looked at: for who watches, where and for which names; and a digest of what was found.
type trace struct {
	sum   hash.Hash
	names map[string]map[string]bool // of a directory, absolute; "" is any name
}

func newTrace() *trace { return &trace{sum: sha256.New(), names: map[string]map[string]bool{}} }

func (t *trace) digest() string { return hex.EncodeToString(t.sum.Sum(nil)) }

func (t *trace) note(parts ...any) {
	for _, p := range parts {
		s := fmt.Sprint(p)
		fmt.Fprintf(t.sum, "%d:%s", len(s), s)
	}
}

func (t *trace) add(dir, name string) {
	if t.names[dir] == nil {
		t.names[dir] = map[string]bool{}
	}
	t.names[dir][name] = true
}

// file notes that a file of a tree matters, whether it is there or not, and so does each directory on the way to it.
func (t *trace) file(at tree, name string) {
	for p := name; p != "."; p = path.Dir(p) {
		abs := at.abs(p)
		if info, err := os.Lstat(abs); at.shown != "" && path.Dir(p) == "." && err == nil && info.IsDir() {
			break // the directory is watched itself: much happens in a home directory
		}
		t.add(filepath.Dir(abs), filepath.Base(abs))
	}
	t.target(at.abs(name))
}

// target notes where a link leads to.
func (t *trace) target(abs string) {
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		t.add(filepath.Dir(real), filepath.Base(real))
	}
}

// directory notes that every name in a directory matters.
func (t *trace) directory(at tree, name string) {
	if name != "." {
		t.file(at, name)
	}
	abs := at.abs(name)
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	t.add(abs, "")
}

// userTree is the home directory, for what lies in ~/.agents.
func userTree(home string, tr *trace) tree {
	return tree{fs: os.DirFS(home), dir: home, shown: "~/", trace: tr}
}

// watched notes a file outside of any tree, and every directory on the way that is not there yet.
func (t *trace) watched(abs string) {
	for p := abs; ; p = filepath.Dir(p) {
		t.add(filepath.Dir(p), filepath.Base(p))
		if _, err := os.Stat(filepath.Dir(p)); err == nil || filepath.Dir(p) == p {
			return
		}
	}
}
