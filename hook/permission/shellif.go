package permission

import (
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/internal/permit"
)

// ShellIf reads the rules of shell hooks as [New] reads those of a project: for shell.Options.If. A hook runs for what a deny rule would be about, by whatever tool it is
// reached, and where that can't be told.
func ShellIf(dir string) (func(rule string) (func(tool, input string) bool, error), error) {
	w, err := newWorld(dir)
	if err != nil {
		return nil, fmt.Errorf("permission: rules of shell hooks: %w", err)
	}
	return func(text string) (func(tool, input string) bool, error) {
		rule, err := w.Parse(text, "a shell hook's if")
		if err != nil {
			return nil, errdefs.Validation.Errorf("permission: rules of shell hooks: %w", err)
		}
		return func(tool, input string) bool { return rule.Binds(w.Read(tool, input, false)) != permit.No }, nil
	}, nil
}
