//go:build unix

package fence

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to the user that we run as, who can change its mode.
func ours(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid()
}
