//go:build !unix

package pgtest

import (
	"os"
	"os/exec"
)

var immediate = os.Kill

func own(string) error { return nil }

func detach(*exec.Cmd) {}

func killAll(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
