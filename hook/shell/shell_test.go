//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// bench is hooks in a directory of their own, with what they told people.
type bench struct {
	*shell.Hooks
	dir string

	mu   sync.Mutex
	told []shell.Notice
}

func (b *bench) notify(_ context.Context, n shell.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, n)
}

// notices are those of a kind, as text.
func (b *bench) notices(kind shell.NoticeKind) (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.told {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

func shells(t testing.TB, hooks ...shell.Hook) *bench {
	t.Helper()
	return shellsWith(t, shell.Options{}, hooks...)
}

func shellsWith(t testing.TB, o shell.Options, hooks ...shell.Hook) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir}
	o.Dir, o.Notify = dir, b.notify
	if b.Hooks, err = shell.New(o, hooks...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// use is a call of bash.
func use(id, command string) *hook.ToolUse {
	input, _ := json.Marshal(map[string]string{"command": command})
	return &hook.ToolUse{Where: where, Call: message.ToolCall{ID: id, Name: "bash", Input: string(input)}, Values: map[string]any{}}
}

// judge asks the hooks about a call, as the loop does.
func (b *bench) judge(t testing.TB, u *hook.ToolUse) hook.Decision {
	t.Helper()
	return hook.Judge(t.Context(), []hook.Middleware{b.Middleware()}, u, nil)
}

func (b *bench) after(t testing.TB, u *hook.ToolUse) error {
	t.Helper()
	return hook.After(t.Context(), []hook.Middleware{b.Middleware()}, u)
}

func pre(command string) shell.Hook {
	return shell.Hook{Event: shell.PreToolUse, Name: "h", Command: command}
}

func post(command string) shell.Hook {
	return shell.Hook{Event: shell.PostToolUse, Name: "h", Command: command}
}

// says is a command that answers with JSON.
func says(json string) string { return "cat >/dev/null; printf '%s' '" + json + "'" }

func generation(last string) *hook.Generation {
	return &hook.Generation{
		Where: where, Messages: message.NewHistory(message.User("go")), Response: &model.Response{Message: message.Assistant(last)},
	}
}

// finish asks the hooks when the model stops.
func finish(t testing.TB, m hook.Middleware, g *hook.Generation) (string, []error) {
	t.Helper()
	return hook.Finish(t.Context(), []hook.Middleware{m}, g)
}

func TestAHookReadsTheEventAsJSON(t *testing.T) {
	t.Parallel()
	var hooks []shell.Hook
	for _, e := range []shell.EventType{shell.PreToolUse, shell.PostToolUse, shell.SessionStart, shell.SessionEnd, shell.Stop, shell.SubagentStart, shell.SubagentStop} {
		hooks = append(hooks, shell.Hook{Event: e, Command: "cat >> seen"})
	}
	b := shells(t, hooks...)
	head := func(e string) string {
		return `{"session_id":"s1","cwd":"` + b.dir + `","hook_event_name":"` + e + `",`
	}
	result := use("c2", "make && <test>")
	result.Result, result.Took = &tool.Result{Content: "it failed", IsError: true, Files: make([]message.File, 1)}, 1500*time.Millisecond
	again := generation("all done")
	again.Sent = 1
	fire := func(e shell.EventType, p shell.Payload) {
		if _, err := b.Fire(t.Context(), e, where, p); err != nil {
			t.Error(err)
		}
	}
	want := ""
	for _, c := range []struct {
		do   func()
		want string
	}{
		{
			func() { fire(shell.SessionStart, shell.SessionPayload{Source: "startup", Model: "m"}) },
			head("SessionStart") + `"source":"startup","model":"m"}`,
		},
		{
			func() { b.judge(t, use("c1", "make && <test>")) },
			head("PreToolUse") + `"tool_name":"bash","tool_input":{"command":"make \u0026\u0026 \u003ctest\u003e"},"tool_use_id":"c1"}`,
		},
		{
			func() { _ = b.after(t, result) },
			head("PostToolUse") + `"tool_name":"bash","tool_input":{"command":"make \u0026\u0026 \u003ctest\u003e"},"tool_use_id":"c2",` +
				`"tool_response":{"content":"it failed","is_error":true,"files":1},"tool_result":"it failed","is_error":true,"error":"it failed","duration_ms":1500}`,
		},
		{
			func() { fire(shell.SubagentStart, shell.SubagentPayload{Type: "explore", ID: "s1/c3"}) },
			head("SubagentStart") + `"agent_type":"explore","agent_id":"s1/c3"}`,
		},
		{
			func() {
				fire(shell.SubagentStop, shell.SubagentPayload{Type: "explore", ID: "s1/c3", Name: "x", Stop: &shell.StopPayload{Last: "a < b"}})
			},
			head("SubagentStop") + `"agent_type":"explore","agent_id":"s1/c3","agent_name":"x","stop_hook_active":false,"last_assistant_message":"a < b"}`,
		},
		{
			func() { finish(t, b.Middleware(), generation("all done")) },
			head("Stop") + `"stop_hook_active":false,"last_assistant_message":"all done"}`,
		},
		{
			func() { finish(t, b.Middleware(), again) },
			head("Stop") + `"stop_hook_active":true,"last_assistant_message":"all done"}`,
		},
		{
			func() { fire(shell.SessionEnd, shell.SessionPayload{Reason: "other"}) },
			head("SessionEnd") + `"reason":"other"}`,
		},
	} {
		c.do()
		want += c.want + "\n"
	}
	if diff := cmp.Diff(want, b.read(t, "seen")); diff != "" {
		t.Error(diff)
	}
	if w := b.notices(shell.NoticeWarning); w != nil {
		t.Error(w)
	}
}

func TestAHookRunsInTheProjectWithItsEnvironmentAndNoTerminal(t *testing.T) {
	t.Parallel()
	h := pre(`{ pwd; echo "$CLAUDE_PROJECT_DIR $PAWL_PROJECT_DIR $A-$B-$OTEL_X-$PATH"; (: </dev/tty) 2>/dev/null || echo no terminal; } > out`)
	h.Env = map[string]string{"B": "own", "CLAUDE_PROJECT_DIR": "/elsewhere"}
	b := shellsWith(t, shell.Options{Env: []string{"A=given", "B=given", "OTEL_X=spans", "PATH=" + os.Getenv("PATH")}}, h)
	b.judge(t, use("c", "ls"))
	want := b.dir + "\n" + b.dir + " " + b.dir + " given-own--" + os.Getenv("PATH") + "\nno terminal\n"
	if diff := cmp.Diff(want, b.read(t, "out")); diff != "" {
		t.Error(diff)
	}
}

func TestWithArgsACommandRunsWithoutAShell(t *testing.T) {
	t.Parallel()
	h := shell.Hook{Event: shell.PreToolUse, Command: "${CLAUDE_PROJECT_DIR}/print", Args: []string{"a b", "$HOME;`id`", "${PAWL_PROJECT_DIR}/x", ""}}
	b := shells(t, h)
	if err := os.WriteFile(filepath.Join(b.dir, "print"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\" > out\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.judge(t, use("c", "ls"))
	if got, want := b.read(t, "out"), "<a b><$HOME;`id`><"+b.dir+"/x><>"; got != want {
		t.Errorf("%q, want %q; %v", got, want, b.told)
	}
}

func TestASelectorChoosesEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		selector shell.Selector
		tool     string
		want     bool
	}{
		{shell.Selector{}, "bash", true},
		{shell.Selector{Tool: "*"}, "bash", true},
		{shell.Selector{Tool: "Bash"}, "bash", true},
		{shell.Selector{Tool: "BASH"}, "bash", true},
		{shell.Selector{Tool: "Bas"}, "bash", false},
		{shell.Selector{Tool: "Write|Edit"}, "edit", true},
		{shell.Selector{Tool: "Write, Edit"}, "edit", true},
		{shell.Selector{Tool: "Write|Edit"}, "multiedit", false},
		{shell.Selector{Tool: "mcp__memory"}, "mcp__memory__get", false},
		{shell.Selector{Tool: "mcp__memory__.*"}, "mcp__memory__get", true},
		{shell.Selector{Tool: "mcp__.*__write"}, "mcp__fs__write_file", true},
		{shell.Selector{Tool: "^Notebook"}, "notebook_edit", true},
		{shell.Selector{Tool: "^Notebook"}, "a_notebook", false},
		{shell.Selector{Tool: "Edit.*"}, "multiedit", true},
		{shell.Selector{Tool: "^(?:Write|Edit)$"}, "edit", true},
		{shell.Selector{Tool: "tool-1 , tool_2"}, "tool_2", true},
		{shell.Selector{Payload: `rm\s+-rf`}, "bash", true},
		{shell.Selector{Payload: `&& <x>`}, "bash", true},
		{shell.Selector{Payload: `RM`}, "bash", false},
		{shell.Selector{Payload: `"tool_use_id":"c1"`}, "bash", true},
		{shell.Selector{Payload: `session_id`}, "bash", false},
		{shell.Selector{Tool: "read", Payload: `rm`}, "bash", false},
	} {
		h := pre("exit 2")
		h.Selector = c.selector
		b := shells(t, h)
		u := use("c1", "rm -rf x")
		u.Call.Name, u.Call.Input = c.tool, `{"command":"rm -rf x && <x>"}`
		if got := b.judge(t, u).Verdict == hook.Deny; got != c.want {
			t.Errorf("%+v on %s: %v", c.selector, c.tool, got)
		}
	}
}

func TestAHookWrittenForClaudeCodeKnowsTheToolsByTheirNamesThere(t *testing.T) {
	t.Parallel()
	const tell = `sed 's/.*"tool_name":"\([^"]*\)".*/\1/' >> `
	theirs, both := pre(tell+"theirs"), pre(tell+"both")
	theirs.Claude, theirs.Selector.Tool = true, "AskUserQuestion|Bash|mcp__.*"
	both.Claude, both.Selector.Tool = true, "^ask_user$"
	b := shells(t, theirs, both, pre(tell+"ours"))
	for _, name := range []string{"ask_user", "bash", "mcp__a__b", "read"} {
		u := use("c", "ls")
		u.Call.Name = name
		b.judge(t, u)
		u.Result = &tool.Result{}
	}
	for file, want := range map[string]string{
		"theirs": "AskUserQuestion\nBash\nmcp__a__b\n", "both": "AskUserQuestion\n", "ours": "ask_user\nbash\nmcp__a__b\nread\n",
	} {
		if diff := cmp.Diff(want, b.read(t, file)); diff != "" {
			t.Error(file, diff)
		}
	}
}

func TestAPermissionRuleIsReadByWhoeverKnowsThem(t *testing.T) {
	t.Parallel()
	h := pre("exit 2")
	h.If = "Bash(git *)"
	rules := shell.Options{If: func(rule string) (func(tool, input string) bool, error) {
		if rule != "Bash(git *)" {
			return nil, errors.New("no rule")
		}
		return func(tool, input string) bool { return tool == "bash" && strings.Contains(input, `"git `) }, nil
	}}
	b := shellsWith(t, rules, h)
	if d := b.judge(t, use("c", "git push")); d.Verdict != hook.Deny {
		t.Error(d)
	}
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Continue {
		t.Error(d)
	}
}

func TestAHookThatCouldNeverRunAsItSaysIsAnError(t *testing.T) {
	t.Parallel()
	ok := pre("true")
	change := func(f func(*shell.Hook)) shell.Hook { h := ok; f(&h); return h }
	for name, c := range map[string]struct {
		hook shell.Hook
		says []string
	}{
		"no event":             {change(func(h *shell.Hook) { h.Event = "" }), []string{`there is no event ""`, "PreToolUse"}},
		"another's event":      {change(func(h *shell.Hook) { h.Event = "PreCompact" }), []string{`"PreCompact"`}},
		"no command":           {change(func(h *shell.Hook) { h.Command = " \n" }), []string{"the command is empty"}},
		"NUL":                  {change(func(h *shell.Hook) { h.Args = []string{"a\x00"} }), []string{"NUL"}},
		"a bad matcher":        {change(func(h *shell.Hook) { h.Selector.Tool = "(a" }), []string{`the matcher "(a" is no regular expression`, "missing closing )", "correct it"}},
		"look-ahead":           {change(func(h *shell.Hook) { h.Selector.Tool = "^(?!Bash)" }), []string{"neither look-around"}},
		"a matcher of nothing": {change(func(h *shell.Hook) { h.Selector.Tool = " | ," }), []string{"names nothing"}},
		"a bad payload":        {change(func(h *shell.Hook) { h.Selector.Payload = "a{2,1}" }), []string{`the payload pattern "a{2,1}"`}},
		"a negative timeout":   {change(func(h *shell.Hook) { h.Timeout = -1 }), []string{"the timeout is -1ns"}},
		"a long goodbye":       {shell.Hook{Event: shell.SessionEnd, Command: "true", Timeout: time.Hour}, []string{"1m0s at most"}},
		"a matcher for Stop":   {shell.Hook{Event: shell.Stop, Command: "true", Selector: shell.Selector{Tool: "Bash"}}, []string{"nothing to match in Stop"}},
		"a rule nobody reads":  {change(func(h *shell.Hook) { h.If = "Bash(rm *)" }), []string{"Bash(rm *)", "Options.If"}},
		"a rule for Stop":      {shell.Hook{Event: shell.Stop, Command: "true", If: "Bash"}, []string{"no call in Stop"}},
		"a bad variable":       {change(func(h *shell.Hook) { h.Env = map[string]string{"A=B": ""} }), []string{`"A=B"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.hook.Place = ""
			_, err := shell.New(shell.Options{Dir: "."}, ok, c.hook)
			for _, want := range append(c.says, "hook: hook 2 (") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v doesn't say %s", err, want)
				}
			}
			if name != "a rule nobody reads" && !errdefs.Validation.Is(err) || name == "a rule nobody reads" && !errdefs.NotAvailable.Is(err) {
				t.Error("no class:", err)
			}
			c.hook.Place = "settings.json, line 7"
			if _, err := shell.New(shell.Options{Dir: "."}, c.hook); err == nil || !strings.HasPrefix(err.Error(), "hook: settings.json, line 7 (") {
				t.Error(err)
			}
		})
	}
	rule := change(func(h *shell.Hook) { h.If = "Bash" })
	for _, read := range []func(string) (func(string, string) bool, error){
		func(string) (func(string, string) bool, error) { return nil, errors.New("no such rule") },
		func(string) (func(string, string) bool, error) { return nil, nil },
	} {
		if _, err := shell.New(shell.Options{Dir: ".", If: read}, rule); err == nil {
			t.Error("a rule that can't be read was taken")
		}
	}
	for _, dir := range []string{"", "no-such-directory", "shell.go"} {
		if _, err := shell.New(shell.Options{Dir: dir}, ok); !errdefs.Validation.Is(err) {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
