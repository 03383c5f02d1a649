//go:build unix

package main

import (
	"os"
	"syscall"
)

// freeze stops a process where it is.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// thaw has it go on.
func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
