package cli

import (
	"os"
	"strings"
	"testing"
)

func TestAScriptIsRunResumedAndReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const source = "r = generate('Write.')\ntool('bash', command = 'echo one >> out.txt')\nif not ask('Keep it?', choices = ['yes', 'no']):\n    fail('no')\nemit('kept: ' + r.text)\n"
	file := w.file("poem.star", source)
	lines, r := w.run(`turns: [{text: "a poem"}]`, "Go.", "--session", "s", "--engine", "script:"+file)
	asked := find(lines, "approval.requested")
	if r.code != exitWaiting || asked == nil || !strings.Contains(r.err, "--engine "+quoted("script:"+file)) {
		t.Fatalf("%+v", r)
	}
	id, _ := asked["call_id"].(string)
	if r := w.pawl("answer", "s", id, "1", "--journal", w.journal); r.code != 0 {
		t.Fatal(r)
	}
	resume := func(engine ...string) ran {
		return w.pawl(append([]string{"resume", "s", "--journal", w.journal, "--dir", w.dir}, engine...)...)
	}
	if r := resume(); r.code != exitUsage || !strings.Contains(r.err, "driven by the engine script: give --engine script:FILE") {
		t.Errorf("without the script: %+v", r)
	}
	w.file("poem.star", source+"# edited\n")
	if r := resume("--engine", "script:"+file); r.code != exitFailed || !strings.Contains(r.err, "is not the program that began the run") {
		t.Errorf("with another one: %+v", r)
	}
	w.file("poem.star", source)
	if r := resume("--engine", "script:"+file); r.code != exitCompleted || r.out != "kept: a poem\n" || !strings.Contains(r.err, "kept: a poem\n") {
		t.Errorf("with the same: %+v", r)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); !strings.Contains(r.out, "assistant (script)\n   kept: a poem") {
		t.Error(r.out)
	}
	if b, err := os.ReadFile(w.dir + "/out.txt"); err != nil || string(b) != "one\n" {
		t.Errorf("%q %v", b, err)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal, "--engine", "script:"+file); r.code != 0 || !strings.HasSuffix(r.out, " effects as on record, completed\n") {
		t.Errorf("%+v", r)
	}
	vars := w.file("vars.star", "emit(board.get('topic', 'none'))\n")
	if r := w.pawl("run", "Go.", "--dir", w.dir, "--journal", w.journal, "--engine", "script:"+vars, "--var", "topic=otters"); r.code != 0 || r.out != "otters\n" {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--var", "topic=otters"}, {"--engine", "script:" + vars, "--var", "topic"}} {
		if r := w.pawl(append([]string{"run", "Go.", "--dir", w.dir, "--journal", w.journal}, args...)...); r.code != exitUsage || !strings.Contains(r.err, "--var") {
			t.Errorf("%+v", r)
		}
	}
	w.file("poem.star", "x = nope\n")
	for _, args := range []string{"script:" + file, "script:" + file + ".none", "script:", "nothing:x"} {
		if r := w.pawl("run", "Go.", "--engine", args, "--journal", w.journal); r.code != exitUsage || r.err == "" {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
