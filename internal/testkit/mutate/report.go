package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// report is what -json writes.
type report struct {
	Seed     string
	LeftOut  []string `json:",omitempty"` // tests that the changed form of the code disturbs
	Packages []packageReport
	Mutants  []mutantReport
}

// packageReport counts the mutants of a package.
type packageReport struct {
	Package           string
	Statements        int
	CoveredStatements int
	NotCovered        int // mutations that no test reaches; none of them is tried
	Invalid           int // chosen mutations that did not compile
	Mutants           int
	Killed            int
	Survived          int
	TimedOut          int
}

// mutantReport is one mutant.
type mutantReport struct {
	File     string
	Line     int
	Function string
	Kind     string
	Original string
	Mutated  string
	Result   string   `json:",omitempty"`
	By       string   `json:",omitempty"`
	Ran      []string `json:",omitempty"`
	Skipped  int      `json:",omitempty"`
}

// fileName returns the path of a mutation's file from the module's root.
func (m *mutation) fileName(of *module) string {
	name, err := filepath.Rel(of.dir, m.file.path)
	if err != nil {
		return m.file.path
	}
	return filepath.ToSlash(name)
}

func (p *packageReport) count(result string) {
	p.Mutants++
	switch result {
	case resultKilled:
		p.Killed++
	case resultSurvived:
		p.Survived++
	case resultTimeout:
		p.TimedOut++
	}
}

func newMutantReport(m *module, mu *mutant) mutantReport {
	return mutantReport{
		File: mu.fileName(m), Line: mu.Line, Function: mu.Function, Kind: mu.Kind,
		Original: mu.Original, Mutated: mu.Mutated, Result: mu.Result, By: mu.By, Ran: mu.Ran, Skipped: mu.Skipped,
	}
}

// total adds up rows.
func total(name string, rows []packageReport) packageReport {
	sum := packageReport{Package: name}
	for _, row := range rows {
		sum.Statements += row.Statements
		sum.CoveredStatements += row.CoveredStatements
		sum.NotCovered += row.NotCovered
		sum.Invalid += row.Invalid
		sum.Mutants += row.Mutants
		sum.Killed += row.Killed
		sum.Survived += row.Survived
		sum.TimedOut += row.TimedOut
	}
	return sum
}

// list prints the chosen mutations without results.
func (r *report) list(out io.Writer) {
	for _, m := range r.Mutants {
		fmt.Fprintf(out, "%s:%d: %s in %s\n\t- %s\n\t+ %s\n", m.File, m.Line, m.Kind, m.Function, m.Original, m.Mutated)
	}
	r.table(out)
}

// print prints the counts, then each survivor.
func (r *report) print(out io.Writer) {
	survivors := 0
	for _, m := range r.Mutants {
		if m.Result != resultSurvived {
			continue
		}
		survivors++
		fmt.Fprintf(out, "%s:%d: %s in %s\n\t- %s\n\t+ %s\n\ttests that passed: %s",
			m.File, m.Line, m.Kind, m.Function, m.Original, m.Mutated, strings.Join(m.Ran, ", "))
		if m.Skipped > 0 {
			fmt.Fprintf(out, "; %d more were left out, see -budget", m.Skipped)
		}
		fmt.Fprint(out, "\n\n")
	}
	r.table(out)
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(out, "\ntests left out, since mutations disturb them even when none is active: %s\n", strings.Join(r.LeftOut, ", "))
	}
	if survivors > 0 {
		fmt.Fprintf(out, "\n%d survived: see above\n", survivors)
	}
}

func (r *report) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "mutants\tkilled\tsurvived\ttimed out\tinvalid\tnot covered\tstatements\tcovered\t package")
	for _, row := range slices.Concat(r.Packages, []packageReport{total("all", r.Packages)}) {
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t %s\n", row.Mutants, row.Killed, row.Survived, row.TimedOut,
			row.Invalid, row.NotCovered, row.Statements, row.CoveredStatements, row.Package)
	}
	_ = w.Flush() // the output is shown, and lost at worst
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("mutate: read the baseline %s: %w", path, err)
	}
	return r, nil
}

// groups adds up the packages by the first element of their path, since packages below it may
// be split or merged.
func (r *report) groups() []packageReport {
	rows := map[string][]packageReport{}
	for _, p := range r.Packages {
		group, _, _ := strings.Cut(p.Package, "/")
		rows[group] = append(rows[group], p)
	}
	sums := []packageReport{total("all", r.Packages)}
	for group, list := range rows {
		sums = append(sums, total(group, list))
	}
	slices.SortFunc(sums, func(a, b packageReport) int { return strings.Compare(a.Package, b.Package) })
	return sums
}

// share returns which part of the mutants survived.
func (p *packageReport) share() float64 {
	if p.Mutants == 0 {
		return 0
	}
	return float64(p.Survived) / float64(p.Mutants)
}

// compare says in which groups a larger share survived than in the baseline. A
// group that the baseline lacks is not compared.
func (r *report) compare(baseline *report) []string {
	old := map[string]packageReport{}
	for _, group := range baseline.groups() {
		old[group.Package] = group
	}
	var grown []string
	for _, group := range r.groups() {
		was, known := old[group.Package]
		if known && was.Mutants > 0 && group.share() > was.share() {
			grown = append(grown, fmt.Sprintf("%s: %d of %d survived, in the baseline %d of %d",
				group.Package, group.Survived, group.Mutants, was.Survived, was.Mutants))
		}
	}
	return grown
}
