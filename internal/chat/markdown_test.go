package chat

import (
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
)

func TestMarkdownAsPeopleSeeIt(t *testing.T) {
	for text, want := range map[string]string{
		"# Head *line* #":                                     "^1;36mHead ^0m^1;36;3mline^0m",
		"a **b** __c__ *d* _e_ ~~f~~ `g*h`":                   "a ^1mb^0m ^1mc^0m ^3md^0m ^3me^0m ^9mf^0m ^36mg*h^0m",
		"snake_case_name 2 * 3 * 4 **":                        "snake_case_name 2 * 3 * 4 **",
		`\*no\*`:                                              "*no*",
		"- a\n  1. b\n- [x] c\n- [ ] d":                       "• a\n  1. b\n☑ c\n☐ d",
		"> said":                                              "^2m│ ^0msaid",
		"[here](https://a.example/x \"t\")":                   "^4mhere^0m^2m (https://a.example/x)^0m",
		"```go\n*a*\n\n# b\n```\nc":                           "  ^36m*a*^0m\n  \n  ^36m# b^0m\nc",
		"a &lt;b&gt; &amp;c; &#27;[31m":                       "a <b> &c; &#27;[31m",
		"|a|b|\n|-|-|\n|1|`x|y`|":                             "^1ma^0m^2m │ ^0m^1mb^0m\n^2m───────────^0m\n1^2m │ ^0m`x^2m │ ^0my`^0m",
		"|a|b|c|\n|:-|--:|:-:|\n|left|right|middle|\n|1|2|3|": "^1ma^0m   ^2m │ ^0m    ^1mb^0m^2m │ ^0m  ^1mc^0m\n^2m─────────────────────^0m\nleft^2m │ ^0mright^2m │ ^0mmiddle^0m\n1   ^2m │ ^0m    2^2m │ ^0m  3^0m",
		"|a|b|\n|-|-|\n|one|" + strings.Repeat("word ", 9) + "|\n|x|y|": "^1ma^0m  ^2m │ ^0m^1mb^0m\n^2m───────────────────────────────────────^0m\n" +
			"one^2m │ ^0mword word word word word word^0m\n   ^2m │ ^0mword word word^0m\nx  ^2m │ ^0my^0m",
	} {
		got := strings.Join(newMarkdown(40, true).lines(text), "\n")
		if got = strings.ReplaceAll(got, "\x1b[", "^"); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
	if got := strings.Join(newMarkdown(40, false).lines("# a **b**\n\n```\nc\n```"), "\n"); got != "# a **b**\n\n```\nc\n```" {
		t.Errorf("without colours it stays as it is: %q", got)
	}
}

func TestLinesAreBrokenWhereWordsEnd(t *testing.T) {
	for text, want := range map[string]string{
		"one two three":               "one two|three",
		"one two  three":              "one two|three",
		"onetwothreefour":             "onetwothre|efour",
		"well-known words":            "well-known|words",
		"000000000 -":                 "000000000|-",
		"ab 漢字漢字漢字漢字":                 "ab 漢字漢|字漢字漢字",
		"漢字漢字漢。字":                     "漢字漢字|漢。字",
		"\x1b[1mone two three\x1b[0m": "\x1b[1mone two\x1b[0m|\x1b[1mthree\x1b[0m",
		"one \x1b[1mtwo\x1b[0m three": "one \x1b[1mtwo\x1b[0m|three",
		"  one two three":             "  one two|three",
	} {
		if got := strings.Join(wrap(text, 10), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

var ours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// Whatever a model writes: no line is wider than the terminal, and nothing but our own colours steers it.
func FuzzMarkdown(f *testing.F) {
	f.Add(reply)
	f.Add("\x1b]0;t\x07\u009b2J\u0085 **a\x1b[5m** `\x1bc`")
	f.Add("| 漢字 | b |\n|---|---|\n| `a` | " + strings.Repeat("漢", 60))
	f.Add(strings.Repeat("*_`[", 300))
	f.Add("00000000000000000000000000000 -")
	f.Add("漢字**漢字 。漢字 - 漢字**漢字漢字漢字漢字👩‍👩‍👧‍👦漢字")
	f.Add("- " + strings.Repeat("x", 200) + "\n" + strings.Repeat(" ", 90) + "- y\n> " + strings.Repeat("z ", 90))
	f.Fuzz(func(t *testing.T, text string) {
		for _, colour := range []bool{true, false} {
			for _, line := range newMarkdown(30, colour).lines(text) {
				if n := lipgloss.Width(line); n > 30 {
					t.Errorf("%d columns: %q", n, line)
				}
				if bare := ours.ReplaceAllString(line, ""); strings.ContainsFunc(bare, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
					t.Errorf("%q", line)
				}
			}
		}
	})
}
