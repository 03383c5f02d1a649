package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// left is what stands on a terminal in the end: what was cleared is gone.
func left(all string) string {
	return regexp.MustCompile(`[^\n]*\r\x1b\[2K`).ReplaceAllString(strings.ReplaceAll(all, "\r\n", "\n"), "")
}

// At a terminal what is waited for stands in the last line, as long as it is waited for.
func TestATerminalShowsWhatIsWaitedFor(t *testing.T) {
	path := binary(t)
	var asked atomic.Int32
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(busy.Close)
	for name, c := range map[string]struct {
		script string
		flags  []string
		sees   []string // one after the other
		left   string   // of it in the end
		code   int
	}{
		"a model": {script: "turns: [{delay: 2500ms, text: Done.}]", sees: []string{"waiting for the model: 1 s", "waiting for the model: 2 s", "Done."}, left: "Done.\n"},
		"a tool and what it says": {
			script: `turns: [{text: I look., tool_calls: [{name: bash, input: {command: "echo first; echo second line; sleep 3"}}]}, {text: Done.}]`,
			sees:   []string{"● bash", "bash: 1 s: second line", "bash: 2 s: second line", "✓ bash (3 s): second line", "Done."}, left: "I look.\n● bash {\"command\":\"echo first; echo second line; sleep 3\"}\n  ✓ bash (3 s): second line\nDone.\n",
		},
		"a subagent": {
			script: "turns: [{tool_calls: [{name: task, input: {agent: explore, prompt: look}}]}, {text: Done.}]\nagents: {explore: {turns: [{delay: 2500ms, text: Seen.}]}}",
			sees:   []string{"task: 2 s · waiting for the model: 2 s", "[explore] Seen.", "Done."}, left: "Done.\n",
		},
		"another attempt": {flags: []string{"--model", "openai/gpt-5", "--base-url", busy.URL + "/v1"}, sees: []string{"retry: ", "trying again in 3 s", "trying again in 1 s"}, code: exitFailed},
		"an MCP server": {
			script: "turns: [{text: Done.}]", flags: []string{"--mcp", "slow=sleep 2.5"}, sees: []string{"the MCP server slow starts: 1 s", "the MCP server slow starts: 2 s", "warning: mcp: server slow", "Done."}, left: "Done.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{"run", "--dir", dir, "--journal", "sqlite:" + filepath.Join(dir, "j.db"), "--no-sandbox", "--allow", "Bash"}
			if c.script != "" {
				script := filepath.Join(dir, "s.yaml")
				if err := os.WriteFile(script, []byte(c.script), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--model", "scripted/"+script)
			}
			s := atPTYWith(t, []string{"OPENAI_API_KEY=k"}, path, append(append(args, c.flags...), "go")...)
			for _, text := range c.sees {
				s.sees(text)
			}
			code, all := s.ends()
			if got := left(all); code != c.code || !strings.Contains(got, c.left) || strings.Contains(got, "\x1b") || strings.ContainsAny(got, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
				t.Errorf("exit %d, left is\n%s", code, got)
			}
		})
	}
}

func TestATerminalShowsThatASessionIsWaitedFor(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), t.TempDir()
	script := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(script, []byte(`turns: [{tool_calls: [{name: bash, input: {command: "touch began; sleep 4"}}]}, {text: one}, {text: two}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--dir", dir, "--journal", "sqlite:" + filepath.Join(dir, "j.db"), "--session", "s", "--no-sandbox", "--allow", "Bash", "--model", "scripted/" + script}
	first := exec.Command(path, append(args, "go")...)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "began")); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond) // a process of ours that says nothing can only be polled
	}
	s := atPTY(t, path, append(args, "--wait", "go on")...)
	s.sees("warning: waiting for the session: ")
	s.sees("waiting for the session: 1 s")
	s.sees("two")
	if code, all := s.ends(); code != exitCompleted || strings.Contains(left(all), "for the session: 1 s") {
		t.Errorf("exit %d\n%s", code, left(all))
	}
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
}

// Elsewhere nothing of the kind is written: neither to a file, nor with --json, nor to a terminal that can't.
func TestWhatIsWaitedForIsNoLineOfAFile(t *testing.T) {
	t.Parallel()
	path, w := binary(t), newWorld(t)
	script := w.file("s.yaml", "turns: [{delay: 1500ms, text: Done.}]")
	for _, more := range [][]string{nil, {"--json"}} {
		r := w.pawl(append([]string{"run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "go"}, more...)...)
		if r.code != exitCompleted || strings.Contains(r.out+r.err, "waiting for") || strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%v: %+v", more, r)
		}
	}
	if r := w.pawl("mcp", "list", "--dir", w.dir, "--no-sandbox", "--mcp", "slow=sleep 1.5"); r.code != exitFailed || strings.Contains(r.out+r.err, "\x1b") {
		t.Errorf("%+v", r)
	}
	s := atPTYWith(t, []string{"TERM=dumb"}, path, "run", "--dir", w.dir, "--journal", w.journal, "--model", "scripted/"+script, "go")
	if code, all := s.ends(); code != exitCompleted || strings.Contains(all, "\x1b") || strings.Contains(all, "waiting for") {
		t.Error(fmt.Sprint(code), all)
	}
}

func TestAListOfMCPServersShowsWhichItWaitsFor(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), t.TempDir()
	s := atPTY(t, path, "mcp", "list", "--dir", dir, "--no-sandbox", "--mcp", "slow=sleep 2.5", "--mcp", "quick=true")
	s.sees("the MCP server slow starts: 1 s")
	if code, all := s.ends(); code != exitFailed || !strings.HasPrefix(left(all), "slow  failed") {
		t.Errorf("exit %d\n%s", code, left(all))
	}
}

func TestAPackShowsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	path, w := binary(t), newWorld(t)
	files(t, page(t, "docs/packs.md"), w.dir)
	s := atPTY(t, path, "pack", "run", "--model", "scripted/"+w.file("s.yaml", "turns: [{delay: 1500ms, text: Hello Ada.}]"), "--var", "name=Ada", "--tool", "lookup_order=https://127.0.0.1:1/", filepath.Join(w.dir, "support.pack.json"), "chat", "Hello")
	s.sees("waiting for the model: 1 s")
	if code, all := s.ends(); code != exitCompleted || !strings.HasPrefix(left(all), "Hello Ada.\ncompleted · 1 step ") {
		t.Errorf("exit %d\n%s", code, left(all))
	}
}
