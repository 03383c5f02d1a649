//go:build unix

package crashtest

import (
	"os"
	"syscall"
)

// canDie: this system has SIGKILL.
const canDie = true

// recordPipe is the pipe that the parent gave this process. Its own children don't get it: the parent reads until nobody has it.
func recordPipe() *os.File {
	syscall.CloseOnExec(recordFD)
	return os.NewFile(recordFD, "record")
}

// die ends the process as kill -9 does: nothing is closed, flushed or deferred.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal may take a moment
}

// killed reports whether a process ended so.
func killed(s *os.ProcessState) bool {
	ws, ok := s.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}
