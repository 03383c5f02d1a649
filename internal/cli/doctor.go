package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

func doctorCommand(s streams) *cobra.Command {
	var asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What is set up, and what is missing",
		Long: `Prints a line for each thing that runs need: the providers' keys (their names, never their values), the
sandbox with what it can hold here and why not, the journal, and the MCP servers of the directory, which are started to see
whether they do, unless they wait for approval. Then the settings of the directory: each value with its layer and place, whether
it counts, and what was read and has no effect. Values that may be secrets are left out. Nothing is changed.

The exit code is 2 when the settings can't be understood, 1 when an MCP server that counts does not work, else 0: what is missing, waits for approval or has
no effect need not keep anything from working.`,
		Example: "  pawl doctor\n  pawl doctor --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, broken := settingsFindings(cmd.Context(), dir)
			var exit *exitError
			if errors.As(broken, &exit) || cmd.Context().Err() != nil { // there is no such directory, or a cancel
				return broken
			}
			servers, failed := mcpFindings(cmd.Context(), s, dir)
			if err := printFindings(s.out, asJSON, append(diagnose(fence.Probe()), servers...), settings); err != nil {
				return err
			}
			switch {
			case cmd.Context().Err() != nil:
				return cmd.Context().Err()
			case broken != nil:
				return &exitError{code: exitUsage}
			case failed:
				return &exitError{code: exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line: name, ok, text; of settings also layer, place, state and value")
	cmd.Flags().StringVar(&dir, "dir", "", "the project's `directory`; default: the nearest directory upward with .agents, .git or go.mod, else the current one")
	return cmd
}

func printFindings(w io.Writer, asJSON bool, all []finding, settings []settingFinding) error {
	if asJSON {
		enc := json.NewEncoder(w)
		for _, d := range all {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		for _, d := range settings {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		return nil
	}
	for _, d := range all {
		mark := "ok     "
		if !d.OK {
			mark = "missing"
		}
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", mark, d.Name, printable(d.Text)); err != nil {
			return err
		}
	}
	for _, d := range settings {
		if _, err := fmt.Fprintf(w, "%-7s  %s: %s\n", d.mark(), escapedLine(d.Name), escapedLine(d.Text)); err != nil {
			return err
		}
	}
	return nil
}

// finding is a line of the doctor's.
type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

func diagnose(can fence.Capabilities) (all []finding) {
	for _, p := range pawl.Providers() {
		var set []string
		for _, key := range p.Keys {
			if os.Getenv(key) != "" {
				set = append(set, key)
			}
		}
		switch {
		case len(p.Keys) == 0:
		case len(set) > 0:
			all = append(all, finding{"key for " + p.Name, true, strings.Join(set, ", ") + " is set"})
		case p.Cloud:
			all = append(all, finding{"key for " + p.Name, false, "set " + strings.Join(p.Keys, " or ") + ", where there are no other credentials of that cloud"})
		default:
			all = append(all, finding{"key for " + p.Name, false, "set " + strings.Join(p.Keys, " or ")})
		}
	}
	if err := process.Possible(); err != nil {
		all = append(all, finding{"commands", false, err.Error()})
	}
	all = append(all, finding{"sandbox", can.Writes.Holds, backend(can)})
	for _, part := range []struct {
		name, holds string
		fence.Status
	}{
		{"sandbox, writes", "commands write the project and their own temporary directory only", can.Writes},
		{"sandbox, modes and owners", "as with writes", can.Metadata},
		{"sandbox, inside the project", "settings and git's hooks can be kept read-only", can.Inside},
		{"sandbox, network", "can be switched off", can.Network},
		{"sandbox, local servers", "a command reaches the servers that it started, without a network", can.Loopback},
		{"sandbox, hosts", "the network can be limited to some hosts", can.Hosts},
		{"sandbox, signals", "processes outside can't be signalled", can.Signals},
		{"sandbox, limits", "time, files and their size are limited", can.Limits},
	} {
		text := part.holds
		if !part.Holds {
			text = part.Why
		}
		all = append(all, finding{part.name, part.Holds, text})
	}
	if path := pawl.DefaultJournal(); path == "" {
		all = append(all, finding{"journal", false, "neither XDG_STATE_HOME nor HOME is set"})
	} else {
		all = append(all, finding{"journal", true, "sqlite:" + path})
	}
	return all
}

func backend(can fence.Capabilities) string {
	switch {
	case !can.Writes.Holds:
		return "none: commands that do more than read, and edits, are asked about"
	case can.ABI > 0:
		return fmt.Sprintf("%s, Landlock level %d", can.Backend, can.ABI)
	}
	return can.Backend
}
