package cli

import (
	"os"
	"strings"
	"testing"
)

func TestASessionIsReplayedWithoutDoingAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(work, "write a file", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	if _, r := w.run(`turns: [{text: skipped}, {text: skipped}, {tool_calls: [{id: z, name: bash, input: {command: "exit 1"}}]}, {error: {status: 400}}]`, "and fail", "--session", "s"); r.code != exitFailed {
		t.Fatal(r)
	}
	before := w.pawl("sessions", "export", "s", "--journal", w.journal)
	if err := os.RemoveAll(w.dir); err != nil { // neither the project nor the script nor a key is needed
		t.Fatal(err)
	}
	r := w.pawl("replay", "s", "--journal", w.journal)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if r.code != 0 || len(lines) != 2 || !strings.HasSuffix(lines[0], ": 6 effects as on record, completed") || !strings.HasSuffix(lines[1], ", failed") {
		t.Errorf("%+v", r)
	}
	if after := w.pawl("sessions", "export", "s", "--journal", w.journal); after.out != before.out {
		t.Error("the replay wrote into the session")
	}
}

func TestAReplayNamesTheFirstDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, r := w.run(work, "write a file", "--session", "s"); r.code != 0 {
		t.Fatal(r)
	}
	exported := w.pawl("sessions", "export", "s", "--journal", w.journal).out
	for name, c := range map[string]struct {
		kind, old, new, want string
	}{
		"the call had another input":   {"tool.started", "echo one", "echo six", `the code asks for tool/w as tool.started {"call":{"id":"w","name":"bash","input":"{\"command\":\"echo one`},
		"the call's result was not it": {"tool.finished", `"call":"w"`, `"call":"v"`, "with another transcript: message 3"},
		"a verdict that was another":   {"tool.judged", `"verdict":"allow"`, `"verdict":"deny"`, "tool/w"},
		"it did not complete":          {"run.finished", `"status":"completed"`, `"status":"failed"`, "the code completes, then the run was failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for line := range strings.Lines(exported) {
				if strings.Contains(line, `"kind":"`+c.kind+`"`) {
					changed := strings.Replace(line, c.old, c.new, 1)
					if changed == line {
						t.Fatalf("%q is not in %s", c.old, line)
					}
					line = changed
				}
				b.WriteString(line)
			}
			other := newWorld(t)
			if r := other.pawlIn(b.String(), "sessions", "import", "-", "--journal", other.journal); r.code != 0 {
				t.Fatal(r)
			}
			if r := other.pawl("replay", "s", "--journal", other.journal); r.code != exitFailed || !strings.Contains(r.err, c.want) {
				t.Errorf("%+v", r)
			}
		})
	}
	for _, args := range [][]string{{"replay"}, {"replay", "none", "--journal", w.journal}, {"replay", "s", "--journal", "memory"}} {
		if r := w.pawl(args...); r.code != exitUsage || r.err == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestARunThatDiedIsReplayedAsFarAsItWent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leaveDead()
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != 0 || r.out != "r: 7 effects as on record, unfinished\n" {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("resume", "s", "--journal", w.journal); r.code != 0 {
		t.Fatal(r)
	}
	if r := w.pawl("replay", "s", "--journal", w.journal); r.code != 0 || r.out != "r: 10 effects as on record, completed\n" {
		t.Errorf("%+v", r)
	}
}
