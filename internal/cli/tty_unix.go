//go:build linux || darwin

package cli

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// hungUp reports whether one of the files is a pipe, a socket or a terminal that nobody reads from any more.
func hungUp(files ...*os.File) bool {
	var fds []unix.PollFd
	for _, f := range files {
		fds = append(fds, unix.PollFd{Fd: int32(f.Fd()), Events: unix.POLLOUT}) //nolint:gosec // a descriptor is small
	}
	for {
		_, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || slices.ContainsFunc(fds, func(p unix.PollFd) bool { return p.Revents&(unix.POLLERR|unix.POLLHUP) != 0 })
	}
}

// columns is how wide a terminal is, 0 when it does not say; ok is false for what is none.
func columns(f *os.File) (n int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
