package chat

import (
	"regexp"
	"strconv"
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"

	"github.com/pawl-dev/pawl/internal/plain"
)

// maxMarkdown is the largest text, in bytes, that is rendered as Markdown: a longer one is shown as it is.
const maxMarkdown = 64 << 10

// markdown renders for one width.
type markdown struct {
	width  int
	render *glamour.TermRenderer
}

// newMarkdown makes a renderer. Without colour nothing is styled.
func newMarkdown(width int, colour, dark bool) *markdown {
	width = max(min(width-1, 120), 20)
	style := styles.ASCIIStyleConfig
	if colour && dark {
		style = styles.DarkStyleConfig
	} else if colour {
		style = styles.LightStyleConfig
	}
	none := uint(0)
	style.Document.Margin, style.Document.BlockPrefix, style.Document.BlockSuffix, style.Document.Color = &none, "", "", nil // the terminal's own colour
	r, err := glamour.NewTermRenderer(glamour.WithStyles(style), glamour.WithWordWrap(width), glamour.WithPreservedNewLines())
	if err != nil { // there is nothing in these options that could fail
		r = nil
	}
	return &markdown{width, r}
}

// lines renders a text that somebody else wrote.
func (m *markdown) lines(text string) []string {
	text = strings.Trim(plain.Text(text), "\n")
	if m.render == nil || len(text) > maxMarkdown {
		return wrap(text, m.width)
	}
	out, err := m.render.Render(literal(text))
	if err != nil {
		return wrap(text, m.width)
	}
	return wrap(safe(out), m.width)
}

var reference = regexp.MustCompile(`&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));`)

// literal has references to characters that would steer a terminal shown as they are written: Markdown would put those in.
func literal(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		digits, base := m[1], 16
		if digits == "" {
			digits, base = m[2], 10
		}
		if n, err := strconv.ParseInt(digits, base, 32); err == nil && plain.Shown(rune(n)) {
			return ref
		}
		return "&#38;" + ref[1:]
	})
}

// safe keeps of what steers a terminal colours and their like alone: what a renderer of Markdown makes of a text of somebody's goes nowhere else. Links are shown with their addresses, and none is hidden behind another text.
func safe(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != 0x1b {
			n := strings.IndexByte(s[i:], 0x1b)
			if n < 0 {
				n = len(s) - i
			}
			b.WriteString(plain.Text(s[i : i+n]))
			i += n
			continue
		}
		n, colours := sequence(s[i:])
		if colours {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// sequence is how long the control sequence is that s begins with, and whether all it does is colours.
func sequence(s string) (n int, colours bool) {
	if len(s) < 2 {
		return len(s), false
	}
	switch s[1] {
	case '[':
		for n = 2; n < len(s); n++ {
			if c := s[n]; c >= 0x40 && c <= 0x7e {
				return n + 1, c == 'm' && strings.Trim(s[2:n], "0123456789;:") == ""
			}
		}
	case ']', 'P', '_', '^', 'X':
		for n = 2; n < len(s); n++ {
			if s[n] == 0x07 {
				return n + 1, false
			}
			if s[n] == 0x1b {
				if n+1 < len(s) && s[n+1] == '\\' {
					return n + 2, false
				}
				return n, false
			}
		}
	default:
		return 1, false
	}
	return len(s), false
}

var padding = regexp.MustCompile(`(?:\x1b\[[0-9;:]*m|[ \x{a0}])+$`)

// wrap breaks lines at width columns, takes away what pads them, and ends each with the terminal's own colours.
func wrap(text string, width int) (lines []string) {
	text = strings.ReplaceAll(text, "\t", "    ")
	if fits := len(text) <= width && !strings.Contains(text, "\n"); !fits {
		text = lipgloss.Wrap(text, width, "")
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line = padding.ReplaceAllString(line, ""); strings.Contains(line, "\x1b") {
			line += "\x1b[0m"
		}
		lines = append(lines, line)
	}
	return lines
}
