//go:build linux

package crashtest

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
)

// tear is how far into an append SQLite's log may grow: into a page of it, and less than the one that every append has at least.
const tear = 2000

// FullFile makes SQLite's log hit the limit of a file's size (RLIMIT_FSIZE) in the middle of what is appended next, and at every try from then on.
func FullFile() Fault {
	return Fault{
		Name: "a file that may not grow", Names: sqliteNames,
		Begin: func(dir string) error {
			size := int64(0)
			switch info, err := os.Stat(sqlitePath(dir) + "-wal"); {
			case err == nil:
				size = info.Size()
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			signal.Ignore(syscall.SIGXFSZ) // else it ends the process
			var limit syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				return err
			}
			limit.Cur = uint64(size) + tear
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
		},
	}
}

func sqliteNames(dir string) []string { return []string{"journal/sqlite: ", sqlitePath(dir)} }
