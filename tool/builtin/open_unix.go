//go:build unix

package builtin

import "syscall"

// dontWait keeps an open from waiting for the other end of a named pipe.
const dontWait = syscall.O_NONBLOCK
