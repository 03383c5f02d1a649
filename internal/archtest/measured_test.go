package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	_, worse, _ := strings.Cut(measured, "\n### Where it is worse\n")
	for row, lines := range map[string][]string{
		"a turn, with 200 sessions at once":            {"W4           pawl-memory    CPU a turn"},
		"memory of each of them":                       {"W4           pawl-memory    peak a session"},
		"what a session that is over leaves in memory": {"W4           pawl           retained a session, KB       12.7", "W4           pawl-memory    retained a session, KB       29.2"}, // those beside Eino
		"a journal in a file":                          {"W1           pawl-sqlite    CPU a turn"},
		"a program with an agent":                      {"W5           ready-agent    stripped size", "W5           ready-agent    spawn to ready", "W5           ready-floor    stripped size", "W5           ready-floor    spawn to ready"},
		"the same with a Runtime":                      {"W5           ready-root     stripped size", "W5           ready-root     modules", "W5           ready-root     spawn to ready"},
	} {
		var kept []string
		for _, l := range lines {
			of := line(bench, l)
			if of == "" {
				t.Errorf("bench/README.md has no line %q", l)
			}
			kept = append(kept, fields.FindAllString(of, -1)...)
		}
		text := strings.Replace(line(worse, "| "+row), "200 sessions", "", 1) // what W4 is
		figures := fields.FindAllString(text, -1)
		if rows++; len(figures) < 2 {
			t.Errorf("there are no figures in the row %q: %s", row, text)
		}
		for _, f := range figures {
			if !slices.ContainsFunc(kept, func(k string) bool { return same(k, f) }) {
				t.Errorf("%s: %s is not among what was measured: %s", row, f, kept)
			}
		}
	}
	if n := strings.Count(worse, "\n| "); rows != 10 || n != 7 { // six rows and the heading
		t.Errorf("%d rows were looked at, and %d lines say where it is worse", rows, n)
	}
}

// same reports whether two figures are the same number, however they are written: 27 and 27.0.
func same(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
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
