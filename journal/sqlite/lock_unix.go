//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

const haveLocks = true

// lock takes a lock on f that ends with its process, or fails at once.
func lock(f *os.File) error {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
