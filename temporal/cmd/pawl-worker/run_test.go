package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const work = `
turns:
- text: I work.
  tool_calls: [{id: c1, name: bash, input: {command: "echo one >>ledger; echo did it"}}, {id: c2, name: glob, input: {pattern: "*.none"}}]
  usage: {input_tokens: 10, output_tokens: 5}
- tool_calls: [{id: c3, name: task, input: {agent: general-purpose, prompt: go}}]
- text: Done.
agents:
  general-purpose: {turns: [{tool_calls: [{id: b1, name: bash, input: {command: "echo below >>ledger"}}]}, {text: Did it below.}]}
`

// A run that workers do says the same as one that is done here, and does the same once.
func TestARunSaysTheSameAsHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, work)
	k := w.works()
	if k.ready["agent"] != "pawl" || k.ready["engine"] != "loop" || k.ready["queue"] != "pawl" || k.ready["namespace"] != w.server.Namespace {
		t.Errorf("%v", k.ready)
	}
	there := w.run("--json", "--session", "s", "go")
	if there.code != 0 {
		t.Fatalf("%+v\n%s", there, k.errs)
	}
	if got := w.read("ledger"); got != "one\nbelow\n" {
		t.Errorf("%q", got)
	}
	here := w.pawl("run", "--json", "--session", "s", "go")
	if here.code != 0 {
		t.Fatalf("%+v", here)
	}
	a, b := lines(t, here.out), lines(t, there.out)
	for i, l := range b { // the run's, and that of the task
		if l["type"] == "run.started" && l["engine"] != "temporal:loop" {
			t.Errorf("%v", l)
		} else if l["type"] == "run.started" && i < len(a) {
			l["engine"] = a[i]["engine"]
		}
	}
	if d := cmp.Diff(strings.Split(normal(a), "\n"), strings.Split(normal(b), "\n")); d != "" {
		t.Errorf("-here +there\n%s", d)
	}
	if r := w.run("--session", "t", "go"); r.code != 0 || r.out != "Done.\n" {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != 0 || !strings.Contains(r.out, "completed") {
		t.Errorf("%+v", r)
	}
}

// A graph is a run's path on Temporal as here. The engine that workers have, and the one that is named, are the same.
func TestAGraphOnTemporal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "turns: [{text: One.}, {text: Two.}]")
	w.file("flow.yaml", "name: flow\nentry: a\nnodes: [{id: a, type: model, config: {prompt: A}}, {id: b, type: model, config: {prompt: B}}]\nedges: [{from: a, to: b}, {from: b, to: __end__}]\n")
	w.works("--engine", "graph:flow.yaml")
	r := w.pawl("run", "--engine", w.engine("graph:flow.yaml"), "--journal", w.journal, "--session", "s", "--json", "go")
	if all := lines(t, r.out); r.code != 0 || all[0]["engine"] != "temporal:graph:flow" || all[len(all)-1]["text"] != "Two." {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--engine", "graph:flow.yaml", "--journal", w.journal); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != 2 || !strings.Contains(r.err, "give --engine graph:FILE") {
		t.Errorf("%+v", r)
	}
}

// A worker is killed while a command runs; another one goes on. What had an effect is not done again.
func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
turns:
- tool_calls: [{id: c1, name: bash, input: {command: "echo one >>ledger"}}]
- tool_calls: [{id: c2, name: bash, input: {command: "echo two >>ledger; touch begun; sleep 10"}}]
- tool_calls: [{id: c3, name: bash, input: {command: "echo three >>ledger"}}]
- text: Done.
`)
	first := w.works()
	r, wait := w.begin("run", "--engine", w.engine(), "--journal", w.journal, "--json", "go")
	w.waitFor("begun")
	_ = first.Process.Kill()
	_ = first.Wait()
	w.works()
	wait()
	if r.code != 0 || !strings.Contains(r.out, `"call_id":"c2","name":"bash","is_error":true,"outcome":"unknown"`) {
		t.Errorf("%+v", r)
	}
	if got := w.read("ledger"); got != "one\ntwo\nthree\n" {
		t.Errorf("%q", got)
	}
}

// The process that waits for a run is killed. Another one waits for it, and what was under way is neither lost nor done again.
func TestTheCallerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
turns:
- tool_calls: [{id: c1, name: bash, input: {command: "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo one >>ledger"}}]
- text: Done.
`)
	w.works()
	caller, _, wait := w.start("run", "--engine", w.engine(), "--journal", w.journal, "--session", "s", "go")
	w.waitFor("begun")
	_ = caller.Process.Kill()
	wait()
	if r := w.pawl("resume", "s", "--journal", w.journal); r.code != 2 || !strings.Contains(r.err, "temporal:loop, in processes of its own: give --engine 'temporal://HOST:PORT'") {
		t.Errorf("here: %+v", r)
	}
	r, wait := w.begin("resume", "s", "--engine", w.engine(), "--journal", w.journal)
	w.file("go", "")
	wait()
	if r.code != 0 || r.out != "Done.\n" {
		t.Errorf("%+v", r)
	}
	if got := w.read("ledger"); got != "one\n" {
		t.Errorf("%q", got)
	}
}

// A run that nobody is there for waits on record; each line that is printed can be pasted.
func TestAnApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `turns: [{tool_calls: [{id: c1, name: bash, input: {command: "echo one >>ledger"}}]}, {text: Done.}]`)
	w.works("--ask", "Bash(echo:*)")
	r := w.run("--session", "s", "go")
	at := "--engine '" + w.engine() + "'"
	if r.code != 3 || !strings.Contains(r.err, "pawl approve s c1 "+at) || !strings.Contains(r.err, "then: pawl resume s "+at) {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("approve", "s", "c1", "--journal", w.journal); r.code != 0 || !strings.Contains(r.err, "go on with: pawl resume s --engine temporal://HOST:PORT --journal") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("resume", "s", "--engine", w.engine(), "--journal", w.journal); r.code != 0 || r.out != "Done.\n" {
		t.Errorf("%+v", r)
	}
	if got := w.read("ledger"); got != "one\n" {
		t.Errorf("%q", got)
	}
}

// What the caller forbids binds the run, whatever workers allow.
func TestWhatTheCallerForbids(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `turns: [{tool_calls: [{id: c1, name: bash, input: {command: "echo one >>ledger"}}]}, {text: Done.}]`)
	w.works("--allow", "Bash(echo:*)")
	if r := w.run("--json", "--deny", "Bash(echo:*)", "go"); r.code != 0 || !strings.Contains(r.out, `"outcome":"denied"`) {
		t.Errorf("%+v", r)
	}
}

// Ctrl-C cancels the run where it is done.
func TestAnInterruptCancelsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `turns: [{tool_calls: [{id: c1, name: bash, input: {command: "touch begun; sleep 300; touch over"}}]}, {text: Done.}]`)
	w.works()
	caller, r, wait := w.start("run", "--engine", w.engine(), "--journal", w.journal, "--session", "s", "--json", "go")
	w.waitFor("begun")
	_ = caller.Process.Signal(syscall.SIGINT)
	wait()
	if all := lines(t, r.out); r.code != 130 || all[len(all)-1]["status"] != "canceled" {
		t.Errorf("%+v", r)
	}
}

// A worker that is told to stop lets go of what it is at, at once; nobody waits for its silence.
func TestAWorkerThatIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `turns: [{tool_calls: [{id: c1, name: bash, input: {command: "touch begun; sleep 300"}}]}, {text: Done.}]`)
	first := w.works("--grace", "100ms")
	r, wait := w.begin("run", "--engine", w.engine(), "--journal", w.journal, "--json", "go")
	w.waitFor("begun")
	w.works()
	began := time.Now()
	_ = first.Process.Signal(syscall.SIGTERM)
	if err := first.Wait(); err != nil || !strings.Contains(first.errs.String(), "stopped") {
		t.Errorf("%v: %s", err, first.errs)
	}
	wait()
	if took := time.Since(began); r.code != 0 || took > 15*time.Second || !strings.Contains(r.out, `"outcome":"canceled"`) {
		t.Errorf("%v: %+v\n%s", took, r, first.errs)
	}
}
