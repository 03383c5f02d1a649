package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestADifferenceIsShownAsGitShowsIt(t *testing.T) {
	t.Parallel()
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":             {"a\n", "a\n", ""},
		"one line":            {ten, strings.Replace(ten, "5", "five", 1), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		"two far apart":       {ten, "0\n" + ten + "11\n", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -8,3 +9,4 @@\n 8\n 9\n 10\n+11\n"},
		"two near each other": {"1\n2\n3\n", "1\nx\n2\n", "@@ -1,3 +1,3 @@\n 1\n+x\n 2\n-3\n"},
		"to a new file":       {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"to an empty file":    {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"no line end":         {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
	} {
		if diff := cmp.Diff(c.want, unified(c.from, c.to, 3)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// patch applies hunks as patch(1) does; it fails when they do not fit.
func patch(from, hunks string) (string, error) {
	old := dropEmpty(strings.SplitAfter(from, "\n"))
	lines := dropEmpty(strings.SplitAfter(hunks, "\n"))
	var out []string
	at := 0
	for i := 0; i < len(lines); {
		var a, an, b, bn int
		if _, err := fmt.Sscanf(lines[i], "@@ -%d,%d +%d,%d @@", &a, &an, &b, &bn); err != nil {
			return "", fmt.Errorf("line %d: %q: %w", i, lines[i], err)
		}
		i++
		begin := a - 1
		if an == 0 {
			begin = a
		}
		for ; at < begin; at++ {
			out = append(out, old[at])
		}
		want := b - 1
		if bn == 0 {
			want = b
		}
		if len(out) != want {
			return "", fmt.Errorf("the hunk says that it begins at %d, it does at %d", want, len(out))
		}
		for ; i < len(lines) && lines[i][0] != '@'; i++ {
			text := lines[i][1:]
			if i+1 < len(lines) && lines[i+1][0] == '\\' {
				text = strings.TrimSuffix(text, "\n")
			}
			switch lines[i][0] {
			case ' ', '-':
				if at >= len(old) || old[at] != text {
					return "", fmt.Errorf("line %d of the old text is not %q", at, text)
				}
				if lines[i][0] == ' ' {
					out = append(out, text)
					bn--
				}
				at, an = at+1, an-1
			case '+':
				out = append(out, text)
				bn--
			}
		}
		if an != 0 || bn != 0 {
			return "", fmt.Errorf("the lengths in the hunk's head are wrong")
		}
	}
	return strings.Join(append(out, old[at:]...), ""), nil
}

func checkDiff(from, to string) error {
	hunks := unified(from, to, 3)
	got, err := patch(from, hunks)
	if err != nil {
		return fmt.Errorf("%w in\n%s", err, hunks)
	}
	if got != to {
		return fmt.Errorf("got %q from\n%s", got, hunks)
	}
	return nil
}

func TestADifferenceMakesTheNewTextOfTheOldOne(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "@@", "\r", "\\", "-x", "+y"}), 0, 40).Draw(t, "lines")
		return strings.Join(lines, "\n")
	})
	rapid.Check(t, func(t *rapid.T) {
		if err := checkDiff(text.Draw(t, "from"), text.Draw(t, "to")); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\n", "a\nc")
	f.Add("", "x\n\n")
	f.Fuzz(func(t *testing.T, from, to string) {
		if err := checkDiff(from, to); err != nil {
			t.Fatal(err)
		}
	})
}

func TestADifferenceOfVeryUnlikeFilesTakesLittleTime(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 200_000 {
		a.WriteString("a" + strconv.Itoa(i) + "\n")
		b.WriteString("b" + strconv.Itoa(i) + "\n")
	}
	from, to := "head\n"+a.String()+"tail\n", "head\n"+b.String()+"tail\n"
	if err := checkDiff(from, to); err != nil {
		t.Error(err)
	}
	shown := showDiff("f", from, to)
	if n := strings.Count(shown, "\n"); n > 210 || !strings.Contains(shown, "more lines of the difference left out]") {
		t.Errorf("%d lines", n)
	}
}

func TestLongLinesOfADifferenceAreCut(t *testing.T) {
	t.Parallel()
	shown := showDiff("f", strings.Repeat("ä", 1<<20), strings.Repeat("ö", 1<<20))
	if len(shown) > 3000 || !strings.Contains(shown, "[cut: 2097153 bytes]") {
		t.Errorf("%d bytes", len(shown))
	}
}
