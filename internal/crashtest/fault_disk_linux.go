package crashtest

import (
	"context"
	"errors"
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
			return errors.Join(os.Mkdir(disk(dir), 0o700), mount(disk(dir)))
		},
		After: func(dir string) error { return syscall.Unmount(disk(dir), syscall.MNT_DETACH) }, // a process that is being forked may still hold its files
		Open: func(_ context.Context, dir string) (Store, error) {
			return sqlite.Open(journal(dir)) //nolint:contextcheck // it takes none: a file opens at once
		},
		Begin: func(dir string) error { return fill(ballast(dir)) },
		Mend:  func(dir string) error { return os.Remove(ballast(dir)) },
		Names: func(dir string) []string { return []string{"journal/sqlite: ", journal(dir)} },
	}
}

func mount(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700") }

// CanMount tells why a disk can't be mounted under dir, an empty directory; nil if it can.
func CanMount(dir string) error {
	if err := mount(dir); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}

// fill writes a file until there is no room for one more byte.
func fill(path string) (err error) {
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
