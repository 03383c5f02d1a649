// Command testreport shows what go test -json prints, and holds each package's duration
// against a ledger.
//
//	go test -json ./... | testreport -tier quick
//	testreport -tier all -step soak -- ./scripts/soak 60s
//
// The first form reads standard input: it prints a line per package, all output of tests
// that failed, and the slowest packages. The second form runs a command and counts it as a
// row of its own. Both exit with status 1 when something failed, or when something took more
// than twice as long as its entry in the ledger and over 30 seconds longer.
//
// With -update, the measured durations replace the entries of this tier.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

func main() {
	status, err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	os.Exit(status)
}

// run returns the exit status: 0, 1 when tests failed or took too long, 2 for wrong use.
func run(args []string, in io.Reader, out io.Writer) (int, error) {
	flags := flag.NewFlagSet("testreport", flag.ContinueOnError)
	tier := flags.String("tier", "", "tier of the suite: quick, middle or all")
	path := flags.String("ledger", "", "file with the expected durations; none if empty")
	root := flags.String("root", ".", "directory of the repository, whose packages the ledger lists")
	step := flags.String("step", "", "name of the row for the command behind --")
	slowest := flags.Int("slowest", 12, "how many of the slowest packages are listed at the end")
	update := flags.Bool("update", false, "write the measured durations into the ledger")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	column, err := tierColumn(*tier)
	if err != nil {
		return 2, err
	}
	ledger, err := readLedger(*path)
	if err != nil {
		return 2, err
	}
	var result report
	if *step != "" {
		result, err = runStep(*step, flags.Args(), out)
	} else {
		result, err = readEvents(in, out)
	}
	if err != nil {
		return 1, err
	}
	printSlowest(out, result, ledger, column, *slowest)
	if result.failed {
		return 1, errors.New("there are failures: see above")
	}
	if *update {
		if ledger, err = readLedger(*path); err != nil { // another step may have written to it
			return 2, err
		}
		ledger.record(*root, column, result.durations)
		return 0, ledger.write(*path)
	}
	if *path == "" {
		return 0, nil
	}
	if late := ledger.exceeded(column, result.durations); len(late) > 0 {
		for _, l := range late {
			fmt.Fprintln(out, "too slow:", l)
		}
		return 1, fmt.Errorf("%d rows took more than twice and 30 s longer than %s says. "+
			"Make them faster, or run again with -update and say why in the commit", len(late), *path)
	}
	return 0, nil
}

// runStep runs a command as one row of the ledger.
func runStep(name string, command []string, out io.Writer) (report, error) {
	if len(command) == 0 {
		return report{}, errors.New("-step needs a command behind --")
	}
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // the command line is the caller's own
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	took := time.Since(start)
	word := "ok"
	if err != nil {
		word = "FAIL"
	}
	fmt.Fprintf(out, "%s\tstep %s\t%.1fs\n", word, name, took.Seconds())
	if err != nil {
		fmt.Fprintf(out, "step %s: %v\n", name, err)
	}
	return report{durations: map[string]time.Duration{stepPrefix + name: took}, failed: err != nil}, nil
}
