//go:build !linux

package devserver

import "syscall"

func withUs() *syscall.SysProcAttr { return nil }
