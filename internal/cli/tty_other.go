//go:build !linux && !darwin

package cli

import "os"

// hungUp reports whether nobody reads from one of the files any more; it can't be told, so it may be.
func hungUp(...*os.File) bool { return true }

// columns is how wide a terminal is, 0 when it does not say; ok is false for what is none.
func columns(f *os.File) (n int, ok bool) {
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}

// forget drops what was typed at a terminal and not read yet, where that can be done.
func forget(*os.File) {}
