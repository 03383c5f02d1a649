// Package plain makes what others wrote (models, tools, servers, names of files) safe for a terminal: nothing in it moves the cursor, changes what was shown, or can't be seen and counts all the same.
package plain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text takes out what would steer a terminal: sequences as wholes, so that nothing of them is left as letters, and controls. Line breaks, tabs and spaces stay, and a joiner that says how what stands
// before it is written: Persian words and families of emoji need them, and within a word there is nothing that they could hide. Marks of the order of writing go, as they reach beyond the word.
func Text(s string) string {
	if strings.ContainsAny(s, "\x1b\u009b") {
		s = sequences.ReplaceAllString(s, "")
	}
	before := ' '
	return strings.Map(func(r rune) rune {
		keep := Shown(r) || (r == joiner || r == nonJoiner) && unicode.In(before, unicode.L, unicode.M, unicode.So, unicode.Sk)
		if before = r; keep {
			return r
		}
		return -1
	}, s)
}

const nonJoiner, joiner = '\u200c', '\u200d'

// sequences are such as end: CSI, and the strings of OSC and its like within a line.
var sequences = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)`)

// Typed is what a person typed or pasted, without controls that nobody means. What can't be seen, and may steer a terminal, is in it: it is what is said, and Text is what is shown of it.
func Typed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// Shown reports whether a character stands for itself on a terminal. Of controls, those of eight bits among them, only the line end and the tab do.
func Shown(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.IsSpace(r) && r >= 0xa0
}

// Line is Text in one line, without blanks that say nothing.
func Line(s string) string { return Text(strings.Join(strings.Fields(s), " ")) }

// Clip is the beginning of a text: most characters at most.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == most && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
	}
	return s
}

// Escaped shows what would steer a terminal, or could not be seen, as Go writes it: \x1b, \u202e.
func Escaped(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) && !unseen(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// EscapedLine is Escaped in one line.
func EscapedLine(s string) string {
	blank := func(r rune) bool { return r == ' ' }
	return strings.Join(strings.FieldsFunc(Escaped(strings.ReplaceAll(s, "\n", " ")), blank), " ")
}

// unseen reports whether nothing is shown for a character that counts as printable.
func unseen(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Members are those of a JSON object, each on a line, or below its name when its text has several; what is no object stays as it is.
func Members(input string) string {
	if !json.Valid([]byte(input)) { // of what has no end, or more behind it, the members alone would hide a part
		return input
	}
	dec := json.NewDecoder(strings.NewReader(input))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return input
	}
	var b strings.Builder
	for dec.More() {
		name, err := dec.Token()
		var raw json.RawMessage
		if err != nil || dec.Decode(&raw) != nil {
			return input
		}
		value := string(raw)
		if bytes.HasPrefix(raw, []byte{'"'}) {
			_ = json.Unmarshal(raw, &value) // it was decoded as JSON already
		}
		if strings.Contains(value, "\n") {
			value = "\n  " + strings.ReplaceAll(strings.TrimSuffix(value, "\n"), "\n", "\n  ")
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.ReplaceAll(fmt.Sprint(name), "\n", " "), value)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// How much of a text Bar shows: its first lines and its last.
const (
	firstLines = 40
	lastLines  = 12
)

// Bar shows a text that a model wrote behind a bar on each line, so that nothing in it can look like a line of ours: escaped, and broken where the terminal would
// break it, at width columns. of is what the text was made of, whose length is said when not all is shown.
func Bar(text, of string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for i, part := range wrapped(Escaped(line), width-4) {
			lines = append(lines, []string{"  | ", "  : "}[min(i, 1)]+part)
		}
	}
	if n := len(lines) - firstLines - lastLines; n > 1 {
		note := fmt.Sprintf("[%d lines are not shown here; all of it has %d characters]", n, utf8.RuneCountInString(of))
		lines = append(append(lines[:firstLines:firstLines], note), lines[len(lines)-lastLines:]...)
	}
	return strings.Join(lines, "\n")
}

// wrapped breaks a line. What is not ASCII may take two columns.
func wrapped(line string, width int) (lines []string) {
	from, used := 0, 0
	for i, r := range line {
		w := 1
		if r > unicode.MaxASCII {
			w = 2
		}
		if used+w > width && i > from {
			lines, from, used = append(lines, line[from:i]), i, 0
		}
		used += w
	}
	return append(lines, line[from:])
}
