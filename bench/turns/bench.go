package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/load"
)

// options are what the command line says.
type options struct {
	workloads, systems           string
	also, peers                  string
	pairs                        int
	times                        float64
	growth                       bool
	tls                          string
	jsonFile, svgFile, profileTo string
	from                         string
}

func flagsOf(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("turns", flag.ContinueOnError)
	flags.StringVar(&o.workloads, "workloads", "W1,W2,W3,W4,W5,W6,W7,W8,W9,W10", "which workloads, by group or by name (W2, W2-200); W4-big only if it is named")
	flags.StringVar(&o.systems, "systems", "", "which systems of the table; all of them if it is empty")
	flags.StringVar(&o.also, "also", "", "further systems, NAME=PROGRAM,…, under W1 to W4: a program that takes run -system NAME -workload W1 -upstream URL -times 1 and prints a result as JSON")
	flags.StringVar(&o.peers, "peers", "", "programs whose systems are others', PROGRAM,…, under W1, W2-200, W3 and W4; ./scripts/bench builds its own and needs no value here. At the end is what Pawl costs beside the best of them")
	flags.IntVar(&o.pairs, "pairs", 5, "how often each comparison is made")
	flags.Float64Var(&o.times, "times", 1, "how much longer the workloads are: turns of a session, pieces of an answer, or sessions at once")
	flags.BoolVar(&o.growth, "growth", false, "also measure W1, W3 and W4 at 1, 2, 4 and 8 times their size, and say how the cost grows")
	flags.StringVar(&o.tls, "tls", "", "have the model speak http1 or http2 over TLS, which all systems trust: HTTP/1.1 without TLS if it is empty")
	flags.StringVar(&o.jsonFile, "json", "", "file for all that was measured")
	flags.StringVar(&o.from, "from", "", "measure nothing: print and draw what -json has kept in a file")
	flags.StringVar(&o.svgFile, "svg", "", "file for a drawing of the ratios")
	flags.StringVar(&o.profileTo, "pprof", "", "directory for profiles of every system, SYSTEM-WORKLOAD.cpu.pprof and .allocs.pprof")
	return flags
}

// chosen are the comparisons that are asked for.
func (o *options) chosen(ctx context.Context) ([]row, error) {
	all := rows()
	for _, p := range split(o.also) {
		name, program, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("-also %s: want NAME=PROGRAM", p)
		}
		if _, err := exec.LookPath(program); err != nil && o.from == "" {
			return nil, fmt.Errorf("-also %s: %w", p, err)
		}
		all = append(all, further(name, program)...)
	}
	for _, program := range split(o.peers) {
		peers, err := peersOf(ctx, program)
		if err != nil {
			return nil, fmt.Errorf("-peers: %w", err)
		}
		all = append(all, peers...)
	}
	titles, names := split(o.workloads), split(o.systems)
	known := func(of func(row) string) (out []string) {
		for _, r := range all {
			if !slices.Contains(out, of(r)) {
				out = append(out, of(r))
			}
		}
		return out
	}
	groups, single, those := known(func(r row) string { return r.title }), known(func(r row) string { return r.workload }), known(func(r row) string { return r.system })
	for _, t := range titles {
		if !slices.Contains(groups, t) && !slices.Contains(single, t) {
			return nil, fmt.Errorf("-workloads: there is no %q, but %s, and each workload of them by its own name", t, strings.Join(groups, ", "))
		}
	}
	for _, n := range names {
		if !slices.Contains(those, n) {
			return nil, fmt.Errorf("-systems: there is no %q, but %s", n, strings.Join(those, ", "))
		}
	}
	place := func(r row) int { // in titles; a workload has the name of a group only if it is in it, as W1 is, beside W6
		return slices.IndexFunc(titles, func(t string) bool { return t == r.title || t == r.workload && !slices.Contains(groups, t) })
	}
	all = slices.DeleteFunc(all, func(r row) bool {
		return place(r) < 0 || len(names) > 0 && !slices.Contains(names, r.system)
	})
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(place(a), place(b)) })
	if len(all) == 0 {
		return nil, fmt.Errorf("-workloads %q -systems %q: no row of the table is of both", o.workloads, o.systems)
	}
	return all, nil
}

func split(s string) (all []string) {
	for f := range strings.SplitSeq(s, ",") {
		if f = strings.TrimSpace(f); f != "" {
			all = append(all, f)
		}
	}
	return all
}

// raw is a comparison as -json keeps it.
type raw struct {
	Title    string `json:"title"`
	Workload string `json:"workload"`
	System   string `json:"system"`
	Base     string `json:"base"`
	Pairs    []pair `json:"pairs"`
	Peer     bool   `json:"peer,omitempty"` // the system is somebody else's
	// Best are the figures for which the base is the peer that costs least.
	Best []string `json:"best,omitempty"`
}

// recorded gives the pairs of a file that -json wrote; none for a row that it does not have. It has to have some of those that are chosen.
func recorded(file string, chosen []row) (func(context.Context, row) ([]pair, error), error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return nil, err
	}
	var all []raw
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: want what -json has written: %w", file, err)
	}
	of := func(one raw, r row) bool {
		return one.Title == r.title && one.Workload == r.workload && one.System == r.system && one.Base == r.base
	}
	some := false
	for _, one := range all {
		for i, p := range one.Pairs {
			if one.Title == "W9" && len(p.System.Sizes) == 0 || one.Title != "W9" && p.System.Wall <= 0 {
				return nil, fmt.Errorf("%s: pair %d of %s, %s has no measurement: want what -json has written", file, i+1, one.Workload, one.System)
			}
		}
		some = some || len(one.Pairs) > 0 && slices.ContainsFunc(chosen, func(r row) bool { return of(one, r) })
	}
	if !some {
		return nil, fmt.Errorf("%s: it has nothing of what -workloads and -systems choose; systems of other programs have to be named by -also or -peers", file)
	}
	return func(_ context.Context, r row) ([]pair, error) {
		for _, one := range all {
			if of(one, r) {
				return one.Pairs, nil
			}
		}
		return nil, nil
	}, nil
}

func benchMain(ctx context.Context, args []string, out io.Writer) (err error) {
	var o options
	flags := flagsOf(&o)
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := o.chosen(ctx)
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unknown argument %q", flags.Arg(0))
	case err != nil:
		return err
	case o.pairs < 1 || o.times <= 0:
		return fmt.Errorf("-pairs %d -times %v: want at least one, and more than nothing", o.pairs, o.times)
	}
	if o.from != "" && (o.growth || o.jsonFile != "") {
		return errors.New("-from: there is nothing to measure for -growth, nor to keep by -json")
	}
	if o.tls != "" && o.tls != "http1" && o.tls != "http2" {
		return fmt.Errorf("-tls %s: want http1 or http2", o.tls)
	}
	if o.profileTo != "" {
		if o.profileTo, err = filepath.Abs(o.profileTo); err != nil {
			return err
		}
		if err := os.MkdirAll(o.profileTo, 0o750); err != nil {
			return err
		}
	}
	b := &bench{pairs: o.pairs, times: o.times, profiles: o.profileTo, models: map[time.Duration]*child.Process{}, tls: o.tls}
	defer func() {
		if ended := b.end(); ctx.Err() == nil { // else it is interrupted as all is, and nothing more has to be said
			err = errors.Join(err, ended)
		}
	}()
	if o.tls != "" {
		if b.ca, err = newAuthority(); err != nil {
			return err
		}
	}

	compare := b.compare
	if o.from != "" {
		if compare, err = recorded(o.from, chosen); err != nil {
			return err
		}
	}

	for _, file := range []string{o.jsonFile, o.svgFile} { // before minutes are spent on what can't be kept
		if err := writable(file); err != nil {
			return err
		}
	}

	head(out)
	var failed error
	var lines []line
	var all []raw
	total := map[[2]string]float64{} // CPU, by workload and system
	for _, r := range chosen {
		pairs, err := compare(ctx, r)
		if err != nil {
			if ctx.Err() != nil {
				return errors.Join(fmt.Errorf("interrupted: %w", ctx.Err()), o.keep(all))
			}
			failed = errors.Join(failed, err)
			continue
		}
		if len(pairs) == 0 {
			continue // of a file that has other rows
		}
		all = append(all, raw{Title: r.title, Workload: r.workload, System: r.system, Base: r.base, Pairs: pairs, Peer: r.peer})
		for _, l := range r.lines(pairs) {
			lines = append(lines, l)
			l.print(out)
			if l.name == cpuTurn.name {
				total[[2]string{r.workload, r.system}], total[[2]string{r.workload, r.base}] = l.system.middle, l.base.middle
			}
		}
	}
	for _, system := range []string{"f1", "f3", "pawl-memory"} {
		few, many := total[[2]string{"W2-200", system}], total[[2]string{"W2-400", system}]
		if few > 0 && many > 0 {
			target, mark := "-", ""
			if system == "pawl-memory" {
				if target = "1.15"; load.Exponent(few*200, many*400) > 1.15 {
					mark = "ABOVE"
				}
			}
			fmt.Fprintf(out, format, "W2", system, "exponent, 200 to 400", short(load.Exponent(few*200, many*400)), "-", "-", "-", "-", target, mark)
		}
	}
	beside, more, err := besidePeers(ctx, compare, lines, out)
	lines, all = append(lines, beside...), append(all, more...)
	if ctx.Err() != nil {
		return errors.Join(fmt.Errorf("interrupted: %w", ctx.Err()), o.keep(all))
	}
	failed = errors.Join(failed, err)
	if o.growth {
		failed = errors.Join(failed, b.grow(ctx, out))
	}
	failed = errors.Join(failed, o.keep(all))
	if o.svgFile != "" {
		failed = errors.Join(failed, os.WriteFile(o.svgFile, draw(lines), 0o644)) //nolint:gosec // no secret
	}
	return failed
}

// keep writes what was measured, if there is a file for it.
func (o *options) keep(all []raw) error {
	if o.jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.jsonFile, text, 0o644) //nolint:gosec // no secret
}

// writable says why a file can't be written, and leaves what is in it.
func writable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // the caller names it, and it is no secret
	if err != nil {
		return err
	}
	return f.Close()
}

// grow measures what workloads cost at growing sizes.
func (b *bench) grow(ctx context.Context, out io.Writer) error {
	const format = "%-12s %-12s %10s %10s %10s %10s %9s\n"
	fmt.Fprintf(out, "\nCPU of all sessions, in ms\n"+format, "workload", "system", "n", "2n", "4n", "8n", "exponent")
	var failed error
	for _, workload := range []string{"W1", "W3", "W4"} {
		for _, system := range []string{"f1", "f3", "pawl-memory"} {
			var costs []float64
			cells := []any{workload, system}
			for _, times := range []float64{1, 2, 4, 8} {
				grown := *b
				grown.times = b.times * times
				var each []float64
				for range b.pairs {
					r, err := grown.run(ctx, "", system, workload)
					if err != nil {
						failed = errors.Join(failed, err)
						continue
					}
					each = append(each, us(r.CPU)/1000)
				}
				if len(each) == 0 {
					return failed
				}
				costs = append(costs, spreadOf(each).middle)
				cells = append(cells, short(costs[len(costs)-1]))
			}
			fmt.Fprintf(out, format, append(cells, fmt.Sprintf("%.2f", slope(costs)))...)
		}
	}
	return failed
}

// slope is the exponent of a cost at sizes that double: the least squares' line through its logarithms.
func slope(costs []float64) float64 {
	mid := float64(len(costs)-1) / 2
	var up, down float64
	for i, c := range costs {
		x := float64(i) - mid
		up, down = up+x*math.Log2(c), down+x*x
	}
	return up / down
}
