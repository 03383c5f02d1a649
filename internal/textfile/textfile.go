// Package textfile reads the files that people write for Pawl, as YAML or JSON, and looks how deep they nest before a parser does.
package textfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/pawl-dev/pawl/errdefs"
)

// Read gives a file, at most one byte more than most, by which the caller sees that it is too large. What is not there is errdefs.NotFound; what is no ordinary file (a pipe could keep its
// reader waiting for ever) or can't be read is Validation. holds is what the file should hold, for the error.
func Read(path, holds string, most int64) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: that alone does something to many a device
	var f *os.File
	if err == nil && info.Mode().IsRegular() {
		f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // which file is the caller's choice
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errdefs.NotFound.Errorf("%w", err)
	}
	if err != nil {
		return nil, errdefs.Validation.Errorf("%w", err)
	}
	if f != nil {
		defer func() { _ = f.Close() }()
		info, err = f.Stat() // it may have been replaced
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, errdefs.Validation.Errorf("%s is no ordinary file: name one that holds the %s", path, holds)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, errdefs.Validation.Errorf("%w", err)
	}
	return data, nil
}

// Depth is no less than how deep YAML or JSON nests, but for what its indentation says: brackets, and dashes at the beginning of a line.
func Depth(data []byte) (deepest int) {
	open, dashes, begins := 0, 0, true
	for _, c := range data {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '-', '?':
			if begins {
				dashes++
			}
		case '\n', '\r':
			dashes = 0
		}
		begins = c == '\n' || c == '\r' || begins && (c == ' ' || c == '\t' || c == '-' || c == '?')
		deepest = max(deepest, open, dashes)
	}
	return deepest
}
