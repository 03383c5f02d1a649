package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the README says was measured is what the page of the measurements has.
func TestTheREADMEHasTheFiguresThatWereMeasured(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, measured, _ := strings.Cut(read("README.md"), "## Measured")
	measured, _, _ = strings.Cut(measured, "\n## ")
	bench, rows := read("bench/README.md"), 0
	for ours, theirs := range map[string]string{"Pawl": "`pawl-memory`", "langchaingo": "`langchaingo`", "Eino": "`eino`", "Genkit": "`genkit`"} {
		row := line(measured, "| "+ours)
		kept := " " + strings.Join(fields.FindAllString(line(bench, "| "+theirs+" | "+figureOf(bench, theirs)), -1), " ") + " "
		if rows++; row == "" || len(kept) < 10 {
			t.Fatalf("no row of %s: %q %q", ours, row, kept)
		}
		_, row, _ = strings.Cut(row[1:], "|") // behind the name and its version
		for _, f := range fields.FindAllString(strings.ReplaceAll(row, ",", ""), -1) {
			if !strings.Contains(kept, " "+f+" ") {
				t.Errorf("%s: %s is not among what was measured:%s", ours, f, kept)
			}
		}
	}
	for _, f := range regexp.MustCompile(`×([0-9.]+) the processor time`).FindAllStringSubmatch(measured, -1) {
		if !strings.Contains(line(bench, "W1           pawl-sqlite    CPU a turn"), " "+f[1]+" ") {
			t.Errorf("×%s is not what was measured", f[1])
		}
		rows++
	}
	if rows != 5 {
		t.Errorf("%d rows were looked at", rows)
	}
}

var fields = regexp.MustCompile(`[0-9][0-9.]*`)

// line is the first one that begins so.
func line(text, with string) string {
	for l := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(l, with) {
			return l
		}
	}
	return ""
}

// figureOf is what a row of figures of a system begins with: other tables have rows of it, too.
func figureOf(text, system string) string {
	m := regexp.MustCompile(`(?m)^\| ` + system + ` \| ([0-9.]+ \(×)`).FindStringSubmatch(text)
	if m == nil {
		return "no figures"
	}
	return m[1]
}
