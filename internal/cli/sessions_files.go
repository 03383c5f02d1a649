package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// openInput opens a file to read, or for - standard input, whose reading ends with ctx: a person may have forgotten to type.
func openInput(ctx context.Context, s streams, path string) (r io.Reader, done func(), err error) {
	if path == "-" {
		r, w := io.Pipe()
		go func() { // not waited for: there is no way to stop a read of standard input
			_, err := io.Copy(w, s.in)
			w.CloseWithError(err)
		}()
		stop := context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
		return r, func() { stop(); _ = r.Close() }, nil
	}
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, nil, usage("%s: %v", path, reason(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, nil, usage("%s: it is a directory: want the file that pawl sessions export wrote", path)
	}
	return f, func() { _ = f.Close() }, nil
}

// replaceFile writes a file that is there whole or, when write fails, is as it was. A new one is for its owner alone. What is no regular file
// (a pipe, a device) is written to directly.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return usage("%s: it is a directory: name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the user names the file
		if err != nil {
			return usage("%s: %v", path, reason(err))
		}
		return errors.Join(write(f), f.Close())
	case err == nil:
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return usage("%s: %v", path, reason(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
