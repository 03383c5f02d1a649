//go:build unix

package shell_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/tool"
)

func TestContinueFalseEndsTheRun(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	writes := says(`{"hookSpecificOutput":{"updatedInput":{"command":"ls -l"}}}`)
	guard := pre("grep -q 'ls -l' && { echo 'no -l' >&2; exit 2; }; exit 0")
	check := func(input string) (string, error) {
		if strings.Contains(input, "bad") {
			return "", errors.New("bad")
		}
		return input, nil
	}
	for name, c := range map[string]struct {
		hooks []shell.Hook
		want  hook.Decision
	}{
		"taken up":            {[]shell.Hook{pre(writes)}, hook.Decision{Input: `{"command":"ls -l"}`}},
		"judged again":        {[]shell.Hook{guard, pre(writes)}, hook.Decision{Verdict: hook.Deny, Reason: "no -l", Input: `{"command":"ls -l"}`}},
		"the last one":        {[]shell.Hook{pre(says(`{"hookSpecificOutput":{"updatedInput":{"command":"a"}}}`)), pre(writes)}, hook.Decision{Input: `{"command":"ls -l"}`}},
		"checked":             {[]shell.Hook{pre(says(`{"hookSpecificOutput":{"updatedInput":{"command":"bad"}}}`))}, hook.Denied("a hook rewrote the input to one that is not valid: bad")},
		"null is none":        {[]shell.Hook{pre(says(`{"hookSpecificOutput":{"updatedInput":null}}`))}, hook.Decision{}},
		"with what else says": {[]shell.Hook{pre(says(`{"decision":"ask","reason":"sure?","hookSpecificOutput":{"updatedInput":{"command":"x"},"additionalContext":"c"}}`))}, hook.Decision{Verdict: hook.Ask, Reason: "sure?", Input: `{"command":"x"}`, Context: "c"}},
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
			var hooks []shell.Hook
			for _, command := range c.commands {
				hooks = append(hooks, shell.Hook{Event: shell.Stop, Name: "h", Command: command})
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

func TestSubagentsAreToldOfAndSentBack(t *testing.T) {
	t.Parallel()
	b := shells(t,
		shell.Hook{Event: shell.SubagentStart, Selector: shell.Selector{Tool: "explore"}, Command: `cat >> seen; echo ignored; printf ''`},
		shell.Hook{Event: shell.SubagentStart, Command: says(`{"hookSpecificOutput":{"additionalContext":"be brief"}}`)},
		shell.Hook{Event: shell.SubagentStop, Command: `cat >> seen; echo 'name your sources' >&2; exit 2`})
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
	b = shells(t, shell.Hook{Event: shell.SubagentStart, Command: says(`{"continue":false,"stopReason":"no explorers today"}`)})
	err := hook.Prepare(t.Context(), []hook.Middleware{b.Subagent(hook.Where{}, "explore")}, generation(""))
	if !errdefs.Aborted.Is(err) || !strings.Contains(err.Error(), "no explorers today") {
		t.Error(err)
	}
	if m := b.Subagent(where, "x"); m.PostGeneration != nil {
		t.Error("a point without hooks costs something")
	}
}

func TestFireTakesWhatFits(t *testing.T) {
	t.Parallel()
	b := shells(t)
	for _, c := range []struct {
		event   shell.EventType
		payload shell.Payload
		ok      bool
	}{
		{shell.SessionStart, shell.SessionPayload{Source: "resume"}, true},
		{shell.SessionEnd, shell.SessionPayload{Reason: "other"}, true},
		{shell.SubagentStart, shell.SubagentPayload{}, true},
		{shell.SubagentStop, shell.SubagentPayload{Stop: &shell.StopPayload{}}, true},
		{shell.SessionStart, shell.SessionPayload{Reason: "other"}, false},
		{shell.SessionEnd, shell.SessionPayload{Source: "startup"}, false},
		{shell.SubagentStart, shell.SubagentPayload{Stop: &shell.StopPayload{}}, false},
		{shell.SubagentStop, shell.SubagentPayload{}, false},
		{shell.SessionStart, nil, false},
		{shell.PreToolUse, shell.ToolUsePayload{}, false},
		{shell.Stop, shell.StopPayload{}, false},
		{"Notification", shell.SessionPayload{}, false},
	} {
		if _, err := b.Fire(t.Context(), c.event, where, c.payload); (err == nil) != c.ok || err != nil && !errdefs.Validation.Is(err) {
			t.Errorf("%s %T: %v", c.event, c.payload, err)
		}
	}
}

func TestASettingsFileWrittenForClaudeCodeWorksAtAllSevenEvents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/settings_hooks.json")
	if err != nil {
		t.Fatal(err)
	}
	hooks, _, err := shell.Decode(text)
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
	fire := func(e shell.EventType, p shell.Payload) string {
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
	if got := fire(shell.SessionStart, shell.SessionPayload{Source: "clear"}) + fire(shell.SessionStart, shell.SessionPayload{Source: "startup"}); got != "The release branch is frozen." {
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
	fire(shell.SubagentStart, shell.SubagentPayload{Type: "plan"})
	fire(shell.SubagentStart, shell.SubagentPayload{Type: "Explore"})
	fire(shell.SubagentStop, shell.SubagentPayload{Type: "plan", Stop: &shell.StopPayload{}})
	if seen := b.read(t, "subagent.json"); strings.Count(seen, "\n") != 2 || !strings.Contains(seen, `"Explore"`) {
		t.Error(seen)
	}
	if fire(shell.SessionEnd, shell.SessionPayload{Reason: "other"}); !strings.Contains(b.read(t, "end.json"), `"reason":"other"`) {
		t.Error("no end")
	}
	if err := b.Close(t.Context()); err != nil || !strings.Contains(b.read(t, "audit.log"), "mcp__notes__add") {
		t.Error(err, "no audit", b.told)
	}
}

func TestShellIsForWhatNeedsNoCare(t *testing.T) {
	t.Parallel()
	stop := shell.Hook{Event: shell.Stop, Command: "echo more >&2; exit 2"}
	m, err := shell.Middleware(shell.Options{Dir: t.TempDir()}, pre("echo no >&2; exit 2"), stop)
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
	for _, h := range []shell.Hook{async, {Event: shell.SessionStart, Command: "true"}, {Event: shell.SubagentStop, Command: "true"}} {
		if _, err := shell.Middleware(shell.Options{Dir: "."}, h); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "shell.New") {
			t.Error(err)
		}
	}
	if _, err := shell.Middleware(shell.Options{Dir: "."}, pre("")); err == nil {
		t.Error("no command")
	}
}
