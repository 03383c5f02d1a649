package devserver

import "syscall"

// withUs has the server end with the process that started it.
func withUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
