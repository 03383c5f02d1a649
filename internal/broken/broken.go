// Package broken shows that a conformance suite notices defects: it runs the suite on broken pieces, each in a test binary of its own, and has the cases fail that must.
package broken

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Piece is a piece with one defect.
type Piece struct {
	Run   func(t *testing.T) // the suite, on the piece
	Fails []string           // the cases that must notice it, as they are called below the suite's test: "group/case"
}

// chosen names the piece that a re-executed test binary has to fail on.
const chosen = "PAWL_BROKEN_PIECE"

// IsInner reports whether this process runs a suite on a broken piece. A suite then need not
// wait as long as for a slow machine: the case that waits has to fail.
func IsInner() bool { return os.Getenv(chosen) != "" }

// Pieces runs the cases that must fail on each piece, and no others: a whole suite for each would take long. Call it from a test function of its own.
func Pieces(t *testing.T, pieces map[string]Piece) {
	t.Helper()
	if p, inner := pieces[os.Getenv(chosen)]; inner {
		p.Run(t)
		return
	}
	for name, p := range pieces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suite, _, _ := strings.Cut(t.Name(), "/")
			cmd := exec.Command(os.Args[0], "-test.run="+p.pattern(suite), "-test.timeout=2m") //nolint:gosec // The program is this test binary, the pattern its own cases.
			cmd.Env = append(os.Environ(), chosen+"="+name)
			out, err := cmd.CombinedOutput()
			if !errors.As(err, new(*exec.ExitError)) {
				t.Fatalf("the suite passed: %v\n%s", err, out)
			}
			for _, want := range p.Fails {
				if !strings.Contains(string(out), "--- FAIL: "+suite+"/"+called(want)) {
					t.Errorf("%q did not fail:\n%s", want, out)
				}
			}
			if strings.HasPrefix(string(out), "panic: ") || strings.Contains(string(out), "\npanic: ") {
				t.Errorf("the suite panicked:\n%s", out)
			}
		})
	}
}

// pattern selects the cases that have to fail, in groups where they are.
func (p Piece) pattern(suite string) string {
	var groups, cases []string
	for _, f := range p.Fails {
		group, name, nested := strings.Cut(called(f), "/")
		if groups = append(groups, regexp.QuoteMeta(group)); nested {
			cases = append(cases, regexp.QuoteMeta(name))
		}
	}
	pattern := "^" + regexp.QuoteMeta(suite) + "$/^(" + strings.Join(groups, "|") + ")"
	if len(cases) > 0 {
		pattern += "/^(" + strings.Join(cases, "|") + ")"
	}
	return pattern
}

// called is the name that the testing package makes of a case's.
func called(name string) string { return strings.ReplaceAll(name, " ", "_") }
