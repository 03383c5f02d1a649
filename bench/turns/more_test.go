package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/bench/internal/load"
	"github.com/pawl-dev/pawl/bench/internal/upstream"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

// most is how many modules the program of a small agent is made of, besides its own. It may only become less: the target is 4.
const most = 7

func TestTheProgramsThatAreSpawnedAreAgents(t *testing.T) {
	tier.SkipUnlessAll(t, "it builds four programs")
	b := &bench{pairs: 1, times: 1}
	defer func() {
		if err := b.end(); err != nil {
			t.Error(err)
		}
	}()
	url := upstreamOf(t)
	d := upstream.Directive{Turns: 3, Tool: load.Tool, Par: 1, Deltas: 2}
	for system, modules := range map[string]int{"ready-hello": 0, "ready-floor": 0, "ready-agent": most, "ready-root": 1000} {
		r, err := spawn(t.Context(), b, system)
		if err != nil {
			t.Fatal(err)
		}
		if r.Size < 1e6 || r.Wall <= 0 || r.Modules > modules || (r.Modules > 0) != strings.Contains("ready-agent ready-root", system) {
			t.Errorf("%+v", r)
		}
		if system == "ready-hello" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(b.programs, strings.TrimPrefix(system, "ready-")), "Please do it: "+d.String())
		cmd.Env = append(os.Environ(), "UPSTREAM="+url)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != upstream.Answer(d)+"\n" {
			t.Errorf("%s: %s, %v", system, out, err)
		}
	}
	// What hooks and tools of commands need is in a package that every agent imports, and in the programs of those only who use it.
	text, err := os.ReadFile(filepath.Join(b.programs, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]bool{"pawl/agent.Run": true, "pawl/internal/shell.(*reader)": false, "pawl/hook/internal/permit.(*World)": false, "mvdan.cc/sh/v3/syntax.(*Parser)": false, "net/http/httputil.(*ReverseProxy)": false} {
		if bytes.Contains(text, []byte(name)) != in {
			t.Errorf("the program has %s: %v, want %v", name, !in, in)
		}
	}
}

func TestASystemThatIsNotReadyIsAnError(t *testing.T) {
	dir := t.TempDir()
	b := &bench{programs: dir}
	if _, err := spawn(t.Context(), b, "ready-none"); err == nil {
		t.Error("there is none")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test"), self, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PAWL_BENCH_FAIL", "1")
	if _, err := spawn(t.Context(), b, "ready-test"); err == nil || !strings.Contains(err.Error(), "was not ready") {
		t.Error(err)
	}
}

// By allocations, which are exact, and not by times.
func TestComingBackCostsInProportionAndAForkNothingMore(t *testing.T) {
	tier.SkipUnlessAll(t, "it measures four sizes of journals")
	b := &bench{pairs: 1, times: .02}
	for _, r := range keptRows() {
		got, err := r.once(t.Context(), b, "", r.system)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(got.Sizes) != 4 || got.Sizes[0].Size != 200 || got.Sizes[3].Size != 1600 || got.Sizes[3].Wall <= 0 || got.Sizes[0].Bytes == 0 {
			t.Errorf("%s, %s: %+v", r.workload, r.system, got.Sizes)
		}
		of := grows(func(s load.Sized) float64 { return float64(s.Bytes) })(got)
		if most := map[bool]float64{true: .1, false: 1.15}[r.workload == "W9-fork"]; of > most && !raced.Enabled {
			t.Errorf("%s, %s: allocations grow with the exponent %.2f, want %.2f: %+v", r.workload, r.system, of, most, got.Sizes)
		}
	}
	for _, args := range [][]string{{"-act", "W9-none"}, {"-act", "W9-open", "-store", "none"}, {"-x"}} {
		if err := keptMain(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

func TestTheOtherWiresAreInTheTable(t *testing.T) {
	var out bytes.Buffer
	if err := benchMain(t.Context(), []string{"-workloads", "W1,W3", "-systems", "pawl-openai,pawl-responses,pawl-gemini", "-pairs", "1", "-times", "0.02"}, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1+3*3+3*2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

func TestTheModelSpeaksOverTLS(t *testing.T) {
	tier.SkipUnlessAll(t, "it measures eight rows")
	trusted := os.Getenv(trust)
	for _, protocol := range []string{"http1", "http2"} { // which it fails if requests come by the other one
		var out bytes.Buffer
		if err := benchMain(t.Context(), []string{"-tls", protocol, "-workloads", "W1,W3", "-systems", "f3,pawl,pawl-memory,pawl-gemini", "-pairs", "1", "-times", "0.02"}, &out); err != nil {
			t.Error(protocol, err)
		}
		if os.Getenv(trust) != trusted {
			t.Error("it still trusts the benchmark's own")
		}
	}
	b := &bench{tls: "http2"}
	if err := b.spoke(upstream.Counts{}, upstream.Counts{Requests: 2, HTTP2: 1}); err == nil || !strings.Contains(err.Error(), "1 of 2") {
		t.Error(err)
	}
}

func TestATableIsPrintedAndDrawnAgainOfWhatWasKept(t *testing.T) {
	tier.SkipUnlessAll(t, "it builds a program, and measures")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	rows := []string{"-workloads", "W1,W5,W9", "-systems", "pawl-memory,ready-agent"}
	var first, again bytes.Buffer
	if err := benchMain(t.Context(), append(rows, "-pairs", "1", "-times", "0.01", "-json", file("a.json"), "-svg", file("a.svg")), &first); err != nil {
		t.Fatal(err)
	}
	if err := benchMain(t.Context(), append(rows, "-from", file("a.json"), "-svg", file("b.svg")), &again); err != nil {
		t.Fatal(err)
	}
	if first.String() != again.String() {
		t.Errorf("%s\nwant\n%s", again.String(), first.String())
	}
	for _, want := range []string{"\nW5           ready-agent    stripped size, MB", "7.00", "\nW5           ready-agent    modules ", "\nW9-fork      pawl-memory    allocated, exponent", "0.10"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, first.String())
		}
	}
	a, err := os.ReadFile(file("a.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file("b.svg")); err != nil || !bytes.Equal(a, b) || !bytes.Contains(a, []byte("W1, pawl-memory")) {
		t.Error(err, "the drawing is another one")
	}
	var all []raw
	text, err := os.ReadFile(file("a.json"))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || all[1].Title != "W5" || len(all[1].Pairs) != 4 || all[1].Pairs[0].System.Size < 1e6 || len(all[2].Pairs) != 1 {
		t.Error(err, len(all))
	}
	if err := benchMain(t.Context(), []string{"-from", file("none.json")}, &again); err == nil {
		t.Error("there is no such file")
	}
}
