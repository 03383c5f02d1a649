package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that waits, is answered and goes on is bound as it was.
func TestARunThatWaitedGoesOnUnderTheRulesThatItWasGiven(t *testing.T) {
	t.Parallel()
	for answer, args := range map[string][]string{
		"approve":             {"approve", "s", "c1"},
		"approve the session": {"approve", "s", "c1", "--session"},
		"reject":              {"reject", "s", "c1"},
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := w.file("turns.yaml", `turns:
- tool_calls: [{id: c1, name: bash, input: {command: touch one}}]
- tool_calls: [{id: c2, name: bash, input: {command: touch two}}]
- text: done
`)
			bypass := []string{"--permission-mode", "bypassPermissions", "--journal", w.journal}
			if r := w.pawl("run", "--session", "s", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--ask", "Bash(touch one)", "--deny", "Bash(touch two)", "go"); r.code != exitWaiting {
				t.Fatalf("%+v", r)
			}
			if r := w.pawl(append(args, "--journal", w.journal)...); r.code != 0 {
				t.Fatalf("%+v", r)
			}
			r := w.pawl(append([]string{"resume", "s"}, bypass...)...)
			if r.code != 0 || !strings.Contains(r.err, "what the run began with binds it still: mode default, deny Bash(touch two), ask Bash(touch one)") {
				t.Errorf("%+v", r)
			}
			for name, want := range map[string]bool{"one": answer != "reject", "two": false} {
				if _, err := os.Stat(filepath.Join(w.dir, name)); (err == nil) != want {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// A sandbox that was switched off meanwhile is no reason to go on without one: a person has to say so.
func TestARunOfASandboxGoesOnWithoutOneOnlyWhenThatIsSaid(t *testing.T) {
	t.Parallel()
	fenced(t)
	w := newWorld(t)
	script := w.file("turns.yaml", "turns:\n- tool_calls: [{id: c1, name: bash, input: {command: touch made}}]\n- text: done\n")
	if r := w.pawl("run", "--session", "s", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--ask", "Bash(touch:*)", "go"); r.code != exitWaiting {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("approve", "s", "c1", "--journal", w.journal); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file(".agents/settings.json", `{"sandbox": {"enabled": false}}`)
	if r := w.pawl("resume", "s", "--journal", w.journal, "--trust"); r.code != exitUsage || !strings.Contains(r.err, "the run began in a sandbox") || !strings.Contains(r.err, "--no-sandbox") {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("resume", "s", "--journal", w.journal, "--trust", "--no-sandbox"); r.code != 0 || r.out != "done\n" {
		t.Errorf("%+v", r)
	}
}
