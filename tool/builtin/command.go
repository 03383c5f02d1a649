package builtin

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pawl-dev/pawl/errdefs"
)

// longCommand is what one argument may have on every system; a longer command is run from a file.
const longCommand = 100_000

// shell is the command that runs text, and what removes what it needed.
func (w *Workspace) shell(text, id string) (cmd *exec.Cmd, cleanUp func(), err error) {
	name, err := exec.LookPath("bash")
	if err != nil {
		if name, err = exec.LookPath("sh"); err != nil {
			return nil, nil, errdefs.NotAvailable.Errorf("prepare the command: %w", err)
		}
	}
	args, cleanUp := []string{"-c", text}, func() {}
	if len(text) > longCommand {
		script := filepath.Join(w.outDir, "command-"+id+".sh")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return nil, nil, errdefs.NotAvailable.Errorf("prepare the command: %w", err)
		}
		args, cleanUp = []string{script}, func() { _ = os.Remove(script) }
	}
	cmd = exec.Command(name, args...) //nolint:gosec // running commands is what it is for
	cmd.Env = w.env
	return cmd, cleanUp, nil
}
