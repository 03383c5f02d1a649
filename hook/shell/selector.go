package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// Selector says which events of its type a hook is for. The zero Selector is for all.
type Selector struct {
	// Tool is compared with the tool's name; of SessionStart with the source, of SessionEnd with the reason, of SubagentStart and SubagentStop with the
	// agent's type; Stop has nothing to compare. "" and "*" are all. Made of letters, digits, blanks and - _ , | alone it is a name, or a list of names
	// with | or , between them; anything else is a regular expression that is found anywhere in the name. Case doesn't matter: Bash is bash.
	Tool string
	// Payload is a regular expression, found anywhere in the event's JSON without what all events have in common; its case matters. "" is all.
	Payload string
}

// matcher is a Selector, compiled.
type matcher struct {
	names   []string // nil: all, or re
	re      *regexp.Regexp
	payload *regexp.Regexp
}

// plain is a matcher that is no regular expression.
var plain = lazy.Regexp(`^[A-Za-z0-9_\- ,|]*$`)

func (s Selector) all() bool { return s.Tool == "" || s.Tool == "*" }

func (s Selector) compile() (m matcher, err error) {
	const remedy = "correct it (the syntax is Go's, which has neither look-around nor back-references)"
	switch {
	case s.all():
	case plain.Get().MatchString(s.Tool):
		for name := range strings.FieldsFuncSeq(s.Tool, func(r rune) bool { return r == '|' || r == ',' }) {
			if name = strings.TrimSpace(name); name != "" {
				m.names = append(m.names, name)
			}
		}
		if m.names == nil {
			return m, errdefs.Validation.Errorf("the matcher %q names nothing: name a tool, or leave it out for all", s.Tool)
		}
	default:
		if m.re, err = regexp.Compile("(?i)" + s.Tool); err != nil {
			return m, errdefs.Validation.Errorf("the matcher %q is no regular expression: %w: %s", s.Tool, err, remedy)
		}
	}
	if s.Payload != "" {
		if m.payload, err = regexp.Compile(s.Payload); err != nil {
			return m, errdefs.Validation.Errorf("the payload pattern %q is no regular expression: %w: %s", s.Payload, err, remedy)
		}
	}
	return m, nil
}

// matches reports whether it is for a name.
func (m matcher) matches(name string) bool {
	switch {
	case m.re != nil:
		return m.re.MatchString(name)
	case m.names != nil:
		return slices.ContainsFunc(m.names, func(n string) bool { return strings.EqualFold(n, name) })
	}
	return true
}
