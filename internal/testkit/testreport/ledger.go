package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tiers are the columns of the ledger.
var tiers = []string{"quick", "middle", "all"}

const (
	// graceFactor and grace are both exceeded before a duration counts as too long: machines
	// differ and are shared.
	graceFactor = 2
	grace       = 30 * time.Second

	// stepPrefix marks rows of commands, which are no packages.
	stepPrefix = "step:"

	header = "# Seconds that each package takes, by tier of the suite. Written by PAWL_TEST_LEDGER=update ./scripts/test.\n" +
		"# A package that takes more than twice as long, and over 30 s longer, fails CI. New packages begin at 0.\n"
)

func tierColumn(name string) (int, error) {
	column := slices.Index(tiers, name)
	if column < 0 {
		return 0, fmt.Errorf("-tier is %q: want one of %s", name, strings.Join(tiers, ", "))
	}
	return column, nil
}

// ledger has the expected duration of each row in each tier. A missing one is negative.
type ledger map[string][]time.Duration

// readLedger reads a ledger. Without a path, or if there is no such file, it is empty.
func readLedger(path string) (ledger, error) {
	l := ledger{}
	if path == "" {
		return l, nil
	}
	f, err := os.Open(path) //nolint:gosec // the path is the caller's own
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 1+len(tiers) {
			return nil, fmt.Errorf("%s:%d: want a package and %d durations, separated by tabs", path, n, len(tiers))
		}
		row := make([]time.Duration, len(tiers))
		for i, field := range fields[1:] {
			if field == "-" {
				row[i] = -1
				continue
			}
			seconds, err := strconv.Atoi(field)
			if err != nil || seconds < 0 {
				return nil, fmt.Errorf("%s:%d: %q: want whole seconds, or - for none", path, n, field)
			}
			row[i] = time.Duration(seconds) * time.Second
		}
		if _, twice := l[fields[0]]; twice {
			return nil, fmt.Errorf("%s:%d: %s has two rows", path, n, fields[0])
		}
		l[fields[0]] = row
	}
	return l, lines.Err()
}

func (l ledger) write(path string) error {
	var b strings.Builder
	b.WriteString(header + "# package\t" + strings.Join(tiers, "\t") + "\n")
	for _, name := range slices.Sorted(maps.Keys(l)) {
		b.WriteString(name)
		for _, d := range l[name] {
			if d < 0 {
				b.WriteString("\t-")
			} else {
				fmt.Fprintf(&b, "\t%.0f", d.Seconds())
			}
		}
		b.WriteByte('\n')
	}
	return os.WriteFile(path, []byte(b.String()), 0o644) //nolint:gosec // a file of the repository
}

// record replaces the entries of one tier by measured ones, in whole seconds, rounded up, and
// drops packages that the repository in root no longer has.
func (l ledger) record(root string, column int, measured map[string]time.Duration) {
	maps.DeleteFunc(l, func(name string, _ []time.Duration) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		return errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(name, stepPrefix)
	})
	for name, d := range measured {
		if l[name] == nil {
			l[name] = slices.Repeat([]time.Duration{-1}, len(tiers))
		}
		l[name][column] = time.Duration(math.Ceil(d.Seconds())) * time.Second
	}
}

// expected is the entry of a row; a row that the ledger lacks has 0.
func (l ledger) expected(name string, column int) time.Duration {
	if row := l[name]; row != nil && row[column] > 0 {
		return row[column]
	}
	return 0
}

// exceeded lists the rows that took far longer than the ledger says.
func (l ledger) exceeded(column int, measured map[string]time.Duration) (late []string) {
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		want := l.expected(name, column)
		if d := measured[name]; d > graceFactor*want && d > want+grace {
			late = append(late, fmt.Sprintf("%s: %.0f s, the ledger has %.0f s", name, d.Seconds(), want.Seconds()))
		}
	}
	return late
}

// printSlowest prints the rows that took longest, with their entries, and the sum.
func printSlowest(out io.Writer, r report, l ledger, column, n int) {
	if len(r.durations) < 2 {
		return
	}
	names := slices.SortedFunc(maps.Keys(r.durations), func(a, b string) int {
		return cmp.Or(-cmp.Compare(r.durations[a], r.durations[b]), cmp.Compare(a, b))
	})
	var sum, expected time.Duration
	for _, name := range names {
		sum += r.durations[name]
		expected += l.expected(name, column)
	}
	fmt.Fprintf(out, "\n%-40s %8s %8s\n", tiers[column], "took", "ledger")
	for _, name := range names[:min(n, len(names))] {
		fmt.Fprintf(out, "%-40s %7.1fs %7.0fs\n", name, r.durations[name].Seconds(), l.expected(name, column).Seconds())
	}
	fmt.Fprintf(out, "%-40s %7.1fs %7.0fs\n", fmt.Sprintf("sum of %d packages", len(names)), sum.Seconds(), expected.Seconds())
}
