package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// modulePrefix is cut from package paths, so that the ledger's rows are short.
const modulePrefix = "github.com/pawl-dev/pawl"

// report is what one run of go test came to.
type report struct {
	durations map[string]time.Duration // row of the ledger -> duration
	failed    bool
	passed    int // tests and subtests
	failures  int
	skipped   int
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// readEvents reads the output of go test -json, prints a line per package and the output of
// failed tests, and returns the durations. Lines that are not JSON are printed as they are.
func readEvents(in io.Reader, out io.Writer) (report, error) {
	r := report{durations: map[string]time.Duration{}}
	output := map[[2]string][]string{} // package and test -> what it has printed
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(out, "%s", line)
			} else {
				r.add(e, output, out)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, fmt.Errorf("read the events: %w", err)
		}
	}
	if len(r.durations) == 0 {
		return r, fmt.Errorf("no package was tested: the input has no result")
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, r.failures, r.skipped)
	return r, nil
}

func (r *report) add(e event, output map[[2]string][]string, out io.Writer) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		output[key] = append(output[key], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.finishPackage(e, output, out)
			return
		}
		switch e.Action {
		case "pass":
			r.passed++
		case "skip":
			r.skipped++
		case "fail":
			r.failures++
			r.failed = true
			printAll(out, output[key])
		}
		delete(output, key)
	}
}

// finishPackage prints the package's own lines. Of a package that failed without a failing
// test, such as one that was killed, it prints everything that its tests had printed.
func (r *report) finishPackage(e event, output map[[2]string][]string, out io.Writer) {
	lines := output[[2]string{e.Package, ""}]
	if e.Action == "fail" {
		r.failed = true
		for _, key := range slices.SortedFunc(maps.Keys(output), compareKeys) {
			if key[0] == e.Package && key[1] != "" {
				printAll(out, output[key])
			}
		}
		printAll(out, lines)
	} else {
		for _, line := range lines {
			if strings.HasPrefix(line, "ok ") {
				fmt.Fprint(out, line)
			}
		}
	}
	for key := range output {
		if key[0] == e.Package {
			delete(output, key)
		}
	}
	if e.Action != "skip" {
		r.durations[rowOf(e.Package)] = time.Duration(e.Elapsed * float64(time.Second))
	}
}

func compareKeys(a, b [2]string) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}

func printAll(out io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprint(out, line)
	}
}

// rowOf names a package as the ledger does: by its path below the module's root.
func rowOf(pkg string) string {
	row := strings.TrimPrefix(strings.TrimPrefix(pkg, modulePrefix), "/")
	return cmp.Or(row, ".")
}
