//go:build linux || darwin

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns is how wide a terminal is, 0 when it does not say; ok is false for what is none.
func columns(f *os.File) (n int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
