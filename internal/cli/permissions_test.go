package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/testkit/tier"
)

func (w world) checks(args ...string) ran {
	return w.pawl(append([]string{"permissions", "check", "--dir", w.dir}, args...)...)
}

func TestACheckSaysWhatWouldBeDoneAndWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("main.go", "package main")
	for _, c := range []struct {
		args []string
		want string // the line begins with it
		says string
	}{
		{[]string{"bash", "go test ./..."}, "allow ", "sandbox"},
		{[]string{"--no-sandbox", "bash", "go test ./..."}, "ask ", "without a sandbox"},
		{[]string{"--no-sandbox", "bash", "git status && ls -la | head"}, "allow ", "the command only reads, inside the project"},
		{[]string{"--no-sandbox", "bash", "ls > x"}, "ask ", "it writes x"},
		{[]string{"--no-sandbox", "--allow", "Bash(go test:*)", "bash", "go test ./..."}, "allow ", "Bash(go test:*) (--allow)"},
		{[]string{"--deny", "Bash(git push:*)", "bash", "true; /usr/bin/git -C . push"}, "deny ", "Bash(git push:*) (--deny)"},
		{[]string{"--deny", "Read(.env)", "--deny", "Bash(git push:*)", "bash", "cat .env"}, "deny ", "Read(.env) (--deny number 1)"},
		{[]string{"--ask", "Bash(npm:*)", "bash", "npm install"}, "ask ", "Bash(npm:*) (--ask)"},
		{[]string{"--ask", "Bash(npm:*)", "--permission-mode", "dontAsk", "bash", "npm install"}, "deny ", "nobody is asked"},
		{[]string{"--permission-mode", "plan", "bash", "ls"}, "allow ", "mode plan: the command only reads, inside the project"},
		{[]string{"--permission-mode", "plan", "bash", "make"}, "deny ", "mode plan"},
		{[]string{"--permission-mode", "PLAN", "read", `{"file_path":"main.go"}`}, "allow ", "inside the project"},
		{[]string{"--permission-mode", "bypassPermissions", "--no-sandbox", "bash", "make"}, "allow ", "nothing is asked"},
		{[]string{"--permission-mode", "acceptEdits", "--no-sandbox", "write", `{"path":"x","content":""}`}, "allow ", "edits inside"},
		{[]string{"--deny", "Read(.env)", "Read", `{"path":".env"}`}, "deny ", "Read(.env)"},
		{[]string{"read", `{"file_path":"/etc/passwd"}`}, "ask ", "outside of the project: /etc/passwd"},
		{[]string{"bash", `{"command":"ls","timeout":"5s"}`}, "allow ", "sandbox"},
		{[]string{"bash", "{ ls; }"}, "allow ", "sandbox"},
		{[]string{"bash", "if\nthen \x1b[2J"}, "", ""},
		{[]string{"bash", "sudo -n sh -c 'rm -r -f /'"}, "deny ", ""},
		{[]string{"--permission-mode", "bypassPermissions", "--allow", "Bash", "bash", "rm -rf ~"}, "deny ", ""},
		{[]string{"bash", "grep -rn 'rm -rf /' docs/"}, "allow ", ""},
		{[]string{"bash", "git push --force"}, "ask ", ""},
		{[]string{"--permission-mode", "dontAsk", "bash", "git push --force"}, "deny ", "nobody is asked"},
		{[]string{"--permission-mode", "bypassPermissions", "bash", "git push --force"}, "allow ", "nothing is asked"},
		{[]string{"mcp__db__query", `{}`}, "ask ", "mcp__db__query"},
		{[]string{"--allow", "mcp__db", "mcp__db__query", `{}`}, "allow ", "mcp__db"},
		{[]string{"web_fetch", `{"url":"https://example.com/x"}`}, "ask ", "web_fetch"},
		{[]string{"--allow", "WebFetch(domain:example.com)", "web_fetch", `{"url":"https://example.com/x"}`}, "allow ", "domain:example.com"},
		{[]string{"--allow", "WebFetch(domain:example.com)", "web_fetch", `{"url":"http://example.com:80/x"}`}, "allow ", "domain:example.com"},
		{[]string{"--allow", "WebFetch(domain:example.com)", "web_fetch", `{"url":"https://example.com:8443/x"}`}, "ask ", "web_fetch"},
		{[]string{"--allow", "WebFetch(https://example.com:8443/*)", "web_fetch", `{"url":"https://example.com:8443/x"}`}, "allow ", "https://example.com:8443/*"},
		{[]string{"--deny", "WebFetch(domain:example.com)", "web_fetch", `{"url":"https://example.com:8443/x"}`}, "deny ", "domain:example.com"},
		{[]string{"ask_user", `{"question":"Which?"}`}, "allow ", ""},
	} {
		if tier.Quick() { // whose verdicts do not depend on whether there is a sandbox
			if c.says == "sandbox" {
				continue
			}
			c.args = append([]string{"--no-sandbox"}, c.args...)
		}
		r := w.checks(c.args...)
		if r.code != 0 || r.err != "" || !strings.HasPrefix(r.out, c.want) || !strings.Contains(r.out, c.says) || strings.Count(r.out, "\n") != 1 || strings.Contains(r.out, "\x1b") {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	if files, err := os.ReadDir(w.dir); err != nil || len(files) != 1 {
		t.Error("something was done:", files, err)
	}
}

func TestChecksOfCommandsAnswerLineByLineInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := []string{"ls", "rm x", "", "echo a\tb; git push", "rm y # z", "{\"command\":\"rm\"}", "cat <<EOF", strings.Repeat("#", 100_000)}
	args := []string{"permissions", "check", "--dir", w.dir, "--deny", "Bash(rm:*)", "--json"}
	want := []string{"allow", "deny", "deny", "allow", "deny", "allow", "deny", "deny"} // the last two can't be read
	if tier.Quick() {
		args, want[3], want[5] = append(args, "--no-sandbox"), "ask", "ask"
	}
	r := w.pawlIn(strings.Join(lines, "\n"), append(args, "bash", "-")...)
	var got []string
	for line := range strings.Lines(r.out) {
		var a struct {
			Tool, Verdict, Reason, Rule, Place, Mode string
			Input                                    map[string]string
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil || a.Tool != "bash" || a.Mode != "default" || a.Reason == "" {
			t.Fatalf("%v: %s", err, line)
		}
		if a.Input["command"] != lines[len(got)] {
			t.Errorf("line %d answers %.40q", len(got)+1, a.Input["command"])
		}
		if by := a.Rule == "Bash(rm:*)" && a.Place == "--deny"; by != (a.Verdict == "deny" && a.Input["command"] != "") {
			t.Errorf("line %d: %v %.100s %s %s", len(got)+1, a.Verdict, a.Reason, a.Rule, a.Place)
		}
		got = append(got, a.Verdict)
	}
	if r.code != 0 || !slices.Equal(got, want) {
		t.Errorf("%d %s %v", r.code, r.err, got)
	}
	if r := w.pawlIn("", "permissions", "check", "--dir", w.dir, "bash", "-"); r.code != 0 || r.out != "" {
		t.Error(r)
	}
}

// answers is read and written by turns: who asks may wait for an answer before asking on.
func TestACheckAnswersEachLineBeforeTheNextIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, ask := io.Pipe()
	answer, out := io.Pipe()
	code := make(chan int)
	go func() {
		code <- program(t.Context(), streams{in, out, io.Discard}, []string{"permissions", "check", "--dir", w.dir, "bash", "-"})
	}()
	for range 3 {
		fmt.Fprintln(ask, "ls")
		buf := make([]byte, 1024)
		if n, err := answer.Read(buf); err != nil || !strings.HasPrefix(string(buf[:n]), "allow ") {
			t.Fatal(string(buf[:n]), err)
		}
	}
	_ = ask.Close()
	if c := <-code; c != 0 {
		t.Error(c)
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in, ask := io.Pipe()
	defer func() { _ = ask.CloseWithError(errors.New("over")) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := program(ctx, streams{in, io.Discard, io.Discard}, []string{"permissions", "check", "--dir", w.dir, "bash", "-"}); code != exitCanceled {
		t.Error(code)
	}
}

func TestWrongUseOfACheckSaysWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"nothing":          {nil, []string{"want a tool and its input"}},
		"no quotes":        {[]string{"bash", "git", "push"}, []string{"quotes"}},
		"a mode":           {[]string{"--permission-mode", "yolo", "bash", "ls"}, []string{"--permission-mode", "yolo", "acceptEdits"}},
		"a rule":           {[]string{"--deny", "Bash(", "bash", "ls"}, []string{"--deny", `"Bash("`, "not closed"}},
		"input":            {[]string{"read", "main.go"}, []string{"read", "JSON object"}},
		"no such tool":     {[]string{"nosuchtool", `{}`}, []string{`there is no tool "nosuchtool"`, "bash", "web_fetch", "mcp__SERVER__TOOL"}},
		"a tool misspelt":  {[]string{"--json", "raed", "x"}, []string{"did you mean read?"}},
		"no server":        {[]string{"mcp__x", `{}`}, []string{"there is no tool"}},
		"no object":        {[]string{"read", `"main.go"`}, []string{"JSON object"}},
		"a wrong member":   {[]string{"read", `{"file":"main.go"}`}, []string{"file_path"}},
		"two names":        {[]string{"read", `{"path":"a","file_path":"b"}`}, []string{"are the same"}},
		"standard input":   {[]string{"read", "-"}, []string{"only the commands of bash"}},
		"no such place":    {[]string{"--dir", filepath.Join(w.dir, "none"), "bash", "ls"}, []string{"no such directory"}},
		"an unknown flag":  {[]string{"--denied", "x", "bash", "ls"}, []string{"--denied", "--help"}},
		"a line too large": {[]string{"bash", "-"}, []string{"over the limit of 4 MiB"}},
	} {
		r := w.pawlIn(strings.Repeat("x", maxPrompt+1), append([]string{"permissions", "check", "--dir", w.dir}, c.args...)...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%s: %+v", name, r)
		}
		for _, want := range c.want {
			if !strings.Contains(r.err, want) {
				t.Errorf("%s: %q is missing in %q", name, want, r.err)
			}
		}
	}
	if r := w.pawl("permissions"); r.code != exitUsage || !strings.Contains(r.err, "check TOOL INPUT") {
		t.Error(r)
	}
	for _, args := range [][]string{{"permissions", "--help"}, {"permissions", "check", "--help"}} {
		if r := w.pawl(args...); r.code != 0 || !strings.Contains(r.out, "Examples:\n  pawl ") {
			t.Errorf("%+v", r)
		}
	}
}

// What a run in the project would go by counts: the settings, as far as they are approved, with the flags above them.
func TestACheckGoesByTheProjectsSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dir := range []string{".agents", ".agents/agents", ".agents/skills", ".agents/skills/deploy"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.file(".agents/settings.json", `{"permissions": {
  "deny": ["Bash(git push:*)"],
  "allow": ["Bash(go generate:*)", "Read(//etc/hosts)"]
}, "disallowedTools": ["write"]}`)
	w.file(".agents/settings.local.json", `{"permissions": {"defaultMode": "dontAsk"}}`)
	w.file(".agents/agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n")
	w.file(".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys.\n---\nDeploy.\n")
	check := func(want, says string, args ...string) {
		t.Helper()
		r := w.checks(args...)
		if r.code != 0 || !strings.HasPrefix(r.out, want) || !strings.Contains(r.out, says) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	// What forbids counts at once.
	check("deny ", "Bash(git push:*) (.agents/settings.json:2", "bash", "git push")
	check("deny ", "write (disallowedTools)", "write", `{"file_path":"x","content":""}`)
	check("deny ", "mode dontAsk", "web_fetch", `{"url":"https://example.com"}`)
	check("ask ", "web_fetch", "--permission-mode", "default", "web_fetch", `{"url":"https://example.com"}`)
	check("allow ", "", "task", `{"agent":"reviewer","task":"x"}`)
	check("allow ", "", "skill", `{"name":"deploy"}`)
	// What allows waits for a person.
	check("deny ", "mode dontAsk", "read", `{"file_path":"/etc/hosts"}`)
	if r := w.checks("read", `{"file_path":"/etc/hosts"}`); r.err != "pawl: 2 settings of this project wait for approval and do not count: see pawl trust\n" {
		t.Errorf("%q", r.err)
	}
	check("allow ", "Read(//etc/hosts) (.agents/settings.json:3", "--trust", "read", `{"file_path":"/etc/hosts"}`)
	if r := w.pawl("trust", w.dir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if r := w.checks("--json", "--no-sandbox", "bash", "go generate ./..."); r.err != "" || !strings.Contains(r.out, `"rule":"Bash(go generate:*)","place":".agents/settings.json:3`) || !strings.Contains(r.out, `"mode":"dontAsk"`) {
		t.Errorf("%+v", r)
	}
	check("deny ", "mode dontAsk", "--no-sandbox", "bash", "go version")
	// What can't be understood may forbid something.
	w.file(".agents/settings.json", `{"permissions": {"deny": ["Bash("]}}`)
	if r := w.checks("bash", "ls"); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "settings.json") {
		t.Errorf("%+v", r)
	}
}

func TestAToolThatThereIsNotIsNamedAmongAllThatThereAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if r := w.checks("frob", "{}"); r.code != exitUsage || !strings.Contains(r.err, `there is no tool "frob"; there are ask_user, bash, bash_kill, bash_output, edit, glob, grep, read, task, web_fetch, write (`) {
		t.Errorf("%+v", r)
	}
	if r := w.checks("tsak", "{}"); r.code != exitUsage || !strings.Contains(r.err, "did you mean task?") {
		t.Errorf("%+v", r)
	}
	if r := w.checks("Task", `{"agent": "explore", "prompt": "look"}`); r.code != 0 {
		t.Errorf("%+v", r)
	}
}
