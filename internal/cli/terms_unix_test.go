//go:build unix

package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A run that is killed goes on under what it was given, and not under what a bare resume would have.
func TestAKilledRunGoesOnUnderTheRulesThatItWasGiven(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for name, c := range map[string]struct {
		flags, again []string // of run, and of resume
		fence        bool     // only where there is a sandbox
		code         int
		made         bool   // by the command that comes after the one under way
		says         string // on standard error
	}{
		"no rule":                    {flags: []string{"--allow", "Bash"}, again: []string{"--allow", "Bash"}, made: true},
		"a deny rule":                {flags: []string{"--deny", "Bash(touch:*)", "--allow", "Bash"}, again: []string{"--allow", "Bash"}, says: "binds it still: deny Bash(touch:*)"},
		"an ask rule":                {flags: []string{"--ask", "Bash(touch:*)", "--allow", "Bash"}, again: []string{"--allow", "Bash"}, code: exitWaiting, says: "ask Bash(touch:*)"},
		"mode plan":                  {flags: []string{"--permission-mode", "plan"}, again: []string{"--permission-mode", "bypassPermissions"}, says: "mode plan"},
		"what is allowed is not":     {flags: []string{"--no-sandbox", "--allow", "Bash"}, again: []string{"--no-sandbox"}, code: exitWaiting, says: "without a sandbox"},
		"a sandbox":                  {fence: true, made: true},
		"no sandbox any more, so to": {fence: true, again: []string{"--no-sandbox"}, code: exitWaiting, says: "without a sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fence {
				fenced(t)
			}
			dir := t.TempDir()
			script, journal := filepath.Join(dir, "s.yaml"), "sqlite:"+filepath.Join(t.TempDir(), "j.db")
			text := `turns:
- tool_calls: [{id: c1, name: bash, input: {command: "tail -f s.yaml"}}]
- tool_calls: [{id: c2, name: bash, input: {command: touch made}}]
- text: Done.
`
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			run := exec.Command(path, append([]string{"run", "--json", "--session", "s", "--model", "scripted/" + script, "--dir", dir, "--journal", journal, "go"}, c.flags...)...)
			out, err := run.StdoutPipe()
			if err == nil {
				err = run.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var lines bytes.Buffer
			for !bytes.Contains(lines.Bytes(), []byte(`"type":"tool.output"`)) {
				if _, err := io.CopyN(&lines, out, 1); err != nil {
					t.Fatalf("%v\n%s", err, &lines)
				}
			}
			if err := run.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = run.Wait()
			resume := exec.Command(path, append([]string{"resume", "s", "--journal", journal}, c.again...)...)
			said, _ := resume.CombinedOutput()
			if code := resume.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(said), c.says) || c.says == "" && strings.Contains(string(said), "binds it") {
				t.Errorf("exit %d\n%s", code, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "made")); (err == nil) != c.made {
				t.Errorf("made: %v\n%s", err, said)
			}
		})
	}
}
