package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawl-dev/pawl/journal/sqlite"
)

// FullDisk keeps SQLite's journal on a small disk of its own for each case, a tmpfs, and fills it to the last byte. Mounting takes a right that
// not every machine gives: see [CanMount].
func FullDisk() Fault {
	disk := func(dir string) string { return filepath.Join(dir, "disk") }
	journal := func(dir string) string { return sqlitePath(disk(dir)) }
	ballast := func(dir string) string { return filepath.Join(disk(dir), "ballast") }
	return Fault{
		Name: "a full disk",
		Before: func(dir string) error {
			return errors.Join(os.Mkdir(disk(dir), 0o700), Mount(disk(dir), 4))
		},
		After: func(dir string) error { return Unmount(disk(dir)) },
		Open: func(_ context.Context, dir string) (Store, error) {
			return sqlite.Open(journal(dir)) //nolint:contextcheck // it takes none: a file opens at once
		},
		Begin: func(dir string) error { return Fill(ballast(dir)) },
		Mend:  func(dir string) error { return os.Remove(ballast(dir)) },
		Names: func(dir string) []string { return []string{"journal/sqlite: ", journal(dir)} },
	}
}

// Mount puts a disk of so many MiB at dir, an empty directory. It is in memory.
func Mount(dir string, size int) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", size))
}

// Unmount takes it away, with all that is on it. A process that is being forked may still hold its files.
func Unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }

// CanMount tells why a disk can't be mounted under dir, an empty directory; nil if it can.
func CanMount(dir string) error {
	if err := Mount(dir, 4); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}

// Fill writes a file until there is no room on its disk for one more byte.
func Fill(path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}
