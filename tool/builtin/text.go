package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// whole is an integer of an input. Models write 10 as 10.0 and 1e1 too, and JSON Schema calls these integers; so do we.
type whole int

func (n *whole) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil || f != math.Trunc(f) {
		return fmt.Errorf("%s is not a whole number", b)
	}
	*n = whole(max(math.MinInt32, min(math.MaxInt32, f))) // far above every limit of ours, and sums don't overflow
	return nil
}

// cut shortens s to at most n bytes, at the boundary of a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// show makes a file name or another foreign word safe to stand in a line of text: one line, valid UTF-8.
func show(s string) string {
	clean := func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}
	return cut(strings.Map(clean, strings.ToValidUTF8(s, "\uFFFD")), 4096)
}

// valid is s with U+FFFD for what is not UTF-8, and for NUL, which is no text either.
func valid(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// binary reports whether the beginning of a file is no text: it has a NUL byte or isn't UTF-8. all says that head is the whole file.
func binary(head []byte, all bool) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	if !all { // a rune may be cut in two at the end
		head = head[:len(head)-unfinished(head)]
	}
	return !utf8.Valid(head)
}

// unfinished is the number of bytes at the end of b that may be the beginning of a rune: 0 to 3.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// plural counts things: "1 line", "2 lines".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// countLines is the number of lines in s; the last one needs no line end.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
