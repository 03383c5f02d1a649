//go:build linux || darwin

package fence

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockName is the file in a fence's temporary directory that its process has locked. It gets this name when it is locked already, so whoever finds it unlocked knows that the process is gone. Commands can't
// write where it is.
const lockName = "lock"

// hold locks a fresh temporary directory for as long as this process lives, or until the file is closed.
func hold(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName+".new"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // in our own directory
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes the temporary directories of processes of this user that were killed. What can't be removed stays for the next one: nothing depends on it.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, dir := range dirs {
		if f := abandoned(dir); f != nil {
			_ = removeAll(dir)
			_ = f.Close()
		}
	}
}

// abandoned gives the lock of a directory whose process is gone; nil when it lives, or when it can't be told.
func abandoned(dir string) *os.File {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) //nolint:gosec // of our own directory
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return f
}
