//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// awaitExit waits for a child to end, and reaps it: its group keeps its number as long as anybody is in it.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// kin are the processes of a command's group. Without /proc we don't know of others.
type kin struct{ group int }

func newKin(group int, _ string) *kin { return &kin{group} }

// live reports whether any of them lives.
func (k *kin) live() bool { return syscall.Kill(-k.group, 0) == nil }

// signal signals them.
func (k *kin) signal(sig syscall.Signal) { _ = syscall.Kill(-k.group, sig) }

// stopMarked would need /proc.
func stopMarked(string) {}

// tie does nothing: there is no way to have the command die with us.
func tie(*syscall.SysProcAttr) {}
