//go:build unix

package load

import (
	"syscall"
	"time"
)

// cpu is the processor time that this process took, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
