package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The program that is made with Temporal, and where its source is.
const (
	workerProgram = "pawl-worker"
	workerPackage = "github.com/pawl-dev/pawl/temporal/cmd/" + workerProgram
)

// handOver has pawl-worker take the process over with the same arguments, when --engine needs what this program is made without. It comes back only when there is nothing to hand over, or with an error.
func (c *common) handOver() error {
	if c.at == nil {
		return nil
	}
	return c.program.handOver("--engine " + c.at.flag(c.engine))
}

// handOver is common.handOver for what says why.
func (p Program) handOver(why string) error {
	if p.Temporal != nil {
		return nil
	}
	path := workerPath()
	if path == "" {
		version := "latest"
		if strings.HasPrefix(p.Version, "v") {
			version = p.Version
		}
		return usage("%s: the program %s does this, and it is neither beside this one nor on PATH. Install it: go install %s@%s", why, workerProgram, workerPackage, version)
	}
	if err := become(path, append([]string{path}, p.args...)); err != nil {
		return usage("%s: %s can't be started: %w", why, path, reason(err))
	}
	return nil
}

// workerPath is where pawl-worker is: beside this program, so that those of one release belong together, or on PATH. "" when it is not there.
func workerPath() string {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), workerProgram)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(workerProgram)
	if err != nil { // one in the current directory, too: it may be anybody's
		return ""
	}
	return path
}
