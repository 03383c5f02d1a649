package temporal

import (
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
)

// mostPayload is what may cross as one value: Temporal refuses a payload of more than 2 MB, and a workflow's history is to have many of them.
const mostPayload = 512 << 10

// mostSummary is how much is shown of what an activity is for: the service has a limit of 400 bytes.
const mostSummary = 200

// mostError is how much of an error's text crosses.
const mostError = 16 << 10

// fits reports whether a path can cross.
func (p path) fits() error { return crosses("the run's instructions and attributes", p) }

// crosses reports whether a value can cross.
func crosses(what string, v any) error {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return errdefs.Validation.Errorf("temporal: %s can't be encoded: %w", what, err)
	case len(b) > mostPayload:
		return errdefs.Validation.Errorf("temporal: %s take %d KB, of which %d may cross: give files by an ID or URL, and what is long to the agent that the workers have", what, len(b)>>10, mostPayload>>10)
	}
	return nil
}

// clip shortens a text that stands in a history, and makes it one that can: a message to the service with bytes that are no UTF-8 is never sent, and what it was about tried again for ever.
func clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
