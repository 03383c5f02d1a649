//go:build unix

package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// bench is hooks in a directory of their own, with what they told people.
type bench struct {
	*hook.Shells
	dir string

	mu   sync.Mutex
	told []hook.Notice
}

func (b *bench) notify(_ context.Context, n hook.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, n)
}

// notices are those of a kind, as text.
func (b *bench) notices(kind hook.NoticeKind) (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.told {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

func shells(t testing.TB, hooks ...hook.ShellHook) *bench {
	t.Helper()
	return shellsWith(t, hook.ShellOptions{}, hooks...)
}

func shellsWith(t testing.TB, o hook.ShellOptions, hooks ...hook.ShellHook) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: dir}
	o.Dir, o.Notify = dir, b.notify
	if b.Shells, err = hook.NewShells(o, hooks...); err != nil {
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

var where = hook.Where{Agent: "pawl", Session: "s1", Run: "r1"}

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

func pre(command string) hook.ShellHook {
	return hook.ShellHook{Event: hook.PreToolUse, Name: "h", Command: command}
}

func post(command string) hook.ShellHook {
	return hook.ShellHook{Event: hook.PostToolUse, Name: "h", Command: command}
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
	var hooks []hook.ShellHook
	for _, e := range []hook.EventType{hook.PreToolUse, hook.PostToolUse, hook.SessionStart, hook.SessionEnd, hook.Stop, hook.SubagentStart, hook.SubagentStop} {
		hooks = append(hooks, hook.ShellHook{Event: e, Command: "cat >> seen"})
	}
	b := shells(t, hooks...)
	head := func(e string) string {
		return `{"session_id":"s1","cwd":"` + b.dir + `","hook_event_name":"` + e + `",`
	}
	result := use("c2", "make && <test>")
	result.Result, result.Took = &tool.Result{Content: "it failed", IsError: true, Files: make([]message.File, 1)}, 1500*time.Millisecond
	again := generation("all done")
	again.Sent = 1
	fire := func(e hook.EventType, p hook.Payload) {
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
			func() { fire(hook.SessionStart, hook.SessionPayload{Source: "startup", Model: "m"}) },
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
			func() { fire(hook.SubagentStart, hook.SubagentPayload{Type: "explore", ID: "s1/c3"}) },
			head("SubagentStart") + `"agent_type":"explore","agent_id":"s1/c3"}`,
		},
		{
			func() {
				fire(hook.SubagentStop, hook.SubagentPayload{Type: "explore", ID: "s1/c3", Name: "x", Stop: &hook.StopPayload{Last: "a < b"}})
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
			func() { fire(hook.SessionEnd, hook.SessionPayload{Reason: "other"}) },
			head("SessionEnd") + `"reason":"other"}`,
		},
	} {
		c.do()
		want += c.want + "\n"
	}
	if diff := cmp.Diff(want, b.read(t, "seen")); diff != "" {
		t.Error(diff)
	}
	if w := b.notices(hook.NoticeWarning); w != nil {
		t.Error(w)
	}
}

func TestAHookRunsInTheProjectWithItsEnvironmentAndNoTerminal(t *testing.T) {
	h := pre(`{ pwd; echo "$CLAUDE_PROJECT_DIR $PAWL_PROJECT_DIR $A-$B-$OTEL_X-$PATH"; (: </dev/tty) 2>/dev/null || echo no terminal; } > out`)
	h.Env = map[string]string{"B": "own", "CLAUDE_PROJECT_DIR": "/elsewhere"}
	b := shellsWith(t, hook.ShellOptions{Env: []string{"A=given", "B=given", "OTEL_X=spans", "PATH=" + os.Getenv("PATH")}}, h)
	b.judge(t, use("c", "ls"))
	want := b.dir + "\n" + b.dir + " " + b.dir + " given-own--" + os.Getenv("PATH") + "\nno terminal\n"
	if diff := cmp.Diff(want, b.read(t, "out")); diff != "" {
		t.Error(diff)
	}
}

func TestWithArgsACommandRunsWithoutAShell(t *testing.T) {
	h := hook.ShellHook{Event: hook.PreToolUse, Command: "${CLAUDE_PROJECT_DIR}/print", Args: []string{"a b", "$HOME;`id`", "${PAWL_PROJECT_DIR}/x", ""}}
	b := shells(t, h)
	if err := os.WriteFile(filepath.Join(b.dir, "print"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\" > out\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.judge(t, use("c", "ls"))
	if got, want := b.read(t, "out"), "<a b><$HOME;`id`><"+b.dir+"/x><>"; got != want {
		t.Errorf("%q, want %q; %v", got, want, b.told)
	}
}

func TestAnExitCodeDecides(t *testing.T) {
	deny := `{"decision":"block","reason":"by JSON"}`
	allow := `{"decision":"approve","reason":"by JSON"}`
	for name, c := range map[string]struct {
		command string
		want    hook.Decision
		warns   string
	}{
		"0 without output":               {"exit 0", hook.Decision{}, ""},
		"0 with words":                   {"echo hello", hook.Decision{}, ""},
		"0 with a JSON text":             {`echo '"deny"'`, hook.Decision{}, ""},
		"0 with an answer":               {says(deny), hook.Denied("by JSON"), ""},
		"0 with words on stderr":         {"echo deny >&2", hook.Decision{}, ""},
		"2 refuses, for stderr's reason": {"echo 'not on' >&2; echo Sundays >&2; exit 2", hook.Denied("not on\nSundays"), ""},
		"2 with JSON: it doesn't count":  {says(allow) + "; echo no >&2; exit 2", hook.Denied("no"), ""},
		"2 without a reason":             {"exit 2", hook.Denied("The hook h refuses this call."), ""},
		"1 decides nothing":              {"echo oops >&2; exit 1", hook.Decision{}, "exit code 1, which decides nothing (2 refuses): oops"},
		"1 with an answer":               {says(deny) + "; exit 1", hook.Decision{}, "exit code 1"},
		"127 decides nothing":            {"no-such-command-here", hook.Decision{}, "exit code 127"},
		"255 decides nothing":            {"exit 255", hook.Decision{}, "exit code 255, which decides nothing (2 refuses)"},
		"a signal denies":                {"kill -KILL $$", hook.Denied("The hook h did not give its answer, so the call is refused: it was killed by SIGKILL"), "killed by SIGKILL"},
		"and that of its command":        {"sh -c 'kill -SEGV $$'; exit $?", hook.Denied("The hook h did not give its answer, so the call is refused: it was killed by signal 11"), "signal 11"},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, pre(c.command))
			if diff := cmp.Diff(c.want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
			if w := strings.Join(b.notices(hook.NoticeWarning), "\n"); (w != "") != (c.warns != "") || !strings.Contains(w, c.warns) {
				t.Errorf("warns %q, want %q", w, c.warns)
			}
		})
	}
}

func TestAnAnswerDecidesInEitherSpelling(t *testing.T) {
	special := func(members string) string {
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse",` + members + `}}`
	}
	for name, c := range map[string]struct {
		json string
		want hook.Decision
	}{
		"nothing":                       {`{}`, hook.Decision{}},
		"approve":                       {`{"decision":"approve","reason":"r"}`, hook.Allowed("r")},
		"allow":                         {`{"decision":"allow"}`, hook.Allowed("")},
		"block":                         {`{"decision":"block","reason":"r"}`, hook.Denied("r")},
		"deny, in capitals":             {`{"decision":"Deny","reason":"r"}`, hook.Denied("r")},
		"block without a reason":        {`{"decision":"block"}`, hook.Denied("The hook h refuses this call.")},
		"ask":                           {`{"decision":"ask","reason":"r"}`, hook.Asking("r")},
		"no decision":                   {`{"decision":null,"hookSpecificOutput":null}`, hook.Decision{}},
		"an empty one":                  {`{"decision":"","reason":"r"}`, hook.Decision{Reason: ""}},
		"permission: allow":             {special(`"permissionDecision":"allow","permissionDecisionReason":"r"`), hook.Allowed("r")},
		"permission: deny":              {special(`"permissionDecision":"deny","permissionDecisionReason":"r"`), hook.Denied("r")},
		"permission: ask":               {special(`"permissionDecision":"ask","permissionDecisionReason":"r"`), hook.Asking("r")},
		"permission: defer is ask":      {special(`"permissionDecision":"defer","permissionDecisionReason":"r"`), hook.Asking("r")},
		"without the event's name":      {`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, hook.Denied("r")},
		"both: the stricter":            {`{"decision":"approve","reason":"a","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"d"}}`, hook.Denied("d")},
		"both, the other way round":     {`{"decision":"block","reason":"a","hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"d"}}`, hook.Denied("a")},
		"the other one's reason":        {`{"reason":"a","hookSpecificOutput":{"permissionDecision":"deny"}}`, hook.Denied("a")},
		"additional context":            {special(`"additionalContext":"main is frozen"`), hook.Decision{Context: "main is frozen"}},
		"with a denial":                 {special(`"permissionDecision":"deny","permissionDecisionReason":"r","additionalContext":"c"`), hook.Decision{Verdict: hook.Deny, Reason: "r", Context: "c"}},
		"white space around":            {"\n\n  {\"decision\":\"block\",\"reason\":\"r\"}\n\n", hook.Denied("r")},
		"what nobody knows":             {`{"decision":"block","reason":"r","novelty":{"a":[1]}}`, hook.Denied("r")},
		"continue":                      {`{"continue":true}`, hook.Decision{}},
		"continue: false denies":        {`{"continue":false,"stopReason":"enough"}`, hook.Denied("enough")},
		"whatever else is said":         {`{"continue":false,"decision":"approve"}`, hook.Denied("the hook h ended the run")},
		"a decision that is none":       {`{"decision":"perhaps"}`, no(`its decision is "perhaps": want approve, allow, block, deny or ask`)},
		"a permission that is none":     {special(`"permissionDecision":"block"`), hook.Denied("The hook h refuses this call.")},
		"nor is this":                   {special(`"permissionDecision":"maybe"`), no(`its permissionDecision is "maybe": want allow, deny, ask or defer`)},
		"continue as text":              {`{"continue":"false"}`, no("its continue is of the type string: want bool")},
		"a decision that is no text":    {`{"decision":{"block":true}}`, no("its decision is of the type object: want string")},
		"broken JSON":                   {`{"decision":"block","reason":"he said "no""}`, no("invalid character 'n' after object key:value pair")},
		"half of it":                    {`{"decision":"block"`, no("unexpected end of JSON input")},
		"two answers":                   {`{"decision":"approve"}{"decision":"block"}`, no("invalid character '{' after top-level value")},
		"of another event":              {`{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`, no(`its hookEventName is "PostToolUse", not "PreToolUse"`)},
		"what is longer than an answer": {`{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, no("it is longer than 1048576 bytes")},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, pre("cat answer"))
			if err := os.WriteFile(filepath.Join(b.dir, "answer"), []byte(c.json), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// no is the denial for an answer that is none.
func no(why string) hook.Decision {
	return hook.Denied("The hook h did not give its answer, so the call is refused: what it wrote begins like an answer in JSON and is none: " + why)
}

func TestContinueFalseEndsTheRun(t *testing.T) {
	b := shells(t, pre(says(`{"continue":false,"stopReason":"the budget is spent"}`)), post(says(`{"continue":false}`)))
	u := use("c", "ls")
	if b.judge(t, u); u.Ends() != "the budget is spent" {
		t.Errorf("%q", u.Ends())
	}
	u = use("c", "ls")
	u.Result = &tool.Result{Content: "out"}
	if err := b.after(t, u); err != nil || u.Ends() != "a hook ended the run" || u.Result.Content != "out" {
		t.Error(err, u.Ends(), u.Result)
	}
}

func TestANewInputIsCheckedAndJudgedAgainByTheOthers(t *testing.T) {
	writes := says(`{"hookSpecificOutput":{"updatedInput":{"command":"ls -l"}}}`)
	guard := pre("grep -q 'ls -l' && { echo 'no -l' >&2; exit 2; }; exit 0")
	check := func(input string) (string, error) {
		if strings.Contains(input, "bad") {
			return "", errors.New("bad")
		}
		return input, nil
	}
	for name, c := range map[string]struct {
		hooks []hook.ShellHook
		want  hook.Decision
	}{
		"taken up":            {[]hook.ShellHook{pre(writes)}, hook.Decision{Input: `{"command":"ls -l"}`}},
		"judged again":        {[]hook.ShellHook{guard, pre(writes)}, hook.Decision{Verdict: hook.Deny, Reason: "no -l", Input: `{"command":"ls -l"}`}},
		"the last one":        {[]hook.ShellHook{pre(says(`{"hookSpecificOutput":{"updatedInput":{"command":"a"}}}`)), pre(writes)}, hook.Decision{Input: `{"command":"ls -l"}`}},
		"checked":             {[]hook.ShellHook{pre(says(`{"hookSpecificOutput":{"updatedInput":{"command":"bad"}}}`))}, hook.Denied("a hook rewrote the input to one that is not valid: bad")},
		"null is none":        {[]hook.ShellHook{pre(says(`{"hookSpecificOutput":{"updatedInput":null}}`))}, hook.Decision{}},
		"with what else says": {[]hook.ShellHook{pre(says(`{"decision":"ask","reason":"sure?","hookSpecificOutput":{"updatedInput":{"command":"x"},"additionalContext":"c"}}`))}, hook.Decision{Verdict: hook.Ask, Reason: "sure?", Input: `{"command":"x"}`, Context: "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, c.hooks...)
			u := use("c", "ls")
			got := hook.Judge(t.Context(), []hook.Middleware{b.Middleware()}, u, check)
			if name == "the last one" { // the first one goes on about the second's
				if got.Verdict != hook.Deny || !strings.Contains(got.Reason, "without agreeing") {
					t.Error(got)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAHookIsNotAskedAboutWhatItMadeItself(t *testing.T) {
	wrap := pre(`echo x >> asked; in=$(cat); cmd=${in#*'"command":"'}; cmd=${cmd%%'"'*}; printf '{"hookSpecificOutput":{"permissionDecision":"ask","updatedInput": {"command":"nice %s"}}}' "$cmd"`)
	audit := pre(`cat >> log`)
	b := shells(t, wrap, audit)
	d := b.judge(t, use("c", "make"))
	if want := (hook.Decision{Verdict: hook.Ask, Input: `{"command":"nice make"}`}); d != want {
		t.Error(d)
	}
	if got := b.read(t, "asked"); got != "x\n" {
		t.Errorf("asked %q", got)
	}
	if log := b.read(t, "log"); strings.Count(log, "\n") != 2 || !strings.Contains(log, `"nice make"`) {
		t.Error("the others see what will run:", log)
	}
	if d := b.judge(t, use("d", "nice make")); d.Input != `{"command":"nice nice make"}` {
		t.Error("another call is another matter:", d)
	}
}

func TestAPostToolUseHookTellsTheModel(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    tool.Result
		err     string
	}{
		"nothing":               {"exit 0", tool.Result{Content: "out"}, ""},
		"stderr of exit code 2": {"echo 'gofmt is not content' >&2; exit 2", tool.Result{Content: "out\nThe hook h says: gofmt is not content"}, ""},
		"nothing by it":         {"exit 2", tool.Result{Content: "out\nThe hook h says: it objects, and does not say why"}, ""},
		"a block's reason":      {says(`{"decision":"block","reason":"no"}`), tool.Result{Content: "out\nThe hook h says: no"}, ""},
		"context":               {says(`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"c"}}`), tool.Result{Content: "out\nc"}, ""},
		"another text":          {says(`{"hookSpecificOutput":{"updatedToolOutput":"hidden","additionalContext":"c"}}`), tool.Result{Content: "hidden\nc"}, ""},
		"an empty one":          {says(`{"hookSpecificOutput":{"updatedToolOutput":""}}`), tool.Result{}, ""},
		"an object":             {says(`{"hookSpecificOutput":{"updatedMCPToolOutput":{"a":1}}}`), tool.Result{Content: `{"a":1}`}, ""},
		"another exit code":     {"exit 3", tool.Result{Content: "out"}, ""},
		"words":                 {"echo formatted", tool.Result{Content: "out"}, ""},
		"withheld by a signal":  {"kill -9 $$", tool.Result{Content: "The result was withheld by shell hooks.", IsError: true}, "hook shell hooks: h: it was killed by SIGKILL"},
		"withheld by no answer": {`printf '{"decision":'`, tool.Result{Content: "The result was withheld by shell hooks.", IsError: true}, "unexpected end of JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			b := shells(t, post(c.command))
			u := use("c", "ls")
			u.Result = &tool.Result{Content: "out"}
			err := b.after(t, u)
			if diff := cmp.Diff(c.want, *u.Result); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Error(err)
			}
		})
	}
}

func TestAStopHookSendsTheModelBack(t *testing.T) {
	for name, c := range map[string]struct {
		commands []string
		again    string
		errs     int
		later    string // told at the session's next run
	}{
		"content":            {[]string{"exit 0"}, "", 0, ""},
		"exit code 2":        {[]string{"echo 'run the tests' >&2; exit 2"}, "run the tests", 0, ""},
		"block":              {[]string{says(`{"decision":"block","reason":"and lint"}`)}, "and lint", 0, ""},
		"both":               {[]string{"echo 'run the tests' >&2; exit 2", says(`{"decision":"block","reason":"and lint"}`)}, "run the tests\nand lint", 0, ""},
		"without a reason":   {[]string{"exit 2"}, "The hook h does not let you stop yet.", 0, ""},
		"approve":            {[]string{says(`{"decision":"approve"}`)}, "", 0, ""},
		"ask is no decision": {[]string{says(`{"decision":"ask","reason":"?"}`)}, "", 0, ""},
		"continue: false":    {[]string{"echo more >&2; exit 2", says(`{"continue":false,"stopReason":"enough"}`)}, "", 0, ""},
		"context":            {[]string{says(`{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"}}`)}, "", 0, "From the hooks of this project:\nc"},
		"one that fails":     {[]string{"kill -9 $$", "echo more >&2; exit 2"}, "more", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var hooks []hook.ShellHook
			for _, command := range c.commands {
				hooks = append(hooks, hook.ShellHook{Event: hook.Stop, Name: "h", Command: command})
			}
			b := shells(t, hooks...)
			again, errs := finish(t, b.Middleware(), generation("done"))
			if again != c.again || len(errs) != c.errs {
				t.Errorf("%q %v", again, errs)
			}
			next := generation("")
			if err := hook.Prepare(t.Context(), []hook.Middleware{b.Middleware()}, next); err != nil {
				t.Error(err)
			}
			if got := next.Messages.At(0).Text(); c.later != "" && got != c.later || c.later == "" && next.Messages.Len() != 1 {
				t.Errorf("later %q", got)
			}
		})
	}
}

func TestTheModelHearsWhatASessionStartHookSaysOnce(t *testing.T) {
	b := shells(t,
		hook.ShellHook{Event: hook.SessionStart, Command: "echo branch: main"},
		hook.ShellHook{Event: hook.SessionStart, Command: says(`{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"deploys are frozen"}}`)},
		hook.ShellHook{Event: hook.SessionStart, Command: "echo resumed", Selector: hook.Selector{Tool: "resume"}})
	o, err := b.Fire(t.Context(), hook.SessionStart, where, hook.SessionPayload{Source: "startup"})
	if want := (hook.Outcome{Context: "branch: main\ndeploys are frozen"}); o != want || err != nil {
		t.Error(o, err)
	}
	prepare := func(session string) (texts []string) {
		g := &hook.Generation{Where: hook.Where{Session: session}, Messages: message.NewHistory(message.User("old"), message.Assistant("yes"), message.User("new"))}
		if err := hook.Prepare(t.Context(), []hook.Middleware{b.Middleware()}, g); err != nil {
			t.Error(err)
		}
		for _, m := range g.Messages.All() {
			texts = append(texts, string(m.Role())+": "+m.Text())
		}
		return texts
	}
	plain := []string{"user: old", "assistant: yes", "user: new"}
	if diff := cmp.Diff(plain, prepare("other")); diff != "" {
		t.Error("another session:", diff)
	}
	want := slices.Insert(slices.Clone(plain), 2, "user: From the hooks of this project:\nbranch: main\ndeploys are frozen")
	if diff := cmp.Diff(want, prepare("s1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(plain, prepare("s1")); diff != "" {
		t.Error("the second time:", diff)
	}
}

func TestSubagentsAreToldOfAndSentBack(t *testing.T) {
	b := shells(t,
		hook.ShellHook{Event: hook.SubagentStart, Selector: hook.Selector{Tool: "explore"}, Command: `cat >> seen; echo ignored; printf ''`},
		hook.ShellHook{Event: hook.SubagentStart, Command: says(`{"hookSpecificOutput":{"additionalContext":"be brief"}}`)},
		hook.ShellHook{Event: hook.SubagentStop, Command: `cat >> seen; echo 'name your sources' >&2; exit 2`})
	m := b.Subagent(where, "Explore")
	g := generation("found it")
	g.Where = hook.Where{Agent: "explore-1", Session: "s1/c", Run: "r2"}
	if err := hook.Prepare(t.Context(), []hook.Middleware{m}, g); err != nil || g.Messages.At(0).Text() != "From the hooks of this project:\nbe brief" {
		t.Error(err, g.Messages.At(0).Text())
	}
	if again, errs := finish(t, m, g); again != "name your sources" || errs != nil {
		t.Error(again, errs)
	}
	head := `{"session_id":"s1","cwd":"` + b.dir + `","hook_event_name":"`
	want := head + `SubagentStart","agent_type":"Explore","agent_id":"s1/c","agent_name":"explore-1"}` + "\n" +
		head + `SubagentStop","agent_type":"Explore","agent_id":"s1/c","agent_name":"explore-1","stop_hook_active":false,"last_assistant_message":"found it"}` + "\n"
	if diff := cmp.Diff(want, b.read(t, "seen")); diff != "" {
		t.Error(diff)
	}
	b = shells(t, hook.ShellHook{Event: hook.SubagentStart, Command: says(`{"continue":false,"stopReason":"no explorers today"}`)})
	err := hook.Prepare(t.Context(), []hook.Middleware{b.Subagent(hook.Where{}, "explore")}, generation(""))
	if !errdefs.Aborted.Is(err) || !strings.Contains(err.Error(), "no explorers today") {
		t.Error(err)
	}
	if m := b.Subagent(where, "x"); m.PostGeneration != nil {
		t.Error("a point without hooks costs something")
	}
}

func TestFireTakesWhatFits(t *testing.T) {
	b := shells(t)
	for _, c := range []struct {
		event   hook.EventType
		payload hook.Payload
		ok      bool
	}{
		{hook.SessionStart, hook.SessionPayload{Source: "resume"}, true},
		{hook.SessionEnd, hook.SessionPayload{Reason: "other"}, true},
		{hook.SubagentStart, hook.SubagentPayload{}, true},
		{hook.SubagentStop, hook.SubagentPayload{Stop: &hook.StopPayload{}}, true},
		{hook.SessionStart, hook.SessionPayload{Reason: "other"}, false},
		{hook.SessionEnd, hook.SessionPayload{Source: "startup"}, false},
		{hook.SubagentStart, hook.SubagentPayload{Stop: &hook.StopPayload{}}, false},
		{hook.SubagentStop, hook.SubagentPayload{}, false},
		{hook.SessionStart, nil, false},
		{hook.PreToolUse, hook.ToolUsePayload{}, false},
		{hook.Stop, hook.StopPayload{}, false},
		{"Notification", hook.SessionPayload{}, false},
	} {
		if _, err := b.Fire(t.Context(), c.event, where, c.payload); (err == nil) != c.ok || err != nil && !errdefs.Validation.Is(err) {
			t.Errorf("%s %T: %v", c.event, c.payload, err)
		}
	}
}

func TestASelectorChoosesEvents(t *testing.T) {
	for _, c := range []struct {
		selector hook.Selector
		tool     string
		want     bool
	}{
		{hook.Selector{}, "bash", true},
		{hook.Selector{Tool: "*"}, "bash", true},
		{hook.Selector{Tool: "Bash"}, "bash", true},
		{hook.Selector{Tool: "BASH"}, "bash", true},
		{hook.Selector{Tool: "Bas"}, "bash", false},
		{hook.Selector{Tool: "Write|Edit"}, "edit", true},
		{hook.Selector{Tool: "Write, Edit"}, "edit", true},
		{hook.Selector{Tool: "Write|Edit"}, "multiedit", false},
		{hook.Selector{Tool: "mcp__memory"}, "mcp__memory__get", false},
		{hook.Selector{Tool: "mcp__memory__.*"}, "mcp__memory__get", true},
		{hook.Selector{Tool: "mcp__.*__write"}, "mcp__fs__write_file", true},
		{hook.Selector{Tool: "^Notebook"}, "notebook_edit", true},
		{hook.Selector{Tool: "^Notebook"}, "a_notebook", false},
		{hook.Selector{Tool: "Edit.*"}, "multiedit", true},
		{hook.Selector{Tool: "^(?:Write|Edit)$"}, "edit", true},
		{hook.Selector{Tool: "tool-1 , tool_2"}, "tool_2", true},
		{hook.Selector{Payload: `rm\s+-rf`}, "bash", true},
		{hook.Selector{Payload: `&& <x>`}, "bash", true},
		{hook.Selector{Payload: `RM`}, "bash", false},
		{hook.Selector{Payload: `"tool_use_id":"c1"`}, "bash", true},
		{hook.Selector{Payload: `session_id`}, "bash", false},
		{hook.Selector{Tool: "read", Payload: `rm`}, "bash", false},
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
	h := pre("exit 2")
	h.If = "Bash(git *)"
	rules := hook.ShellOptions{If: func(rule string) (func(tool, input string) bool, error) {
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

func TestHooksOfOneEventRunAtTheSameTimeAndAnswerInOrder(t *testing.T) {
	meet := func(mine, other, then string) hook.ShellHook {
		return pre("touch " + mine + "; until [ -e " + other + " ]; do sleep 0.01; done; " + then)
	}
	b := shells(t,
		meet("a", "b", "until [ -e b.done ]; do sleep 0.01; done; echo first >&2; exit 2"),
		meet("b", "a", "echo second >&2; touch b.done; exit 2"))
	if d := b.judge(t, use("c", "ls")); d != hook.Denied("first") {
		t.Error(d)
	}
}

func TestManyHooksOfOneEventAreAllAsked(t *testing.T) {
	var hooks []hook.ShellHook
	for i := range 20 {
		hooks = append(hooks, pre(fmt.Sprintf("echo %d >> ran", i)))
	}
	b := shells(t, append(hooks, pre("exit 2"))...)
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny {
		t.Error(d)
	}
	if n := len(strings.Fields(b.read(t, "ran"))); n != 20 {
		t.Error(n, "ran")
	}
}

func TestIdenticalHooksRunOnce(t *testing.T) {
	h := pre("echo ran >> ran")
	same, slow, env, exe, once := h, h, h, h, h
	same.Name, same.Selector.Tool, same.StatusMessage = "other", "bash", "…"
	slow.Timeout = time.Hour
	env.Env = map[string]string{"A": "1"}
	exe.Command, exe.Args = "sh", []string{"-c", h.Command}
	once.Once = true
	for name, c := range map[string]struct {
		hooks []hook.ShellHook
		times int
	}{
		"one":                     {[]hook.ShellHook{h}, 1},
		"the same":                {[]hook.ShellHook{h, h, same}, 1},
		"another timeout":         {[]hook.ShellHook{h, slow}, 2},
		"another environment":     {[]hook.ShellHook{h, env, env}, 2},
		"without a shell":         {[]hook.ShellHook{h, exe, exe}, 2},
		"once":                    {[]hook.ShellHook{h, once, once}, 2},
		"the default, said aloud": {[]hook.ShellHook{h, {Event: hook.PreToolUse, Command: h.Command, Timeout: 10 * time.Minute}}, 1},
	} {
		b := shells(t, c.hooks...)
		b.judge(t, use("c", "ls"))
		if n := len(strings.Fields(b.read(t, "ran"))); n != c.times {
			t.Errorf("%s: ran %d times, want %d", name, n, c.times)
		}
	}
}

func TestAOnceHookRunsOnceInASession(t *testing.T) {
	one, two := pre("echo one >> ran"), pre("echo two >> ran")
	one.Once, two.Once = true, true
	b := shells(t, one, two) // of the same matcher: two hooks all the same
	in := func(session, run, call string) {
		u := use(call, "ls")
		u.Session, u.Run = session, run
		b.judge(t, u)
	}
	ran := func() int { return len(strings.Fields(b.read(t, "ran"))) }
	for _, c := range []struct {
		session, run, call string
		want               int
	}{
		{"s1", "r1", "c1", 2},
		{"s1", "r1", "c2", 2},
		{"s1", "r2", "c3", 2},
		{"s2", "r3", "c1", 4},
		{"", "r4", "c1", 6}, // no session: a run
		{"", "r4", "c2", 6},
		{"", "r5", "c1", 8},
		{"", "", "c1", 10}, // nor that: always
		{"", "", "c1", 12},
	} {
		if in(c.session, c.run, c.call); ran() != c.want {
			t.Errorf("%+v: ran %d times", c, ran())
		}
	}
	if _, err := b.Fire(t.Context(), hook.SessionEnd, where, hook.SessionPayload{Reason: "clear"}); err != nil {
		t.Error(err)
	}
	if in("s1", "r6", "c9"); ran() != 14 {
		t.Error("after the session's end:", ran())
	}
}

func TestAOnceHookThatGaveNoAnswerHasNotRun(t *testing.T) {
	for name, command := range map[string]string{"killed": "echo x >> ran; kill -9 $$", "failed": "echo x >> ran; exit 1"} {
		h := pre(command)
		h.Once = true
		b := shells(t, h)
		b.judge(t, use("c1", "ls"))
		b.judge(t, use("c2", "ls"))
		if n := len(strings.Fields(b.read(t, "ran"))); n != 2 {
			t.Errorf("%s: ran %d times", name, n)
		}
	}
}

func TestAOnceHookIsHeardToTheEndOfItsCall(t *testing.T) {
	h := pre("echo sure >&2; exit 2")
	h.Once, h.Command = true, says(`{"decision":"ask","reason":"the first time?"}`)
	changes := pre(`grep -q '"ls"' && printf '{"hookSpecificOutput":{"updatedInput":{"command":"ls -l"}}}'; exit 0`)
	b := shells(t, h, changes)
	if d := b.judge(t, use("c1", "ls")); d.Verdict != hook.Ask || d.Input == "" {
		t.Error("a rewrite must not get round it:", d)
	}
	if d := b.judge(t, use("c2", "pwd")); d.Verdict != hook.Continue {
		t.Error(d)
	}
}

// word is a number of seconds to sleep, five minutes and a fraction that occurs in no other process.
func word() string { return fmt.Sprintf("300.%015d", rand.Int64N(1e15)) }

// sleepers counts the living processes whose command line has a word.
func sleepers(t *testing.T, word string) (n int) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-ww", "-eo", "stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "Z") && strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// hostile are hooks that don't end; %s is a word.
var hostile = map[string]string{
	"itself":                      `exec sleep %s`,
	"a grandchild":                `sh -c "sh -c 'sleep %s; true'; true"; true`,
	"deaf to SIGTERM":             `trap "" TERM; sleep %s; sleep %[1]s; sleep %[1]s`,
	"in a session of its own":     `setsid sh -c 'trap "" TERM; sleep %s; sleep %[1]s' & wait`,
	"a daemon of another session": `setsid sh -c 'setsid sleep %s >/dev/null 2>&1 & exit'; sleep %[1]s`,
	"output without end":          `sleep %s & yes "so much to say"`,
	"errors without end":          `sleep %s & yes "so much to say" >&2`,
	"binary without end":          `sleep %s & cat /dev/zero`,
	"input that is never read":    `exec 0<&-; sleep %s`,
}

func TestAHookThatIsNotDoneInTimeDeniesAndIsKilledWithAllThatItStarted(t *testing.T) {
	for name, command := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			h := pre(fmt.Sprintf(command, id))
			h.Timeout = 500 * time.Millisecond
			b := shells(t, h)
			want := hook.Denied("The hook h did not give its answer, so the call is refused: it was not done after 500ms and was killed: make it faster, or give it a longer timeout")
			if diff := cmp.Diff(want, b.judge(t, use("c", "ls"))); diff != "" {
				t.Error(diff)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
			if w := b.notices(hook.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "not done after 500ms") {
				t.Error(w)
			}
		})
	}
}

func TestACancelledContextEndsTheHookAndIsTheError(t *testing.T) {
	for name, command := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			h := pre(fmt.Sprintf(command, id))
			h.StatusMessage = "judging"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := hook.NewShells(hook.ShellOptions{Dir: t.TempDir(), Notify: func(_ context.Context, n hook.Notice) {
				if n.Kind == hook.NoticeStatus {
					cancel()
				}
			}}, h)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close(context.Background()) }()
			if d, err := s.Middleware().PreToolUse(ctx, use("c", "ls")); !errors.Is(err, context.Canceled) || d != (hook.Decision{}) {
				t.Error(d, err)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
		})
	}
}

func TestEveryPointGivesTheErrorOfItsContext(t *testing.T) {
	var hooks []hook.ShellHook
	for _, e := range []hook.EventType{hook.PreToolUse, hook.PostToolUse, hook.Stop, hook.SessionEnd} {
		hooks = append(hooks, hook.ShellHook{Event: e, Command: "touch ran"})
	}
	b := shells(t, hooks...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := b.Middleware()
	u := use("c", "ls")
	u.Result = &tool.Result{}
	_, pre := m.PreToolUse(ctx, u)
	_, end := b.Fire(ctx, hook.SessionEnd, where, hook.SessionPayload{Reason: "other"})
	for i, err := range []error{pre, m.PostToolUse(ctx, u), m.PostGeneration(ctx, generation("")), end} {
		if !errors.Is(err, context.Canceled) {
			t.Error(i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
		t.Error("a hook ran")
	}
	other := post("true")
	other.Selector.Tool = "read"
	b = shells(t, other)
	u.Result = &tool.Result{Content: "what came until the cancel"}
	if err := b.Middleware().PostToolUse(ctx, u); err != nil {
		t.Error("no hook is for it, and its result is withheld:", err)
	}
}

func TestAHookHasATimeoutOfItsOwn(t *testing.T) {
	dir, warned := t.TempDir(), ""
	slow, patient := pre("sleep "+word()), pre("until [ -e late ]; do sleep 0.01; done; echo no >&2; exit 2")
	slow.Timeout = 100 * time.Millisecond
	s, err := hook.NewShells(hook.ShellOptions{Dir: dir, Notify: func(_ context.Context, n hook.Notice) {
		warned = n.Text
		if err := os.WriteFile(filepath.Join(dir, "late"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}}, patient, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if d := hook.Judge(t.Context(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil); d != hook.Denied("no") || !strings.Contains(warned, "100ms") {
		t.Error("the patient one has its time:", d, warned)
	}
}

func TestOutputInAnyShapeIsSurvived(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    hook.Verdict
		warns   string
	}{
		"much of it":                  {"head -c 5000000 /dev/zero | tr '\\0' x", hook.Continue, ""},
		"much on stderr":              {"head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 2", hook.Deny, ""},
		"binary":                      {"head -c 10000 /dev/urandom >&2; printf '\\377\\376\\0\\1'", hook.Continue, ""},
		"binary as a reason":          {"printf 'a\\377\\0b' >&2; exit 2", hook.Deny, ""},
		"input that is not read":      {"exit 0", hook.Continue, ""},
		"input that is closed":        {"exec 0<&-; exit 2", hook.Deny, ""},
		"pipes held by a grandchild":  {"sleep %s & exit 2", hook.Deny, "left behind"},
		"in a session of its own":     {"setsid sleep %s & exit 0", hook.Continue, "left behind"},
		"by one that ignores SIGTERM": {"(trap '' TERM; sleep %s; sleep %[1]s) & exit 2", hook.Deny, "left behind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := word()
			if strings.Contains(c.command, "%s") {
				c.command = fmt.Sprintf(c.command, id)
			}
			b := shells(t, pre(c.command))
			u := use("c", strings.Repeat("long ", 1<<18)) // more than a pipe holds
			d := b.judge(t, u)
			if d.Verdict != c.want || len(d.Reason) > 40_100 || !strings.Contains(strings.Join(b.notices(hook.NoticeWarning), ""), c.warns) {
				t.Error(d.Verdict, len(d.Reason), b.notices(hook.NoticeWarning))
			}
			if strings.Contains(d.Reason, "\x00") || name == "binary as a reason" && d.Reason != "a\uFFFDb" {
				t.Errorf("%q", d.Reason)
			}
			if n := sleepers(t, id); n > 0 {
				t.Error(n, "processes live on")
			}
		})
	}
}

func TestTextsAreCutOffAfterTenThousandCharactersAndSayIt(t *testing.T) {
	long, note := strings.Repeat("é", 10_001), strings.Repeat("é", 10_000)+"\n[cut off after 10000 characters]"
	b := shells(t, pre("cat answer"), pre("cat words >&2; exit 2"))
	answer, _ := json.Marshal(map[string]any{
		"decision": "ask", "reason": long, "systemMessage": long,
		"hookSpecificOutput": map[string]any{"additionalContext": long, "updatedInput": map[string]string{"command": long}},
	})
	for name, text := range map[string]string{"answer": string(answer), "words": strings.Repeat("é", 10_000)} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := b.judge(t, use("c", "ls"))
	if d.Reason != strings.Repeat("é", 10_000) || d.Context != note {
		t.Error(len(d.Reason), len(d.Context))
	}
	if m := b.notices(hook.NoticeMessage); len(m) != 1 || m[0] != note {
		t.Error(len(m))
	}
	b = shells(t, pre("cat answer"))
	if err := os.WriteFile(filepath.Join(b.dir, "answer"), answer, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := b.judge(t, use("c", "ls")); d.Reason != note || d.Input != `{"command":"`+long+`"}` {
		t.Error("an input is no text to be cut:", len(d.Reason), len(d.Input))
	}
}

func TestPeopleAreToldWhatHooksSay(t *testing.T) {
	loud, quiet := pre(says(`{"systemMessage":"look out"}`)), pre(says(`{"systemMessage":"psst","suppressOutput":true}`))
	loud.StatusMessage = "looking"
	end := hook.ShellHook{Event: hook.SessionEnd, Name: "h", Command: says(`{"decision":"block","reason":"stay","hookSpecificOutput":{"additionalContext":"c","updatedInput":{},"updatedToolOutput":"x"}}`)}
	b := shells(t, loud, end)
	b.judge(t, use("c", "ls"))
	want := []hook.Notice{
		{Where: where, Event: hook.PreToolUse, Hook: "h", Kind: hook.NoticeStatus, Text: "looking"},
		{Where: where, Event: hook.PreToolUse, Hook: "h", Kind: hook.NoticeOutput, Text: `{"systemMessage":"look out"}`},
		{Where: where, Event: hook.PreToolUse, Hook: "h", Kind: hook.NoticeMessage, Text: "look out"},
	}
	if diff := cmp.Diff(want, b.told); diff != "" {
		t.Error(diff)
	}
	if got := b.told[2].String(); got != "PreToolUse hook h: look out" {
		t.Error(got)
	}
	if _, err := b.Fire(t.Context(), hook.SessionEnd, where, hook.SessionPayload{Reason: "other"}); err != nil {
		t.Error(err)
	}
	wants := []string{"updatedInput has no effect but in PreToolUse", "updatedToolOutput has no effect but in PostToolUse", "there is nothing to refuse in SessionEnd: stay", "no model hears additionalContext after SessionEnd"}
	if diff := cmp.Diff(wants, b.notices(hook.NoticeWarning)); diff != "" {
		t.Error(diff)
	}
	b = shells(t, quiet)
	b.judge(t, use("c", "ls"))
	if out := b.notices(hook.NoticeOutput); out != nil || len(b.notices(hook.NoticeMessage)) != 1 {
		t.Error(out)
	}
}

func TestANotifyThatPanicsHurtsNobody(t *testing.T) {
	s, err := hook.NewShells(hook.ShellOptions{Dir: t.TempDir(), Notify: func(context.Context, hook.Notice) { panic("boom") }}, pre("echo no >&2; exit 2"), pre("exit 1"), pre("echo out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if d := hook.Judge(t.Context(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil); d != hook.Denied("no") {
		t.Error(d)
	}
}

func TestAHookInTheBackgroundHoldsNothingUpAndIsWaitedForByClose(t *testing.T) {
	h := pre("until [ -e go ]; do sleep 0.01; done; touch ended; echo no >&2; exit 2")
	h.Async = true
	b := shells(t, h)
	if d := b.judge(t, use("c", "ls")); d != (hook.Decision{}) {
		t.Error(d)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "ended")); err != nil {
		t.Error("Close did not wait")
	}
	if w := b.notices(hook.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "comes too late") {
		t.Error(w)
	}
}

func TestCloseKillsWhatItCannotWaitFor(t *testing.T) {
	id := word()
	h := pre("trap '' TERM; sleep " + id + "; sleep " + id)
	h.Async = true
	b := shells(t, h)
	b.judge(t, use("c", "ls"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := sleepers(t, id); n > 0 {
		t.Error(n, "processes live on")
	}
	if w := b.notices(hook.NoticeWarning); len(w) != 1 || !strings.Contains(w[0], "was killed") {
		t.Error(w)
	}
}

func TestCloseStopsWhatHooksLeftBehind(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("processes can be found by their environment only where there is /proc")
	}
	id := word()
	b := shells(t, pre("sleep "+id+" >/dev/null 2>&1 & exit 0"))
	b.judge(t, use("c", "ls"))
	if n := sleepers(t, id); n != 1 {
		t.Error(n, "live before")
	}
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n := sleepers(t, id); n > 0 {
		t.Error(n, "live on")
	}
}

func TestAfterCloseCallsAreRefused(t *testing.T) {
	b := shells(t, pre("exit 0"), hook.ShellHook{Event: hook.SessionStart, Command: "true"})
	_ = b.Close(context.Background())
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "closed") {
		t.Error(d)
	}
	if _, err := b.Fire(t.Context(), hook.SessionStart, where, hook.SessionPayload{Source: "startup"}); !errdefs.NotAvailable.Is(err) {
		t.Error(err)
	}
}

func TestAHookThatIsUnderWayAtCloseDenies(t *testing.T) {
	h := pre("sleep " + word())
	h.StatusMessage = "judging"
	began := make(chan struct{})
	s, err := hook.NewShells(hook.ShellOptions{Dir: t.TempDir(), Notify: func(_ context.Context, n hook.Notice) {
		if n.Kind == hook.NoticeStatus {
			close(began)
		}
	}}, h)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan hook.Decision)
	go func() {
		got <- hook.Judge(context.Background(), []hook.Middleware{s.Middleware()}, use("c", "ls"), nil)
	}()
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(ctx)
	if d := <-got; d.Verdict != hook.Deny || !strings.Contains(d.Reason, "closed") {
		t.Error(d)
	}
}

func TestTheBackgroundHasAnEnd(t *testing.T) {
	h := pre("echo x >> began; until [ -e go ]; do sleep 0.01; done")
	h.Async = true
	b := shells(t, h)
	for i := range 16 {
		b.judge(t, use(fmt.Sprint("c", i), "ls"))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.Middleware().PreToolUse(ctx, use("c16", "ls")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the next one waits:", err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Middleware().PreToolUse(t.Context(), use("c17", "ls")); err != nil {
		t.Error(err)
	}
	_ = b.Close(context.Background())
	if n := len(strings.Fields(b.read(t, "began"))); n != 17 {
		t.Error(n)
	}
}

func TestAHookThatCannotBeStartedDenies(t *testing.T) {
	b := shells(t, hook.ShellHook{Event: hook.PreToolUse, Name: "h", Command: "no-such-program-here", Args: []string{}})
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "could not be started") {
		t.Error(d)
	}
	b = shells(t, pre("exit 0"))
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	if d := b.judge(t, use("c", "ls")); d.Verdict != hook.Deny || !strings.Contains(d.Reason, "could not be started") {
		t.Error("its directory is gone:", d)
	}
}

func TestAHookThatCouldNeverRunAsItSaysIsAnError(t *testing.T) {
	ok := pre("true")
	change := func(f func(*hook.ShellHook)) hook.ShellHook { h := ok; f(&h); return h }
	for name, c := range map[string]struct {
		hook hook.ShellHook
		says []string
	}{
		"no event":             {change(func(h *hook.ShellHook) { h.Event = "" }), []string{`there is no event ""`, "PreToolUse"}},
		"another's event":      {change(func(h *hook.ShellHook) { h.Event = "PreCompact" }), []string{`"PreCompact"`}},
		"no command":           {change(func(h *hook.ShellHook) { h.Command = " \n" }), []string{"the command is empty"}},
		"NUL":                  {change(func(h *hook.ShellHook) { h.Args = []string{"a\x00"} }), []string{"NUL"}},
		"a bad matcher":        {change(func(h *hook.ShellHook) { h.Selector.Tool = "(a" }), []string{`the matcher "(a" is no regular expression`, "missing closing )", "correct it"}},
		"look-ahead":           {change(func(h *hook.ShellHook) { h.Selector.Tool = "^(?!Bash)" }), []string{"neither look-around"}},
		"a matcher of nothing": {change(func(h *hook.ShellHook) { h.Selector.Tool = " | ," }), []string{"names nothing"}},
		"a bad payload":        {change(func(h *hook.ShellHook) { h.Selector.Payload = "a{2,1}" }), []string{`the payload pattern "a{2,1}"`}},
		"a negative timeout":   {change(func(h *hook.ShellHook) { h.Timeout = -1 }), []string{"the timeout is -1ns"}},
		"a long goodbye":       {hook.ShellHook{Event: hook.SessionEnd, Command: "true", Timeout: time.Hour}, []string{"1m0s at most"}},
		"a matcher for Stop":   {hook.ShellHook{Event: hook.Stop, Command: "true", Selector: hook.Selector{Tool: "Bash"}}, []string{"nothing to match in Stop"}},
		"a rule nobody reads":  {change(func(h *hook.ShellHook) { h.If = "Bash(rm *)" }), []string{"Bash(rm *)", "ShellOptions.If"}},
		"a rule for Stop":      {hook.ShellHook{Event: hook.Stop, Command: "true", If: "Bash"}, []string{"no call in Stop"}},
		"a bad variable":       {change(func(h *hook.ShellHook) { h.Env = map[string]string{"A=B": ""} }), []string{`"A=B"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.hook.Place = ""
			_, err := hook.NewShells(hook.ShellOptions{Dir: "."}, ok, c.hook)
			for _, want := range append(c.says, "hook: hook 2 (") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v doesn't say %s", err, want)
				}
			}
			if name != "a rule nobody reads" && !errdefs.Validation.Is(err) || name == "a rule nobody reads" && !errdefs.NotAvailable.Is(err) {
				t.Error("no class:", err)
			}
			c.hook.Place = "settings.json, line 7"
			if _, err := hook.NewShells(hook.ShellOptions{Dir: "."}, c.hook); err == nil || !strings.HasPrefix(err.Error(), "hook: settings.json, line 7 (") {
				t.Error(err)
			}
		})
	}
	rule := change(func(h *hook.ShellHook) { h.If = "Bash" })
	for _, read := range []func(string) (func(string, string) bool, error){
		func(string) (func(string, string) bool, error) { return nil, errors.New("no such rule") },
		func(string) (func(string, string) bool, error) { return nil, nil },
	} {
		if _, err := hook.NewShells(hook.ShellOptions{Dir: ".", If: read}, rule); err == nil {
			t.Error("a rule that can't be read was taken")
		}
	}
	for _, dir := range []string{"", "no-such-directory", "shell.go"} {
		if _, err := hook.NewShells(hook.ShellOptions{Dir: dir}, ok); !errdefs.Validation.Is(err) {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

func TestASettingsFileWrittenForClaudeCodeWorksAtAllSevenEvents(t *testing.T) {
	text, err := os.ReadFile("testdata/settings_hooks.json")
	if err != nil {
		t.Fatal(err)
	}
	hooks, _, err := hook.DecodeShellHooks(text)
	if err != nil {
		t.Fatal(err)
	}
	b := shells(t, hooks...)
	for name, script := range map[string]string{
		"no-force-push.sh": `#!/bin/sh
case $(cat) in *'git push --force'*) printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"No force."}}';; esac`,
		"audit.sh": "#!/bin/sh\ncat >> \"$2\"",
	} {
		path := filepath.Join(b.dir, ".claude", "hooks", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fire := func(e hook.EventType, p hook.Payload) string {
		o, err := b.Fire(t.Context(), e, where, p)
		if err != nil {
			t.Error(err)
		}
		return o.Context + o.Again
	}
	edit := func(path string) *hook.ToolUse {
		u := use("c", "")
		u.Call.Name, u.Call.Input = "edit", `{"file_path":"`+path+`","old_string":"a","new_string":"b"}`
		return u
	}
	if got := fire(hook.SessionStart, hook.SessionPayload{Source: "clear"}) + fire(hook.SessionStart, hook.SessionPayload{Source: "startup"}); got != "The release branch is frozen." {
		t.Error(got)
	}
	if d := b.judge(t, use("c", "git push --force")); d != hook.Denied("No force.") {
		t.Error(d)
	}
	if d := b.judge(t, use("c", "git push")); d != (hook.Decision{}) {
		t.Error(d)
	}
	if d := b.judge(t, edit("src/vendor/x.go")); d != hook.Denied("vendor/ is not ours to edit") {
		t.Error(d)
	}
	u := edit("main.go")
	if d := b.judge(t, u); d != (hook.Decision{}) {
		t.Error(d)
	}
	u.Result = &tool.Result{Content: "done"}
	if err := b.after(t, u); err != nil || !strings.HasSuffix(u.Result.Content, "says: formatted") || !strings.Contains(b.read(t, "last-edit.json"), `"file_path":"main.go"`) {
		t.Error(err, u.Result, b.read(t, "last-edit.json"))
	}
	u = use("c", "")
	u.Call.Name = "mcp__notes__add"
	b.judge(t, u)
	again, _ := finish(t, b.Middleware(), generation("done"))
	g := generation("done")
	g.Sent = 1
	if twice, _ := finish(t, b.Middleware(), g); again != "Run the tests before you stop." || twice != "" {
		t.Error(again, twice)
	}
	fire(hook.SubagentStart, hook.SubagentPayload{Type: "plan"})
	fire(hook.SubagentStart, hook.SubagentPayload{Type: "Explore"})
	fire(hook.SubagentStop, hook.SubagentPayload{Type: "plan", Stop: &hook.StopPayload{}})
	if seen := b.read(t, "subagent.json"); strings.Count(seen, "\n") != 2 || !strings.Contains(seen, `"Explore"`) {
		t.Error(seen)
	}
	if fire(hook.SessionEnd, hook.SessionPayload{Reason: "other"}); !strings.Contains(b.read(t, "end.json"), `"reason":"other"`) {
		t.Error("no end")
	}
	if err := b.Close(t.Context()); err != nil || !strings.Contains(b.read(t, "audit.log"), "mcp__notes__add") {
		t.Error(err, "no audit", b.told)
	}
}

func TestShellIsForWhatNeedsNoCare(t *testing.T) {
	stop := hook.ShellHook{Event: hook.Stop, Command: "echo more >&2; exit 2"}
	m, err := hook.Shell(hook.ShellOptions{Dir: t.TempDir()}, pre("echo no >&2; exit 2"), stop)
	if err != nil {
		t.Fatal(err)
	}
	if d := hook.Judge(t.Context(), []hook.Middleware{m}, use("c", "ls"), nil); d != hook.Denied("no") {
		t.Error(d)
	}
	if again, _ := finish(t, m, generation("")); again != "more" || m.PostToolUse != nil || m.Name != "shell hooks" {
		t.Error(again, m)
	}
	async := pre("true")
	async.Async = true
	for _, h := range []hook.ShellHook{async, {Event: hook.SessionStart, Command: "true"}, {Event: hook.SubagentStop, Command: "true"}} {
		if _, err := hook.Shell(hook.ShellOptions{Dir: "."}, h); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "NewShells") {
			t.Error(err)
		}
	}
	if _, err := hook.Shell(hook.ShellOptions{Dir: "."}, pre("")); err == nil {
		t.Error("no command")
	}
}
