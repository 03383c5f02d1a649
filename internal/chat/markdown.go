package chat

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"github.com/pawl-dev/pawl/internal/plain"
)

// markdown shows what models write, for one width: headings, emphasis, code, lists, quotes, tables, links with their addresses. Line breaks stay where they are. What it does not know stays as it was written, and so does everything without
// colours. Nothing in a text but its marks has an effect: it is made safe first, and no reference to a character is resolved but those below.
type markdown struct {
	width  int
	colour bool
}

func newMarkdown(width int, colour bool) *markdown {
	return &markdown{max(min(width-1, 120), 10), colour}
}

var (
	heading   = regexp.MustCompile(`^ {0,3}#{1,6} +(.*?)(?: +#+)? *$`)
	rule      = regexp.MustCompile(`^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$`)
	quote     = regexp.MustCompile(`^ {0,3}> ?(.*)$`)
	listItem  = regexp.MustCompile(`^( *)([-*+]|[0-9]{1,9}[.)]) +(?:\[([ xX])\] )?(.*)$`)
	separator = regexp.MustCompile(`^ *\|?(?: *:?-+:? *\|)+ *(?::?-+:?)? *$`)
)

// lines renders a text that somebody else wrote.
func (m *markdown) lines(text string) (out []string) {
	src := strings.Split(strings.Trim(strings.ReplaceAll(plain.Text(text), "\t", "    "), "\n"), "\n")
	open := "" // what closes the code that is open
	for i := 0; i < len(src); i++ {
		line, bare := src[i], strings.TrimSpace(src[i])
		switch {
		case open != "":
			if strings.HasPrefix(bare, open) && strings.Trim(bare, open[:1]) == "" {
				open = ""
				continue
			}
			out = m.put(out, "  ", "  ", m.style(cyan, line))
		case bare == "":
			if n := len(out); n > 0 && out[n-1] != "" {
				out = append(out, "")
			}
		case m.colour && fence(bare) != "":
			open = fence(bare)
		case !m.colour:
			out = m.put(out, "", "", line)
		case heading.MatchString(line):
			out = m.put(out, "", "", m.inline(heading.FindStringSubmatch(line)[1], bold, cyan))
		case rule.MatchString(line):
			out = append(out, m.style(faint, strings.Repeat("─", min(m.width, 40))))
		case i+1 < len(src) && strings.Contains(line, "|") && separator.MatchString(src[i+1]):
			rows, separator := [][]string{cells(line)}, cells(src[i+1])
			for i += 2; i < len(src) && strings.Contains(src[i], "|"); i++ {
				rows = append(rows, cells(src[i]))
			}
			i--
			out = m.table(out, rows, separator)
		case quote.MatchString(line):
			out = m.put(out, m.style(faint, "│ "), m.style(faint, "│ "), m.inline(quote.FindStringSubmatch(line)[1]))
		case listItem.MatchString(line):
			p := listItem.FindStringSubmatch(line)
			mark := p[2] + " "
			switch {
			case p[3] == " ":
				mark = "☐ "
			case p[3] != "":
				mark = "☑ "
			case len(p[2]) == 1:
				mark = "• "
			}
			indent := p[1][:min(len(p[1]), m.width/2)]
			out = m.put(out, indent+mark, indent+strings.Repeat(" ", lipgloss.Width(mark)), m.inline(p[4]))
		default:
			indent := line[:min(len(line)-len(strings.TrimLeft(line, " ")), m.width/2)]
			out = m.put(out, indent, indent, m.inline(strings.TrimLeft(line, " ")))
		}
	}
	return out
}

// put adds a line, broken: first stands before it, and rest before what is broken off.
func (m *markdown) put(out []string, first, rest, line string) []string {
	for _, l := range wrap(line, max(m.width-max(lipgloss.Width(first), lipgloss.Width(rest)), 4)) {
		out = append(out, first+l)
		first = rest
	}
	return out
}

// cells are those of a row of a table.
func cells(row string) (all []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	for c := range strings.SplitSeq(strings.ReplaceAll(row, `\|`, "\x00"), "|") {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|"))
	}
	return all
}

// leastCell is what a column of a table that is too wide keeps, at least.
const leastCell = 6

// table sets cells below each other, as the separator below the first row says. A table that is too wide has its widest columns broken; one of too many columns is not set at all.
func (m *markdown) table(out []string, rows [][]string, separator []string) []string {
	var widths []int
	for i, row := range rows {
		for j, c := range row {
			codes := []string{}
			if i == 0 {
				codes = append(codes, bold)
			}
			row[j] = m.inline(c, codes...)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], lipgloss.Width(row[j]))
		}
	}
	between := m.style(faint, " │ ")
	total, set := narrow(widths, m.width-3*(len(widths)-1))
	for i, row := range rows {
		if set {
			out = append(out, aligned(row, widths, separator, between)...)
		} else {
			out = m.put(out, "", "  ", strings.Join(row, between))
		}
		if i == 0 {
			out = append(out, m.style(faint, strings.Repeat("─", max(min(total+3*(len(widths)-1), m.width), 1))))
		}
	}
	return out
}

// narrow makes the widest columns narrower until there is room for all, and reports whether there is.
func narrow(widths []int, room int) (total int, ok bool) {
	for i := range widths {
		widths[i] = min(widths[i], max(room, leastCell))
		total += widths[i]
	}
	for ; total > room; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= leastCell {
			return total, false
		}
		widths[widest]--
	}
	return total, true
}

// aligned is a row of a table, of as many lines as its highest cell.
func aligned(row []string, widths []int, separator []string, between string) (lines []string) {
	broken := make([][]string, len(row))
	height := 1
	for j, c := range row {
		if broken[j] = []string{c}; lipgloss.Width(c) > widths[j] {
			broken[j] = wrap(c, widths[j])
		}
		height = max(height, len(broken[j]))
	}
	for k := range height {
		var line strings.Builder
		for j, cell := range broken {
			text := ""
			if k < len(cell) {
				text = cell[k]
			}
			left, right := 0, max(widths[j]-lipgloss.Width(text), 0)
			if j < len(separator) && strings.HasSuffix(separator[j], ":") {
				if left = right; strings.HasPrefix(separator[j], ":") {
					left /= 2
				}
				right -= left
			}
			line.WriteString(strings.Repeat(" ", left) + text)
			if j < len(row)-1 {
				line.WriteString(strings.Repeat(" ", right) + between)
			}
		}
		lines = append(lines, closed(line.String()))
	}
	return lines
}

func (m *markdown) style(code, text string) string {
	if !m.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

var references = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&nbsp;", " ", "&amp;", "&")

// marks are those of emphasis, the longer ones first, with what they stand for.
var marks = []struct{ mark, code string }{{"***", "1;3"}, {"**", bold}, {"__", bold}, {"~~", "9"}, {"*", "3"}, {"_", "3"}}

// maxInline is the longest line, in bytes, whose marks are looked for: to find what closes one may take the rest of the line.
const maxInline = 4 << 10

// inline has the marks within a line as styles, besides those that it has already.
func (m *markdown) inline(s string, codes ...string) string {
	if len(s) > maxInline {
		return s
	}
	var b strings.Builder
	text := 0 // where plain text began
	say := func(to int) {
		if to > text {
			b.WriteString(m.style(strings.Join(codes, ";"), references.Replace(s[text:to])))
		}
	}
	if len(codes) == 0 {
		say = func(to int) { b.WriteString(references.Replace(s[text:to])) }
	}
	for i := 0; i < len(s); {
		n := 0 // how long it is, with its marks
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte("\\`*_{}[]()#+-.!|~<>", s[i+1]) >= 0:
			say(i)
			text, i = i+1, i+2
			continue
		case c == '`':
			ticks := s[i : i+len(s[i:])-len(strings.TrimLeft(s[i:], "`"))]
			if end := strings.Index(s[i+len(ticks):], ticks); end >= 0 {
				say(i)
				b.WriteString(m.style(strings.Join(append(codes[:len(codes):len(codes)], cyan), ";"), strings.TrimSpace(s[i+len(ticks):i+len(ticks)+end])))
				n = end + 2*len(ticks)
			} else {
				i += len(ticks)
				continue
			}
		case c == '[' || c == '!' && i+1 < len(s) && s[i+1] == '[':
			if label, url, long, ok := link(s[i:]); ok {
				say(i)
				b.WriteString(m.inline(label, append(codes[:len(codes):len(codes)], "4")...))
				if url != label && url != "" {
					b.WriteString(m.style(faint, " ("+url+")"))
				}
				n = long
			}
		case c == '*' || c == '_' || c == '~':
			for _, mark := range marks {
				inner, ok := between(s, i, mark.mark)
				if ok {
					say(i)
					b.WriteString(m.inline(inner, append(codes[:len(codes):len(codes)], mark.code)...))
					n = len(inner) + 2*len(mark.mark)
					break
				}
			}
			if n == 0 { // marks that open nothing are text, all of them
				i += len(s[i:]) - len(strings.TrimLeft(s[i:], string(c)))
				continue
			}
		}
		if n == 0 {
			i++
			continue
		}
		i += n
		text = i
	}
	say(len(s))
	return b.String()
}

// between is what stands between a mark at i and the next one like it.
func between(s string, i int, mark string) (inner string, ok bool) {
	if !strings.HasPrefix(s[i:], mark) || mark[0] == '_' && i > 0 && wordly(s[i-1]) {
		return "", false
	}
	from := i + len(mark)
	if from >= len(s) || s[from] == ' ' || s[from] == mark[0] {
		return "", false
	}
	for at := from + 1; ; {
		n := strings.Index(s[at:], mark)
		if n < 0 {
			return "", false
		}
		at += n
		end := at + len(mark)
		whole := s[at-1] != ' ' && s[at-1] != '\\' && (end == len(s) || s[end] != mark[0])
		if whole && (mark[0] != '_' || end == len(s) || !wordly(s[end])) {
			return s[from:at], true
		}
		for at < len(s) && s[at] == mark[0] {
			at++
		}
	}
}

func wordly(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// link reads [label](address), and an image, which is shown like one.
func link(s string) (label, url string, long int, ok bool) {
	from := strings.IndexByte(s, '[') + 1
	end := strings.Index(s[from:], "](")
	if end < 0 || strings.ContainsAny(s[from:from+end], "[\n") {
		return "", "", 0, false
	}
	at := from + end + 2
	stop := strings.IndexByte(s[at:], ')')
	if stop < 0 || strings.Contains(s[at:at+stop], "](") {
		return "", "", 0, false
	}
	url, _, _ = strings.Cut(s[at:at+stop], " ")
	return s[from : from+end], url, at + stop + 1, true
}

// blanks are such as no line is broken at.
var blanks = regexp.MustCompile(` {8,}`)

// wrap breaks lines at width columns, takes away what pads them, and ends each with the terminal's own colours.
func wrap(text string, width int) (lines []string) {
	text = strings.TrimRight(strings.ReplaceAll(text, "\t", "    "), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > width && lipgloss.Width(line) > width {
			lines = append(lines, broken(line, width)...)
		} else {
			lines = append(lines, closed(line))
		}
	}
	return lines
}

// closing are signs that no line begins with, where words are not set apart by blanks.
const closing = "、。，．：；！？）」』】〉》ーぁぃぅぇぉっゃゅょァィゥェォッャュョ"

// broken breaks a line that is too wide: behind blanks and hyphens, and between signs of writing that has none; a word that is wider than a line is broken anywhere. Colours take no room, and go on behind a break.
func broken(line string, width int) (lines []string) {
	line = blanks.ReplaceAllStringFunc(line, func(s string) string { return s[:min(len(s), max(width/2, 1))] })
	type place struct {
		at, column int
		colour     string // that is on there
	}
	var from, last, before place // where the line under way began, and where it can end: last, and before that
	column, colour := 0, ""
	cut := func(to place, next int) {
		lines = append(lines, closed(from.colour+line[from.at:to.at]))
		from = place{next, to.column, to.colour}
		last, before = from, from
	}
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			n := max(strings.IndexByte(line[i:], 'm')+1, 1)
			if colour = line[i : i+n]; colour == "\x1b[0m" {
				colour = ""
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(line[i:])
		here := place{i, column, colour}
		w := columns(r)
		if r == '\ufe0f' { // what stands before it is an emoji, and may be wider for that
			w = 1
		}
		if strings.ContainsRune(closing, r) && last.at == i {
			last = before
		}
		switch {
		case column-from.column+w <= width || w == 0 || column == from.column:
		case r == ' ':
			cut(here, i+n)
			from.column++
		case last.at > from.at:
			cut(last, last.at)
		default:
			cut(here, i)
		}
		if i, column = i+n, column+w; r == ' ' && from.at == i-n && len(lines) > 0 { // no line but the first is indented
			from.at, from.column = i, column
		}
		if r == ' ' || r == '-' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || strings.ContainsRune(closing, r) {
			before, last = last, place{i, column, colour}
		}
	}
	return append(lines, closed(from.colour+line[from.at:]))
}

// closed is a line without what pads it, behind which there are the terminal's own colours.
func closed(line string) string {
	if line = strings.TrimRight(line, " "); strings.Contains(line, "\x1b") && !strings.HasSuffix(line, "\x1b[0m") {
		line += "\x1b[0m"
	}
	return line
}
