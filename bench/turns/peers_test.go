package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// script is a program with peers: it says what it is told to, and runs this program's systems.
func script(t *testing.T, peers string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell's script")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "peers")
	text := "#!/bin/sh\nif [ \"$1\" = peers ]; then echo '" + peers + "'; exit; fi\nexec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPawlIsBesideTheBestPeer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	var out bytes.Buffer
	program := script(t, `[{"name":"f1","wire":"anthropic"},{"name":"f3","wire":"anthropic"}]`)
	err := benchMain(t.Context(), []string{"-workloads", "W1,W3,W7", "-systems", "pawl,pawl-memory,pawl-full,f1,f3", "-peers", program, "-pairs", "1", "-times", "0.1", "-json", file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "best peer")
	if !strings.Contains(table, "\nW1           pawl         allocations a turn") || strings.Contains(table, "pawl-full") || strings.Contains(table, "W3-flushed") {
		t.Errorf("%s", out.String())
	}
	var all []raw
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	peers, figures := 0, 0
	for _, r := range all {
		if r.Peer {
			peers++
		}
		for _, b := range r.Beside {
			figures++
			if !strings.HasPrefix(r.System, "pawl") || math.Abs(b.Pawl/b.Least-b.Ratio) > 1e-9 || b.Ratio <= 0 {
				t.Errorf("%+v of %s", b, r.System)
			}
			if b.What == allocTurn.what() && b.Peer != "f3" { // which allocates less than f1, by far
				t.Errorf("%+v", b)
			}
		}
	}
	if peers != 4 || figures != 4+4+2 || strings.Count(table, "\n") != 1+figures {
		t.Errorf("%d peers, %d figures:\n%s", peers, figures, out.String())
	}
}

func TestWhatIsWrongWithAProgramOfPeersIsSaid(t *testing.T) {
	for peers, want := range map[string]string{`[{"name":"x","wire":"morse"}]`: `x speaks "morse"`, `nonsense`: "invalid character"} {
		err := benchMain(t.Context(), []string{"-peers", script(t, peers)}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", peers, err)
		}
	}
	if err := benchMain(t.Context(), []string{"-peers", "/nowhere/peers"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "/nowhere/peers") {
		t.Error(err)
	}
}

func TestTheBestPeerIsTheOneWithTheLeastCost(t *testing.T) {
	of := func(workload, system string, peer bool, m metric, cost float64) line {
		return line{row: row{title: "W1", workload: workload, system: system, peer: peer}, want: want{metric: m}, system: spread{middle: cost}}
	}
	all := beside([]line{
		of("W1", "pawl", false, cpuTurn, 100),
		of("W1", "f3", false, cpuTurn, 50), // a floor is no peer
		of("W1", "slow", true, cpuTurn, 400),
		of("W1", "pawl-old", true, cpuTurn, 300), // a peer, whatever its name
		of("W1", "quick", true, cpuTurn, 200),
		of("W4", "other", true, cpuTurn, 1),   // another workload
		of("W1", "lean", true, allocTurn, 10), // another figure
		of("W1", "pawl", false, bytesTurn, 1), // which no peer has
	})
	if len(all) != 1 || all[0].Peer != "quick" || all[0].Ratio != .5 {
		t.Errorf("%+v", all)
	}
	if its := besideOf(all, raw{Title: "W1", Workload: "W1", System: "pawl"}); len(its) != 1 {
		t.Errorf("%+v", its)
	}
	if its := besideOf(all, raw{Title: "W6", Workload: "W1", System: "pawl"}); len(its) != 0 {
		t.Errorf("%+v", its)
	}
	all[0].Ratio = math.Inf(1)
	if its := besideOf(all, raw{Title: "W1", Workload: "W1", System: "pawl"}); len(its) != 0 {
		t.Errorf("%+v can't be kept as JSON", its)
	}
}
