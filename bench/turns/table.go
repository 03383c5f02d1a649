package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/bench/internal/child"
	"github.com/pawl-dev/pawl/bench/internal/load"
)

// metric is a figure of a result.
type metric struct {
	name, unit string
	of         func(load.Result) float64
	relative   bool // the target is for the ratio to the base, and not for the figure
}

var (
	cpuTurn    = metric{"CPU a turn", "µs", func(r load.Result) float64 { return r.PerTurn(us(r.CPU)) }, true}
	cpuPiece   = metric{"CPU a delta", "ns", func(r load.Result) float64 { return r.PerPiece(float64(r.CPU)) }, true}
	allocTurn  = metric{"allocations a turn", "", func(r load.Result) float64 { return r.PerTurn(float64(r.Allocs)) }, false}
	allocPiece = metric{"allocations a delta", "", func(r load.Result) float64 { return r.PerPiece(float64(r.Allocs)) }, false}
	bytesTurn  = metric{"allocated a turn", "KB", func(r load.Result) float64 { return r.PerTurn(float64(r.Bytes)) / 1024 }, false}
	wallTurn   = metric{"wall time a turn", "µs", func(r load.Result) float64 { return r.PerTurn(us(r.Wall)) }, true}
	wall       = metric{"wall time", "ms", func(r load.Result) float64 { return us(r.Wall) / 1000 }, true}
	growth     = metric{"last 20 ÷ first 20", "", func(r load.Result) float64 { return float64(r.Last20) / float64(max(1, r.First20)) }, false}
	resident   = metric{"peak a session", "KB", func(r load.Result) float64 { return r.PerSession(float64(r.Peak-r.Base)) / 1024 }, false}
	retained   = metric{"retained a session", "KB", func(r load.Result) float64 { return r.PerSession(float64(r.Retained)) / 1024 }, false}
	late50     = metric{"sent to heard, p50", "µs", func(r load.Result) float64 { return us(r.Late50) }, true}
	late99     = metric{"sent to heard, p99", "µs", func(r load.Result) float64 { return us(r.Late99) }, true}
)

// what is the name with the unit.
func (m metric) what() string {
	if m.unit == "" {
		return m.name
	}
	return m.name + ", " + m.unit
}

func us(d time.Duration) float64 { return float64(d) / 1000 }

// want is a metric, with what it is to be at most; 0: it is only reported.
type want struct {
	metric
	target float64
}

// row is a comparison: a system under a workload, and the base that is run right before it.
type row struct {
	title, workload, system, base string
	program                       string // that the system is in; "": this one
	baseProgram                   string // and that the base is in
	peer                          bool   // it is somebody else's: see [bestPeer]
	wants                         []want
	measure                       func(ctx context.Context, b *bench, system string) (load.Result, error) // nil: the system runs the workload
	more                          float64                                                                 // so many times as many pairs; 0 is 1
}

// rows are all comparisons, in the order of the table.
func rows() []row {
	var all []row
	add := func(title, workload, system, base string, wants ...want) {
		all = append(all, row{title: title, workload: workload, system: system, base: base, wants: wants})
	}
	for _, floor := range []string{"f0", "f3"} {
		add("W1", "W1", floor, "f1", want{cpuTurn, 0}, want{allocTurn, 0}, want{bytesTurn, 0})
	}
	add("W1", "W1", "pawl", "f1", want{cpuTurn, 0.60}, want{allocTurn, 90}, want{bytesTurn, 0}, want{wallTurn, 0})
	add("W1", "W1", "pawl-memory", "f1", want{cpuTurn, 0.70}, want{allocTurn, 110}, want{bytesTurn, 0}, want{wallTurn, 0})
	all = append(all, wireRows()...)
	for _, n := range []struct {
		name   string
		target float64
	}{{"W2-200", 0.45}, {"W2-400", 0.35}} {
		add("W2", n.name, "f3", "f1", want{cpuTurn, 0}, want{growth, 0})
		add("W2", n.name, "pawl-memory", "f1", want{cpuTurn, n.target}, want{growth, 1.5}, want{allocTurn, 0})
	}
	for _, n := range []struct {
		name        string
		cpu, allocs float64
	}{{"W3", 0.20, 0.1}, {"W3-flushed", 0.95, 0.1}} {
		add("W3", n.name, "f3", "f1", want{cpuPiece, 0}, want{allocPiece, 0})
		add("W3", n.name, "pawl-memory", "f1", want{cpuPiece, n.cpu}, want{allocPiece, n.allocs})
	}
	add("W4", "W4", "f3", "f1", want{cpuTurn, 0}, want{resident, 0}, want{retained, 0})
	add("W4", "W4", "pawl", "f1", want{cpuTurn, 0.55}, want{resident, 80}, want{retained, 8}, want{wall, 0})
	add("W4", "W4", "pawl-memory", "f1", want{cpuTurn, 0.55}, want{resident, 80}, want{retained, 0})
	add("W4-big", "W4-big", "pawl", "f1", want{cpuTurn, 0}, want{resident, 64}, want{wall, 0})
	all = append(all, readyRows()...)
	add("W6", "W1", "pawl-sqlite", "f3-sqlite", want{cpuTurn, 1.25}, want{wallTurn, 0})
	add("W6", "W4", "pawl-sqlite", "f3-sqlite", want{cpuTurn, 1.25}, want{wall, 0})
	add("W7", "W1", "pawl-full", "pawl-memory", want{cpuTurn, 1.3}, want{allocTurn, 0})
	for _, name := range []string{"W8-parallel", "W8-results", "W8-image"} {
		add("W8", name, "f3", "f1", want{cpuTurn, 0}, want{bytesTurn, 0})
		add("W8", name, "pawl-memory", "f1", want{cpuTurn, 0.5}, want{bytesTurn, 0})
	}
	all = append(all, keptRows()...)
	add("W10", "W10", "f3", "f1", want{late50, 0}, want{late99, 0})
	add("W10", "W10", "pawl-memory", "f1", want{late50, 0}, want{late99, 0})
	return all
}

// pair is one comparison, made once.
type pair struct {
	Base   load.Result `json:"base"`
	System load.Result `json:"system"`
}

// bench makes comparisons.
type bench struct {
	pairs    int
	times    float64 // how much longer workloads are
	profiles string
	models   map[time.Duration]*child.Process // upstreams, by their latency
	tls      string                           // what upstreams speak over TLS: http1 or http2; "": HTTP/1.1 without
	ca       *authority                       // their certificate; nil without TLS
	programs string                           // where those of W5 were built; "": nowhere yet
}

// compare makes one comparison several times: base, system, base, system.
func (b *bench) compare(ctx context.Context, r row) (all []pair, err error) {
	for range max(1, int(float64(b.pairs)*cmp.Or(r.more, 1))) {
		var p pair
		if r.base != "" {
			if p.Base, err = r.once(ctx, b, r.baseProgram, r.base); err != nil {
				return all, err
			}
		}
		if p.System, err = r.once(ctx, b, r.program, r.system); err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (r row) once(ctx context.Context, b *bench, program, system string) (load.Result, error) {
	if r.measure != nil {
		return r.measure(ctx, b, system)
	}
	return b.run(ctx, program, system, r.workload)
}

// run measures a system in a process of its own.
func (b *bench) run(ctx context.Context, program, system, workload string) (r load.Result, err error) {
	w, err := load.Named(workload, b.times)
	if err != nil {
		return r, err
	}
	model := b.models[w.Latency]
	if model == nil {
		args := []string{asUpstream, "-latency", w.Latency.String()}
		if b.ca != nil {
			args = append(args, "-tls", b.tls, "-cert", b.ca.cert(), "-key", b.ca.key())
		}
		if model, err = child.Start(ctx, args...); err != nil {
			return r, err
		}
		b.models[w.Latency] = model
	}
	before, err := b.counts(ctx, model.URL)
	if err != nil {
		return r, err
	}
	args := []string{asRun, "-system", system, "-workload", workload, "-upstream", model.URL, "-times", fmt.Sprint(b.times)}
	if b.profiles != "" {
		args = append(args, "-pprof", b.profiles)
	}
	out, err := child.Run(ctx, program, args...)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("%s: it said %.200q: %w", system, out, err)
	}
	after, err := b.counts(ctx, model.URL)
	if err != nil {
		return r, err
	}
	if least := int64(w.Turns()); after.Refused != before.Refused || after.Requests-before.Requests < least || r.Turns != w.Turns() {
		return r, fmt.Errorf("%s, %s: the model refused %d requests and answered %d, want none and at least %d", system, workload, after.Refused-before.Refused, after.Requests-before.Requests, least)
	}
	if err := b.spoke(before, after); err != nil {
		return r, fmt.Errorf("%s, %s: %w", system, workload, err)
	}
	return r, nil
}

// end ends the upstreams.
func (b *bench) end() (err error) {
	for _, m := range b.models {
		_, ended := m.End()
		err = errors.Join(err, ended)
	}
	if b.programs != "" {
		err = errors.Join(err, os.RemoveAll(b.programs))
	}
	if b.ca != nil {
		err = errors.Join(err, b.ca.end())
	}
	return err
}

// spread is the middle of some figures, the least and the most.
type spread struct{ middle, least, most float64 }

func spreadOf(all []float64) spread {
	slices.Sort(all)
	n := len(all)
	return spread{(all[(n-1)/2] + all[n/2]) / 2, all[0], all[n-1]}
}

// line is what a metric came to.
type line struct {
	row
	want
	base, system spread
	ratio        spread // of the pairs
}

func (r row) lines(all []pair) (out []line) {
	for _, w := range r.wants {
		var base, system, ratio []float64
		for _, p := range all {
			b, s := math.NaN(), w.of(p.System)
			if r.base != "" {
				b = w.of(p.Base)
			}
			base, system, ratio = append(base, b), append(system, s), append(ratio, s/b)
		}
		out = append(out, line{r, w, spreadOf(base), spreadOf(system), spreadOf(ratio)})
	}
	return out
}

// above reports whether a target is missed, by the middle of all pairs.
func (l line) above() bool {
	if l.relative {
		return l.target > 0 && l.ratio.middle > l.target
	}
	return l.target > 0 && l.system.middle > l.target
}

const format = "%-12s %-14s %-21s %10s %10s %-12s %7s %15s %8s %s\n"

func head(out io.Writer) {
	fmt.Fprintf(out, format, "workload", "system", "what", "it", "base", "base is", "ratio", "min..max", "target", "")
}

func (l line) print(out io.Writer) {
	target, mark := "-", ""
	if l.target > 0 {
		if target = short(l.target); l.relative {
			target = "×" + target
		}
		if l.above() {
			mark = "ABOVE"
		}
	}
	ratio, spread, base, baseIs := "-", "-", "-", "-"
	if l.row.base != "" {
		base, baseIs = short(l.base.middle), l.row.base
	}
	if !math.IsNaN(l.ratio.middle) && !math.IsInf(l.ratio.middle, 0) {
		ratio, spread = fmt.Sprintf("%.2f", l.ratio.middle), fmt.Sprintf("%.2f..%.2f", l.ratio.least, l.ratio.most)
	}
	fmt.Fprintf(out, format, l.workload, l.row.system, l.what(), short(l.system.middle), base, baseIs, ratio, spread, target, mark)
}

// short is a figure with three digits or so.
func short(f float64) string {
	switch a := math.Abs(f); {
	case a >= 100:
		return fmt.Sprintf("%.0f", f)
	case a >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}
