//go:build !unix

package main

import (
	"context"
	"os/exec"
)

// limitedCommand returns a command that runs a program. There are no limits here.
func limitedCommand(ctx context.Context, program string, args []string) *exec.Cmd {
	return exec.CommandContext(ctx, program, args...) //nolint:gosec // our own binary
}

// endGroup does nothing: there are no process groups here.
func endGroup(*exec.Cmd) {}
