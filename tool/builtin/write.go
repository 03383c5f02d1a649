package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/tool"
)

// diffedMost is the size in bytes up to which write reads what it overwrites, to show the difference.
const diffedMost = 1 << 20

type writeInput struct {
	Path    string `json:"file_path"`
	Content string `json:"content"`
}

const writeSchema = `{"type":"object","additionalProperties":false,"required":["file_path","content"],"properties":{
"file_path":{"type":"string","description":"the file: relative to the project directory, or absolute inside it"},
"content":{"type":"string","description":"all that the file is to contain"}}}`

// Write is the tool that makes or overwrites a file: {file_path, content}.
//
// Directories are made as needed. The file changes at once or not at all: the content goes to a temporary file beside it, which is
// synced and renamed. An existing file keeps its permissions, a new one gets 0644 less the umask; a file without write permission
// for its owner is refused. A symbolic link inside the project stays one, and its target is written. Hard links are parted. The
// result tells the number of lines, and of an overwritten text file up to 1 MiB the difference, up to 200 lines.
//
// Idempotent and destructive.
func (w *Workspace) Write() tool.Tool { return w.tools[2] }

func (w *Workspace) newWrite() tool.Tool {
	return tool.Func("write", "Make a file, or overwrite it, with the content given. To change a part of a file, use edit."+w.directoriesNote(),
		guarded(w, "write", w.write), tool.Idempotent, tool.Destructive, tool.WithSchema(json.RawMessage(writeSchema)), fileAliases, w.checkWrite())
}

func (w *Workspace) write(ctx context.Context, in writeInput) (tool.Result, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	p, err := w.locateToWrite(in.Path)
	if err == nil {
		err = w.mayWrite(ctx, p) // before anything is said of what is there
	}
	if err != nil {
		return tool.Result{}, err
	}
	old, info, err := w.readWhole(p, diffedMost)
	switch {
	case errors.Is(err, errdefs.NotFound):
		if err := w.replace(ctx, p, in.Content, nil); err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Content: fmt.Sprintf("created %s (%s)", p.shown, plural(countLines(in.Content), "line"))}, nil
	case errors.Is(err, errTooLarge):
		old = nil
	case err != nil:
		return tool.Result{}, err
	case string(old) == in.Content:
		return tool.Result{Content: fmt.Sprintf("%s has this content already (%s)", p.shown, plural(countLines(in.Content), "line"))}, nil
	}
	if err := w.replace(ctx, p, in.Content, info); err != nil {
		return tool.Result{}, err
	}
	done := fmt.Sprintf("overwrote %s (%s)", p.shown, plural(countLines(in.Content), "line"))
	if old == nil || binary(old[:min(len(old), headSize)], len(old) <= headSize) {
		return tool.Result{Content: fmt.Sprintf("%s; it had %d bytes", done, info.Size())}, nil
	}
	return tool.Result{Content: done + "\n" + showDiff(p.shown, string(old), in.Content)}, nil
}

// replace gives a file new content, at once or not at all. old is the file that there is, or nil.
func (w *Workspace) replace(ctx context.Context, p place, content string, old fs.FileInfo) error {
	if old != nil && old.Mode()&0o200 == 0 {
		return errdefs.PolicyDenied.Errorf("%s is write-protected (mode %04o): if it really is to change, chmod u+w it first", p.shown, old.Mode().Perm())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, base := filepath.Split(p.rel)
	dir = filepath.Clean(dir)
	in, err := enter(p.root, dir, true) // from here on in this very directory, wherever it may be moved to
	if err != nil {
		return w.reason(w.place(p.root, dir), err)
	}
	defer func() { _ = in.Close() }()
	temp := ".pawl-" + randomID() + ".tmp"
	if err := writeTemp(in, temp, content, old); err != nil {
		return errors.Join(w.failed(p, err), removed(in, temp))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, removed(in, temp))
	}
	if err := in.Rename(temp, base); err != nil {
		return errors.Join(w.failed(p, err), removed(in, temp))
	}
	if d, err := in.Open("."); err == nil { // so that the new name lasts; not every file system can
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

func writeTemp(in *os.Root, name, content string, old fs.FileInfo) error {
	perm := fs.FileMode(0o644)
	if old != nil {
		perm = old.Mode().Perm()
	}
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode()) // past the umask
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func removed(in *os.Root, name string) error {
	if err := in.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// failed is reason for writing, where a file that is missing isn't the reason.
func (w *Workspace) failed(p place, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &le):
		err = le.Err
	case errors.As(err, &pe):
		err = pe.Err
	}
	if errors.Is(err, fs.ErrPermission) {
		return w.reason(p, err)
	}
	return errdefs.NotAvailable.Errorf("%s was not written: %w", p.shown, err)
}
