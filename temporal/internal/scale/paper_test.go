package main

import (
	"cmp"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const page = "../../../docs/scale.md"

// The tables of the page are those that come of the costs on record.
func TestThePageHasTheTables(t *testing.T) {
	needAll(t)
	c, err := measured()
	must(t, err)
	b, err := os.ReadFile(page)
	must(t, err)
	text := string(b)
	for _, tab := range tables(c) {
		before, rest, ok := strings.Cut(text, "<!-- table "+tab.name+" -->\n")
		if !ok {
			t.Errorf("the page has no table %s", tab.name)
			continue
		}
		after := rest
		for strings.HasPrefix(after, "|") {
			_, after, _ = strings.Cut(after, "\n")
		}
		was := strings.TrimSuffix(rest, after)
		if was == tab.text {
			continue
		}
		if !*update {
			t.Errorf("the table %s of the page is\n%s\nand the costs make it\n%s", tab.name, was, tab.text)
		}
		text = before + "<!-- table " + tab.name + " -->\n" + tab.text + after
	}
	if n := strings.Count(text, "<!-- table "); n != len(tables(c)) {
		t.Errorf("the page has %d tables", n)
	}
	if *update {
		must(t, os.WriteFile(page, []byte(text), 0o644))
	}
}

// What the page says beside its tables, in its own words.
func TestThePageSaysWhatIsReckoned(t *testing.T) {
	needAll(t)
	c, err := measured()
	must(t, err)
	b, err := os.ReadFile(page)
	must(t, err)
	text := strings.Join(strings.Fields(string(b)), " ")
	l := usual
	run := l.run(c)
	one, ten := l, l
	one.Workers, ten.Workers = 1, 10
	first, _ := one.breaks(c)
	second, _ := ten.breaks(c)
	cells, workers := Load{Sessions: 1_000_000, Active: 0.1, Runs: l.Runs, Steps: l.Steps, Model: l.Model, Tool: l.Tool, Approvals: l.Approvals, Answer: l.Answer}.cells(c)
	cold := Load{Workers: 10}.cold(run.Activities, 5000)
	for _, says := range []string{
		"about " + short(math.Round(run.Entries)) + " rows, " + bytes(run.Disk) + " of disk",
		short(math.Round(run.Actions)) + " actions",
		"One worker with its defaults has an end at about " + short(math.Round(first/100)*100) + " runs",
		"one database at about " + short(math.Round(second/100)*100),
		short(float64(cells)) + " cells of " + short(float64(workers)) + " workers",
		short(math.Round(100*cold)) + "% of effects",
		"that is " + parts(share(l, c, 1)) + " with one worker, and " + parts(share(l, c, 10)) + " with ten",
		"500 actions a second, which is about " + short(math.Round(cloudActions/run.Actions*l.works().Seconds()/10)*10) + " runs",
		"a run of ten steps in its hands about " + bytes(math.Round((c.Open+10*c.OpenPerStep)/1e4)*1e4),
		"about " + bytes(math.Round((c.Kept+10*c.KeptPerStep)/1e4)*1e4) + " for as many steps",
		"which are about " + short(math.Round(8000/float64(c.Step.Events)/10)*10) + " steps",
	} {
		if !strings.Contains(text, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
}

// share is what leases are of the transactions of a run.
func share(l Load, c Costs, workers int) float64 {
	l.Workers = workers
	run := l.run(c)
	return 1 - float64(c.Answer.Appends+l.Steps*c.Step.Appends)/run.Commits
}

// parts says a share as people do.
func parts(share float64) string {
	names := []string{"nothing", "a tenth", "a fifth", "three in ten", "four in ten", "half"}
	return names[int(math.Round(share*10))]
}

// The same load walked through twice takes the same times; up to what is reckoned that it can do, it is done without queues, and beyond there are some.
func TestWhatIsWalkedThroughIsWhatIsReckoned(t *testing.T) {
	needAll(t)
	c, err := measured()
	must(t, err)
	for _, workers := range []int{1, 10} {
		l := usual
		l.Workers, l.Approvals = workers, 0
		active, what := l.breaks(c)
		at := func(part float64) (Times, float64) {
			l.Sessions, l.Active = int(active*part*100), 0.01
			return simulate(l, c, cluster, simulated(l.Sessions), 7), l.demand(c).Second.Activities
		}
		below, asked := at(0.8)
		again, _ := at(0.8)
		if below != again {
			t.Errorf("%d workers: %+v, and again %+v", workers, below, again)
		}
		if below.P99 > 500*time.Millisecond || below.Done < 0.9*asked {
			t.Errorf("%d workers at 80%% of what breaks %s: %+v, of %.0f a second", workers, what.Name, below, asked)
		}
		beyond, asked := at(1.4)
		if beyond.Mean < 5*below.Mean || beyond.Done > 0.95*asked {
			t.Errorf("%d workers at 140%% of what breaks %s: %+v, of %.0f a second", workers, what.Name, beyond, asked)
		}
	}
}

// Whatever can run out does, where there is enough of all the rest.
func TestEverythingCanBeWhatBreaksFirst(t *testing.T) {
	needAll(t)
	c, err := measured()
	must(t, err)
	for name, l := range map[string]Load{
		"connections to PostgreSQL":        {Workers: 100, Sessions: 100, Active: 0.1},
		"processors of PostgreSQL":         {Workers: 10, Sessions: 1_000_000, Active: 0.01},
		"polls of the workers":             {Workers: 1, Sessions: 900, Active: 1, Model: time.Second, Tool: time.Millisecond},
		"effects at a time in the workers": {Workers: 1, Sessions: 2000, Active: 1, Model: time.Minute},
		"bytes read from PostgreSQL":       {Workers: 5, Sessions: 3000, Active: 1, Runs: 1000},
		"workflows in the workers' caches": {Workers: 1, Sessions: 500, Active: 1, Approvals: 1, Answer: 24 * time.Hour},
		"pollers of a Temporal namespace":  {Workers: 3_000, Sessions: 1, Active: 1},
	} {
		if l.Model == 0 {
			l.Model = usual.Model
		}
		l.Runs, l.Steps, l.Tool = max(l.Runs, 1), usual.Steps, cmp.Or(l.Tool, usual.Tool)
		found := false
		for _, r := range l.resources(c) {
			found = found || r.Name == name && r.Share() > 1
		}
		if first := first(l.resources(c)); !found || first.Name != name && name != "pollers of a Temporal namespace" {
			t.Errorf("%s: %s is first, with %.2f", name, first.Name, first.Share())
		}
	}
}

// How often an effect is heard of is what was measured.
func TestHeartbeatsAreReckonedAsMeasured(t *testing.T) {
	needAll(t)
	c, err := measured()
	must(t, err)
	if len(c.Heartbeats) != 2 {
		t.Fatal(c.Heartbeats)
	}
	for _, b := range c.Heartbeats {
		if n := beats(time.Duration(b.Timeouts*float64(heartbeat)), heartbeat); n != b.Sent {
			t.Errorf("an effect of %v timeouts: reckoned %d, measured %d", b.Timeouts, n, b.Sent)
		}
	}
}

// The command of the page gives the tables for that load.
func TestTheProgramReckonsALoad(t *testing.T) {
	needAll(t)
	b, err := os.ReadFile(page)
	must(t, err)
	_, command, _ := strings.Cut(string(b), "go run ./internal/scale ")
	command, _, _ = strings.Cut(command, "`")
	program := filepath.Join(t.TempDir(), "scale")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, strings.Fields(command)...).CombinedOutput()
	must(t, err)
	for _, says := range []string{"| of them with a run under way | 5000 |", "processors of PostgreSQL", "| 10 | ", "effects a second; one takes"} {
		if !strings.Contains(string(out), says) {
			t.Errorf("it does not say %q:\n%s", says, out)
		}
	}
	var ended *exec.ExitError
	if err := exec.Command(program, "-active", "0").Run(); !errors.As(err, &ended) || ended.ExitCode() != 2 {
		t.Errorf("a load that is none: %v", err)
	}
}

func TestALoadThatIsNoneIsRefused(t *testing.T) {
	needAll(t)
	for _, l := range []Load{{}, {Workers: 1, Sessions: 1, Runs: 1}, {Workers: 1, Sessions: 1, Runs: 1, Active: 2, Model: 1}, {Workers: 1, Sessions: 1, Runs: 1, Active: 1}} {
		if l.check() == nil {
			t.Errorf("%+v", l)
		}
	}
	l := usual
	l.Workers, l.Sessions = 1, 1
	must(t, l.check())
}
