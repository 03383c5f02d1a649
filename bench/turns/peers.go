package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pawl-dev/pawl/bench/internal/load"
)

// measured is what is said of a system in another program, under a workload.
type measured struct {
	workload string
	figures  []metric
}

var (
	furtherly = []measured{
		{"W1", []metric{cpuTurn, allocTurn, bytesTurn}},
		{"W2-200", []metric{cpuTurn, growth}},
		{"W2-400", []metric{cpuTurn, growth}},
		{"W3", []metric{cpuPiece, allocPiece}},
		{"W3-flushed", []metric{cpuPiece, allocPiece}},
		{"W4", []metric{cpuTurn, resident, retained}},
	}
	peerly = []measured{ // each figure that a line of Pawl's has there
		{"W1", []metric{cpuTurn, allocTurn, bytesTurn, wallTurn}},
		{"W2-200", []metric{cpuTurn, growth, allocTurn}},
		{"W3", []metric{cpuPiece, allocPiece}},
		{"W4", []metric{cpuTurn, resident, retained, wall}},
	}
)

// further are the comparisons of a system in another program.
func further(name, program string) []row { return rowsOf(furtherly, name, program, "f1") }

func rowsOf(what []measured, name, program, base string) (all []row) {
	for _, m := range what {
		r := row{title: m.workload[:2], workload: m.workload, system: name, base: base, program: program}
		for _, f := range m.figures {
			r.wants = append(r.wants, want{f, 0})
		}
		all = append(all, r)
	}
	return all
}

// floors are the loops by hand that speak a peer's wire.
var floors = map[string]string{"anthropic": "f1", "chat": "f1-openai"}

// peersOf are the comparisons of the peers that a program has.
func peersOf(ctx context.Context, program string) (all []row, err error) {
	peers, err := load.PeersOf(ctx, program)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		base, ok := floors[p.Wire]
		if !ok {
			return nil, fmt.Errorf("%s: %s speaks %q, which no floor does", program, p.Name, p.Wire)
		}
		if systems[base] == nil {
			base = "f1"
		}
		for _, r := range rowsOf(peerly, p.Name, program, base) {
			r.peer = true
			all = append(all, r)
		}
	}
	return all, nil
}

// best is what Pawl costs beside the peer that costs least. Both figures are the middle of their own pairs, in one run.
type best struct {
	row   row
	What  string  `json:"what"` // with its unit
	Pawl  float64 `json:"pawl"`
	Peer  string  `json:"peer"` // which one costs least
	Least float64 `json:"least"`
	Ratio float64 `json:"ratio"`
}

// beside finds the best peer for each figure of Pawl's.
func beside(lines []line) (all []best) {
	for _, l := range lines {
		if l.peer || !strings.HasPrefix(l.row.system, "pawl") {
			continue
		}
		var least *line
		for i, p := range lines {
			if p.peer && p.title == l.title && p.workload == l.workload && p.name == l.name && (least == nil || p.system.middle < least.system.middle) {
				least = &lines[i]
			}
		}
		if least != nil {
			all = append(all, best{l.row, l.what(), l.system.middle, least.row.system, least.system.middle, l.system.middle / least.system.middle})
		}
	}
	return all
}

// besideOf are those of a comparison. JSON has no number for a ratio to nothing.
func besideOf(all []best, r raw) (its []best) {
	for _, b := range all {
		if b.row.title == r.Title && b.row.workload == r.Workload && b.row.system == r.System && !math.IsNaN(b.Ratio) && !math.IsInf(b.Ratio, 0) {
			its = append(its, b)
		}
	}
	return its
}

func printBests(out io.Writer, all []best) {
	if len(all) == 0 {
		return
	}
	const format = "%-12s %-12s %-20s %10s %10s %-11s %7s\n"
	fmt.Fprintf(out, "\n"+format, "workload", "system", "what", "it", "best peer", "which is", "ratio")
	for _, b := range all {
		fmt.Fprintf(out, format, b.row.workload, b.row.system, b.What, short(b.Pawl), short(b.Least), b.Peer, short(b.Ratio))
	}
}
