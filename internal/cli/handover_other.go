//go:build !unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

// become runs another program in this one's place, as far as the system can: with its streams, until its end, and with its exit code. An interrupt at the console reaches both; only the other one heeds it.
func become(path string, args []string) error {
	signal.Reset()
	signal.Ignore(os.Interrupt)
	cmd := exec.Command(path, args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return err
	}
	os.Exit(cmd.ProcessState.ExitCode())
	return nil
}
