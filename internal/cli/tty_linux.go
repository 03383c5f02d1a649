package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops what was typed at a terminal and not read yet.
func forget(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
