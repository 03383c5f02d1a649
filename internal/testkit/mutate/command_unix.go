//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
)

// limitedCommand returns a command that runs a program in a process group of its own, with
// limits for memory and files. Its end ends the group.
func limitedCommand(ctx context.Context, program string, args []string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -v %d; ulimit -f %d; exec "$@"`, memoryLimit, fileLimit)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, "sh", program}, args...)...) //nolint:gosec // our own binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// endGroup ends the processes that a command left behind.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // in most cases none is left
	}
}
