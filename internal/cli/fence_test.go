package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/component"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/sandbox/fence"
)

func fenced(t *testing.T) {
	t.Helper()
	tier.SkipQuick(t, "it needs a sandbox")
	if can := fence.Probe(); !can.Writes.Holds {
		component.Absent(t, "a sandbox", can.Writes.Why)
	}
}

func TestACommandOfARunWritesTheProjectAndNothingElse(t *testing.T) {
	t.Parallel()
	fenced(t)
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "x")
	script := filepath.Join(w.dir, "turns.yaml")
	if err := os.WriteFile(filepath.Join(w.dir, "build.sh"), []byte("echo in >inside\necho out >"+quoted(outside)+"\nexit 0\n"), 0o600); err != nil { // no check looks into a script
		t.Fatal(err)
	}
	text := "turns:\n- tool_calls: [{id: c1, name: bash, input: {command: sh build.sh}}]\n- text: done\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, off := range []bool{false, true} {
		args := []string{"run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "--permission-mode", "bypassPermissions", "go"}
		if off {
			args = append(args, "--no-sandbox")
		}
		if r := w.pawl(args...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		if _, err := os.Stat(filepath.Join(w.dir, "inside")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(outside); (err == nil) != off {
			t.Errorf("without a sandbox: %t, outside: %v", off, err)
		}
	}
}

func TestRulesAndModesBindARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filepath.Join(w.dir, "turns.yaml")
	if err := os.WriteFile(script, []byte("turns:\n- tool_calls: [{id: c1, name: bash, input: {command: touch made}}]\n- text: done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		made bool
	}{
		"denied":            {[]string{"--deny", "Bash(touch:*)"}, 0, false},
		"plan":              {[]string{"--permission-mode", "plan"}, 0, false},
		"asked":             {[]string{"--ask", "Bash(touch:*)"}, exitWaiting, false},
		"no one asks":       {[]string{"--ask", "Bash(touch:*)", "--permission-mode", "dontAsk"}, 0, false},
		"without a sandbox": {[]string{"--no-sandbox"}, exitWaiting, false},
		"allowed":           {[]string{"--no-sandbox", "--allow", "Bash(touch:*)"}, 0, true},
		"bypass":            {[]string{"--no-sandbox", "--permission-mode", "bypassPermissions"}, 0, true},
		"a wrong rule":      {[]string{"--allow", "Bash("}, exitUsage, false},
		"a wrong taint":     {[]string{"--taint", "sometimes"}, exitUsage, false},
		"a wrong mode":      {[]string{"--permission-mode", "yolo"}, exitUsage, false},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(filepath.Join(w.dir, "made"))
			args := append([]string{"run", "--dir", w.dir, "--journal", "memory", "--model", "scripted/" + script, "go"}, c.args...)
			if r := w.pawl(args...); r.code != c.code {
				t.Errorf("%+v", r)
			}
			if _, err := os.Stat(filepath.Join(w.dir, "made")); (err == nil) != c.made {
				t.Errorf("made: %v", err)
			}
		})
	}
}

func TestACallThatIsApprovedForTheSessionIsNotAskedAboutAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("turns.yaml", `turns:
- tool_calls: [{id: c1, name: bash, input: {command: go version}}]
- tool_calls: [{id: c2, name: bash, input: {command: go version -m .}}]
- text: done
- tool_calls: [{id: c3, name: bash, input: {command: go version}}]
- text: done again
- tool_calls: [{id: c4, name: bash, input: {command: go env GOROOT}}]
- text: not reached
`)
	flags := []string{"--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "--no-sandbox"}
	run := append([]string{"run", "--session", "s", "go"}, flags...)
	if r := w.pawl(run...); r.code != exitWaiting {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("approve", "s", "c1", "--session", "--journal", w.journal); r.code != 0 || !strings.Contains(r.err, "approved for the session: Bash(go version:*)") {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl(append([]string{"resume", "s"}, flags...)...); r.code != 0 || r.out != "done\n" {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl(run...); r.code != 0 || r.out != "done again\n" {
		t.Fatalf("in another process: %+v", r)
	}
	if r := w.pawl(run...); r.code != exitWaiting || !strings.Contains(r.err, "pawl approve s c4") {
		t.Fatalf("what was not approved: %+v", r)
	}
	if r := w.pawl("sessions", "show", "s", "--journal", w.journal); !strings.Contains(r.out, "approved c1, for the session: Bash(go version:*)") {
		t.Error(r.out)
	}
	if r := w.pawl("run", "--session", "t", "--journal", w.journal, "--dir", w.dir, "--model", "scripted/"+script, "--no-sandbox", "go"); r.code != exitWaiting {
		t.Errorf("in another session: %+v", r)
	}
	plan := append(run, "--permission-mode", "plan")
	if r := w.pawl(plan...); r.code == exitWaiting {
		t.Errorf("in mode plan: %+v", r)
	}
}

func TestTheDoctorSaysWhatIsThereAndWhatIsNot(t *testing.T) {
	w := newWorld(t)
	t.Setenv("ANTHROPIC_API_KEY", "sk-very-secret")
	r := w.pawl("doctor")
	can := fence.Probe()
	if r.code != 0 || !strings.Contains(r.out, "key for anthropic: ANTHROPIC_API_KEY is set") || !strings.Contains(r.out, "missing  key for openai: set OPENAI_API_KEY") ||
		!strings.Contains(r.out, "journal: sqlite:") || strings.Contains(r.out, "secret") || strings.Contains(r.out, "ok       sandbox:") != can.Writes.Holds {
		t.Errorf("%+v", r)
	}
	lines := strings.Split(strings.TrimSpace(w.pawl("doctor", "--json").out), "\n")
	for _, l := range lines {
		var f finding
		if err := json.Unmarshal([]byte(l), &f); err != nil || f.Name == "" || f.Text == "" {
			t.Errorf("%s: %v", l, err)
		}
	}
	if len(lines) != strings.Count(r.out, "\n") {
		t.Errorf("%d lines, and %q", len(lines), r.out)
	}
}

func TestTheDoctorSaysWhyThereIsNoSandbox(t *testing.T) {
	t.Parallel()
	why := fence.Status{Why: "the kernel has no Landlock"}
	all := diagnose(fence.Capabilities{Writes: why, Metadata: why, Inside: why, Network: why, Loopback: why, Hosts: why, Signals: why, Limits: why})
	missing := 0
	for _, f := range all {
		if strings.HasPrefix(f.Name, "sandbox") {
			if missing++; f.OK || f.Name != "sandbox" && !strings.Contains(f.Text, why.Why) {
				t.Errorf("%+v", f)
			}
		}
	}
	if missing < 7 {
		t.Error(missing)
	}
}
