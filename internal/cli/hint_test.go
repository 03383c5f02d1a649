package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What a run says to go on with can be pasted, step by step: each line has what the run was given, in any directory.
func TestTheLinesToGoOnWithHaveWhatTheRunWasGiven(t *testing.T) {
	w := newWorld(t)
	script := w.file("turns.yaml", "turns:\n- tool_calls: [{id: c1, name: bash, input: {command: touch one}}, {id: c2, name: bash, input: {command: touch two}}]\n- tool_calls: [{id: c3, name: bash, input: {command: touch three}}]\n- text: done\n")
	w.file("system.txt", "You are told this.")
	t.Chdir(w.dir)
	const given = " --permission-mode acceptEdits --allow 'Bash(touch none)' --ask 'Bash(touch:*)' --no-sandbox --mcp 'files=none --x' --trust"
	limits := " --system-prompt " + quoted("@"+filepath.Join(w.dir, "system.txt")) + " --max-steps 7 --budget-tokens 9000 --timeout 10m0s --journal " + quoted(w.journal)
	r := w.pawl("run", "--session", "s", "--dir", ".", "--journal", w.journal, "--model", "scripted/turns.yaml", "--permission-mode", "acceptEdits", "--allow", "Bash(touch none)", "--ask", "Bash(touch:*)",
		"--no-sandbox", "--mcp", "files=none --x", "--trust", "--system-prompt", "@system.txt", "--max-steps", "7", "--budget-tokens", "9000", "--timeout", "10m", "go")
	resume := "pawl resume s" + given + limits
	if r.code != exitWaiting || !strings.Contains(r.err, "\nthen: "+resume+"\n") {
		t.Fatalf("%+v", r)
	}
	t.Chdir(t.TempDir())
	lines := regexp.MustCompile(`pawl (approve|reject|resume) .*?(, or |\n|$)`).FindAllString(r.err, -1)
	pasted := func(i int) ran {
		return w.pawl(typed(strings.TrimRight(strings.TrimSuffix(lines[i], ", or "), "\n"))...)
	}
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "pawl reject s c1") {
		t.Fatalf("%q", lines)
	}
	if r := pasted(0); r.code != 0 || !strings.HasSuffix(r.err, "still pending: c2\n") {
		t.Errorf("%s: %+v", lines[0], r)
	}
	if r := pasted(3); r.code != 0 || r.err != "go on with: "+resume+"\n" {
		t.Errorf("%s: %+v\nwant %s", lines[3], r, resume)
	}
	r = w.pawl(append(typed(strings.TrimPrefix(resume, "pawl ")), "--model", "scripted/"+script)...)
	again := "pawl resume s" + given + " --model " + quoted("scripted/"+script) + limits // flags of a resume are not recorded
	if r.code != exitWaiting || !strings.Contains(r.err, "\nthen: "+again+"\n") {
		t.Fatalf("%+v\nwant %s", r, again)
	}
	if r := w.pawl("reject", "s", "c3", "--journal", w.journal); r.code != 0 || r.err != "go on with: pawl resume s --journal "+quoted(w.journal)+"\n" {
		t.Errorf("%+v", r)
	}
}

// A further prompt goes on with the same model in the same project.
func TestTheLineOfAFurtherPromptHasTheModelAndTheProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := w.file("turns.yaml", "turns:\n- tool_calls: [{id: c1, name: glob, input: {pattern: x}}]\n- text: done\n")
	r := w.pawl("run", "--session", "s", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "--max-steps", "1", "go")
	want := "go on with: pawl run --session s --model " + quoted("scripted/"+script) + " --dir " + quoted(w.dir) + " --max-steps 1 … --journal " + quoted(w.journal) + "\n"
	if r.code != exitLimit || !strings.Contains(r.err, want) {
		t.Errorf("%+v\nwant %s", r, want)
	}
}

// Every flag that resume has is in the lines, or has no place there.
func TestEachFlagOfResumeIsKeptOrSaidOtherwise(t *testing.T) {
	t.Parallel()
	other := []string{"session", "json", "wait", "journal", "unknown", "help"}
	for _, cmd := range []*cobra.Command{resumeCommand(streams{}, Program{}), approveCommand(streams{})} {
		for _, line := range regexp.MustCompile(`--[a-z-]+`).FindAllString(cmd.Flags().FlagUsages(), -1) {
			name := strings.TrimPrefix(line, "--")
			kept, hidden := slices.Contains(keptFlags, name), cmd.Flags().Lookup(name) == nil || cmd.Flags().Lookup(name).Hidden
			switch {
			case hidden: // another program's, in a description
			case cmd.Name() == "resume" && !kept && !slices.Contains(other, name), cmd.Name() == "approve" && kept:
				t.Errorf("%s --%s", cmd.Name(), name)
			}
		}
	}
	c := common{}
	cmd := &cobra.Command{}
	c.addKept(cmd)
	for _, name := range keptFlags {
		value := map[string]string{"permission-mode": "plan", "taint": "ask", "no-sandbox": "true", "trust": "true", "max-steps": "7", "budget-usd": "1.5", "budget-tokens": "7", "timeout": "7s"}[name]
		if value == "" {
			value = "v"
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			t.Fatal(err)
		}
		if words := c.kept(true); !slices.Contains(words, "--"+name) {
			t.Errorf("--%s is not in %q", name, words)
		}
	}
}

// typed are the words of a line, as a shell reads them.
func typed(line string) (out []string) {
	var word strings.Builder
	quote, any := false, false
	for _, r := range strings.TrimPrefix(line, "pawl ") + " " {
		switch {
		case r == '\'':
			quote, any = !quote, true
		case r == ' ' && !quote:
			if any {
				out = append(out, word.String())
			}
			word.Reset()
			any = false
		default:
			word.WriteRune(r)
			any = true
		}
	}
	return out
}
