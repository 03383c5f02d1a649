package mcp

import (
	"strings"

	"mvdan.cc/sh/v3/shell"

	"github.com/pawl-dev/pawl/errdefs"
)

// ParseServer reads a server as it stands behind the flag --mcp: NAME=URL, or NAME=COMMAND with arguments, quoted as for a shell.
func ParseServer(text string) (Server, error) {
	name, rest, ok := strings.Cut(text, "=")
	s := Server{Name: name}
	switch rest = strings.TrimSpace(rest); {
	case !ok || rest == "":
		return s, errdefs.Validation.Errorf("mcp: %q: want NAME=COMMAND or NAME=URL", text)
	case strings.HasPrefix(rest, "http://"), strings.HasPrefix(rest, "https://"):
		s.URL = rest
	default:
		words, err := shell.Fields(rest, nil)
		if err != nil || len(words) == 0 {
			return s, errdefs.Validation.Errorf("mcp: %q: the command can't be read: %w", text, err)
		}
		s.Command, s.Args = words[0], words[1:]
	}
	return s, s.Check()
}
