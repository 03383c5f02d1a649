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
		for _, r := range rowsOf(peerly, p.Name, program, base) {
			r.peer = true
			all = append(all, r)
		}
	}
	return all, nil
}

// bestPeer is the peer that costs least, by the middle of its pairs, for a figure of Pawl's.
func bestPeer(lines []line, its line) (best row, ok bool) {
	if its.peer || !strings.HasPrefix(its.row.system, "pawl") {
		return best, false
	}
	least := math.Inf(1)
	for _, l := range lines {
		if l.peer && l.title == its.title && l.workload == its.workload && l.name == its.name && l.system.middle < least {
			best, least, ok = l.row, l.system.middle, true
		}
	}
	return best, ok
}

// besidePeers compares Pawl with the best peer of each of its figures, in pairs as everything is compared: two figures that were measured minutes apart say as much about the machine.
func besidePeers(ctx context.Context, compare func(context.Context, row) ([]pair, error), lines []line, out io.Writer) (its []line, all []raw, err error) {
	made := map[[3]string]int{} // where a comparison is in all
	for _, l := range lines {
		peer, ok := bestPeer(lines, l)
		if !ok {
			continue
		}
		r := l.row
		r.base, r.baseProgram, r.wants = peer.system, peer.program, []want{{l.metric, 0}}
		key := [3]string{r.workload, r.system, r.base}
		i, ok := made[key]
		if !ok {
			pairs, err := compare(ctx, r)
			if err != nil {
				return its, all, err
			}
			if len(pairs) == 0 {
				continue // of a file that has other rows
			}
			if i = len(all); i == 0 {
				fmt.Fprintln(out, "\nbeside the peer that costs least")
				head(out)
			}
			made[key] = i
			all = append(all, raw{Title: r.title, Workload: r.workload, System: r.system, Base: r.base, Pairs: pairs})
		}
		all[i].Best = append(all[i].Best, l.what())
		its = append(its, r.lines(all[i].Pairs)...)
		its[len(its)-1].print(out)
	}
	return its, all, nil
}
