package loop

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/errdefs"
)

// answers fails when the caller takes nothing that this loop can answer in: text, and JSON when its replies have a schema.
func (l *Engine) answers(run *engine.Run) error {
	modes := []string{"text/plain"}
	if len(l.cfg.Output) > 0 {
		modes = append(modes, "application/json")
	}
	if slices.ContainsFunc(modes, run.Accepts) {
		return nil
	}
	return errdefs.NotAvailable.Errorf("loop: the caller takes %s, and this loop answers in %s: accept that, or give it an output schema to have JSON",
		strings.Join(run.OutputModes, ", "), strings.Join(modes, " or "))
}
