package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What hooks made of a call, and what people said to it, is in the transcript that is shown, with the id that it is answered by.
func TestASessionShowsWhatHooksAndPeopleMadeOfItsCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.file("hook.sh", `case "$(cat)" in
*"echo one"*) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"echo won"},"additionalContext":"main is frozen"}}';;
*"echo two"*) echo 'two is not said here' >&2; exit 2;;
*'"Stop"'*) if ! [ -e stopped ]; then touch stopped; echo '{"decision":"block","reason":"say goodbye"}'; fi;;
esac
`)
	w.file(".agents/settings.json", `{"hooks": {
  "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "sh hook.sh"}]}],
  "Stop": [{"hooks": [{"type": "command", "command": "sh hook.sh"}]}]
}}`)
	script := w.file("s.yaml", `turns:
- tool_calls: [{id: c1, name: bash, input: {command: echo one}}, {id: c2, name: bash, input: {command: echo two}}, {id: c3, name: bash, input: {command: echo three}}, {id: c4, name: bash, input: {command: echo four}}]
- text: Hello.
- text: Goodbye.
`)
	flags := []string{"--journal", w.journal, "--trust", "--ask", "Bash(echo three)", "--ask", "Bash(echo four)"}
	if r := w.pawl(append([]string{"run", "--session", "s", "--dir", w.dir, "--model", "scripted/" + script, "go"}, flags...)...); r.code != exitWaiting {
		t.Fatalf("%+v", r)
	}
	show := func() string { return w.pawl("sessions", "show", "s", "--journal", w.journal).out }
	for _, want := range []string{
		"→ c1 bash {\"command\":\"echo one\"}", "waiting for a person:\n   c3: bash {\"command\":\"echo three\"}\n   c4: bash {\"command\":\"echo four\"}\n",
		"tool bash · changed by a hook · c1\n   (input) {\"command\":\"echo won\"}\n   (context for the model) main is frozen\n",
		"tool bash · denied · c2\n   ", "two is not said here", "tool bash · ok · c1\n   won\n   main is frozen\n",
	} {
		if !strings.Contains(show(), want) {
			t.Errorf("%q is missing in\n%s", want, show())
		}
	}
	for _, args := range [][]string{{"approve", "s", "c3", "--edit", `{"command":"echo tree"}`}, {"reject", "s", "c4", "--reason", "enough"}} {
		if r := w.pawl(append(args, "--journal", w.journal)...); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if r := w.pawl(append([]string{"resume", "s"}, flags...)...); r.code != 0 || r.out != "Goodbye.\n" {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{
		"approved c3, with another input\n   {\"command\":\"echo tree\"}\n", "rejected c4\n   enough\n", "tool bash · ok · c3\n   [a person changed the input of this call to {\"command\":\"echo tree\"}]\n   tree\n", "model stopped\n   (it went on, as a hook said) say goodbye\n",
	} {
		if !strings.Contains(show(), want) {
			t.Errorf("%q is missing in\n%s", want, show())
		}
	}
	if strings.Contains(show(), "waiting for a person") {
		t.Error(show())
	}
}

// What a person said to a call from another process is told, once, by the process that goes on.
func TestALineSaysThatACallWasRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := `turns:
- tool_calls: [{id: c1, name: bash, input: {command: touch one}}, {id: c2, name: bash, input: {command: touch two}}]
- tool_calls: [{id: t1, name: task, input: {agent: general-purpose, prompt: three}}]
- text: done
agents:
  general-purpose: {turns: [{tool_calls: [{id: c1, name: bash, input: {command: touch three}}]}, {text: It may not.}]}
`
	flags := []string{"--session", "s", "--ask", "Bash(touch:*)"}
	if _, r := w.run(script, "go", flags...); r.code != exitWaiting {
		t.Fatalf("%+v", r)
	}
	resume := func(code int) (rejected []map[string]any) {
		t.Helper()
		r := w.pawl("resume", "s", "--json", "--journal", w.journal)
		if r.code != code {
			t.Fatalf("%+v", r)
		}
		for _, l := range w.decoded(r) {
			if l["outcome"] == "rejected" {
				rejected = append(rejected, l)
			}
		}
		return rejected
	}
	reject := func(call, why string) {
		t.Helper()
		if r := w.pawl("reject", "s", call, "--reason", why, "--journal", w.journal); r.code != 0 {
			t.Fatalf("%+v", r)
		}
	}
	reject("c1", "not one")
	if got := resume(exitWaiting); len(got) != 1 || got[0]["type"] != "tool.finished" || got[0]["call_id"] != "c1" || got[0]["name"] != "bash" || got[0]["content"] != "not one" || got[0]["is_error"] != true || got[0]["session"] != "s" {
		t.Errorf("%v", got)
	}
	reject("c2", "nor two")
	if got := resume(exitWaiting); len(got) != 1 || got[0]["call_id"] != "c2" || got[0]["content"] != "nor two" {
		t.Errorf("%v", got)
	}
	reject("t1/c1", "nor three")
	if got := resume(exitCompleted); len(got) != 1 || got[0]["session"] != "s/t1" || got[0]["call_id"] != "c1" || got[0]["name"] != "bash" || got[0]["content"] != "nor three" || got[0]["parent_run"] == nil {
		t.Errorf("%v", got)
	}
}

// askEachTime gives a project a hook that has every command asked about.
func askEachTime(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"ask\",\"permissionDecisionReason\":\"the hook wants to know\"}}'"}]}]}}`
	if err := os.WriteFile(filepath.Join(dir, ".agents/settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An approval for the session is offered, and taken, only where it keeps the call from being asked about again.
func TestAnApprovalForTheSessionIsForWhatHeedsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := "turns:\n- tool_calls: [{id: c1, name: bash, input: {command: touch one}}]\n- text: done\n"
	if lines, r := w.run(script, "go", "--session", "rule", "--ask", "Bash"); r.code != exitWaiting || find(lines, "approval.requested")["once"] != nil {
		t.Fatalf("%+v", r)
	}
	askEachTime(t, w.dir)
	lines, r := w.run(script, "go", "--session", "hook", "--trust", "--ask", "Bash") // the rule asks, too: but lifting that is not enough
	if r.code != exitWaiting || find(lines, "approval.requested")["once"] != true {
		t.Fatalf("%+v", r)
	}
	if r := w.pawl("approve", "hook", "c1", "--session", "--journal", w.journal); r.code != exitUsage || !strings.Contains(r.err, "each time") {
		t.Errorf("%+v", r)
	}
	for session, flag := range map[string][]string{"hook": nil, "rule": {"--session"}} {
		if r := w.pawl(append([]string{"approve", session, "c1", "--journal", w.journal}, flag...)...); r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
}
