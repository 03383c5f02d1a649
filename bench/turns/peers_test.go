package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// script is a program with peers: it says what it is told to, and runs this program's systems; "theirs" is f3, which is no name that this program knows.
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
	text := "#!/bin/sh\nif [ \"$1\" = peers ]; then echo '" + peers + "'; exit; fi\nif [ \"$3\" = theirs ]; then shift 3; set -- run -system f3 \"$@\"; fi\nexec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPawlIsComparedWithTheBestPeer(t *testing.T) {
	tier.SkipUnlessAll(t, "it measures thirty rows")
	dir := t.TempDir()
	var out bytes.Buffer
	program := script(t, `[{"name":"f1","wire":"anthropic"},{"name":"theirs","wire":"anthropic"}]`)
	err := benchMain(t.Context(), []string{
		"-workloads", "W1,W3,W7", "-systems", "pawl,pawl-memory,pawl-full,f1,theirs", "-peers", program, "-pairs", "2", "-times", "0.1",
		"-json", filepath.Join(dir, "a.json"), "-svg", filepath.Join(dir, "a.svg"),
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "beside the peer that costs least\n")
	if n := strings.Count(table, "\n"); n != 1+4+4+2 || strings.Contains(table, "pawl-full") || strings.Contains(table, "W3-flushed") {
		t.Errorf("%d lines, want a head, four for each of pawl and pawl-memory in W1, and two in W3:\n%s", n, out.String())
	}
	for _, want := range []string{`W1 +pawl +allocations a turn +[0-9. ]+ theirs `, `W1 +pawl-memory +allocated a turn, KB +[0-9. ]+ theirs `, `W3 +pawl-memory +allocations a delta +[0-9. ]+ theirs `} { // which allocates less than f1, by far
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("no line is %q:\n%s", want, table)
		}
	}
	var all []raw
	b, err := os.ReadFile(filepath.Join(dir, "a.json"))
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
		figures += len(r.Best)
		if len(r.Best) > 0 && (!strings.HasPrefix(r.System, "pawl") || len(r.Pairs) != 2 || r.Pairs[0].Base.System != map[string]string{"f1": "f1", "theirs": "f3"}[r.Base] || r.Pairs[1].System.System != r.System) {
			t.Errorf("%+v", r)
		}
	}
	if peers != 2*2 || figures != 4+4+2 {
		t.Errorf("%d lines of peers, %d figures of Pawl's", peers, figures)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.svg")); err != nil || strings.Count(string(b), ">W1, pawl<") != 2 { // beside f1, and beside a peer
		t.Errorf("%v: %s", err, b)
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
	all := []line{
		of("W1", "pawl", false, cpuTurn, 100),
		of("W1", "f3", false, cpuTurn, 50), // a floor is no peer
		of("W1", "slow", true, cpuTurn, 400),
		of("W1", "pawl-old", true, cpuTurn, 300), // a peer, whatever its name
		of("W1", "quick", true, cpuTurn, 200),
		of("W4", "other", true, cpuTurn, 1),   // another workload
		of("W1", "lean", true, allocTurn, 10), // another figure
		of("W1", "pawl", false, bytesTurn, 1), // which no peer has
	}
	for i, l := range all {
		if best, ok := bestPeer(all, l); ok != (i == 0) || ok && best.system != "quick" {
			t.Errorf("line %d: %+v, %v", i, best, ok)
		}
	}
}
