//go:build unix

package cli

import (
	"os"
	"syscall"
)

// become has this process go on as another program: whoever waits for it, signals it or reads from it notices nothing.
func become(path string, args []string) error {
	return syscall.Exec(path, args, os.Environ()) //nolint:gosec // the user has installed it
}
