//go:build unix

package loop_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/tool"
)

func TestShellHooksJudgeARun(t *testing.T) {
	json := func(s string) string { return "printf '%s' '" + s + "'" }
	m, err := shell.Middleware(shell.Options{Dir: t.TempDir()},
		shell.Hook{Event: shell.PreToolUse, Selector: shell.Selector{Tool: "Read", Payload: "secret"}, Command: "echo 'no secrets' >&2; exit 2"},
		shell.Hook{Event: shell.PreToolUse, Selector: shell.Selector{Tool: "Read", Payload: `"a"`}, Command: json(`{"hookSpecificOutput":{"updatedInput":{"file":"b"},"additionalContext":"a is b now"}}`)},
		shell.Hook{Event: shell.PostToolUse, Selector: shell.Selector{Payload: "content of b"}, Command: json(`{"decision":"block","reason":"b is old"}`)},
		shell.Hook{Event: shell.Stop, Command: "grep -q '\"stop_hook_active\":true' || { echo 'are you sure?' >&2; exit 2; }"},
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	d := play{cfg: loop.Config{
		Model: plays(uses(call("1", "read", `{"path":"secret"}`), call("2", "read", `{"path":"a"}`)), says("done"), says("yes")), Tools: []tool.Tool{reads(&got)}, Hooks: []hook.Middleware{m},
	}}.do(t)
	name := `printf '%s' '{"decision":"block","reason":"b is old"}'`
	want := []string{
		`assistant:  <1 read {"path":"secret"}> <2 read {"path":"a"}>`,
		"tool:  [1 no secrets !] [2 content of b\nThe hook " + name + " says: b is old\na is b now]",
		"assistant: done", "user: are you sure?", "assistant: yes",
	}
	if diff := cmp.Diff(want, d.since()); diff != "" || d.err != nil || strings.Join(got, " ") != "b" {
		t.Error(d.err, got, diff)
	}
}
