package eval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report with all that one can have: rates, a regression, a case that is not in the baseline, an error, what was skipped, and texts that would break a table.
func reported(t *testing.T) *Report {
	t.Helper()
	s := held(t, 10, map[string]int{"a": 10, "b": 8})
	s.Name, s.Repeats = "s", 10
	s.Cases = append(s.Cases, Case{Name: "new | <b>", Prompt: "x", Want: "y", Tags: []string{"t"}})
	s.How = answering(map[string]int{"a": 1, "b": 8, "new | <b>": 9})
	s.ReportDir = t.TempDir()
	r := done(t, s)
	r2 := s.ReportDir
	for _, name := range []string{"s.md", "s.json"} {
		if _, err := os.Stat(filepath.Join(r2, name)); err != nil {
			t.Error(err)
		}
	}
	return r
}

func TestTheReportCanBeRead(t *testing.T) {
	r := reported(t)
	golden(t, "report.txt", r.String())
	golden(t, "report.md", r.Markdown())
}

func TestTheReportAsJSON(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(ReportEnv, dir)
	r := done(t, Suite{Name: "my suite/1", Cases: prompts("a"), How: echo, Scorers: []Scorer{Exact()}})
	b, err := os.ReadFile(filepath.Join(dir, "my-suite-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || back.Version != 1 || back.Cases[0].Scores[1].Rate != r.Cases[0].Scores[1].Rate || back.Cases[0].Samples[0].Answer != "a" {
		t.Errorf("%v\n%s", err, b)
	}
	if !strings.Contains(string(b), `"why"`) && !strings.Contains(string(b), `"pass": true`) {
		t.Errorf("scores have other names:\n%s", b)
	}
}
