package shell_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook/shell"
)

func decoded(t testing.TB, text string) ([]shell.Hook, []string) {
	t.Helper()
	hooks, problems, err := shell.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return hooks, lined(problems)
}

func lined(problems []shell.Problem) (lines []string) {
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return lines
}

func TestAClaudeCodeSettingsFileIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/settings_hooks.json")
	if err != nil {
		t.Fatal(err)
	}
	hooks, problems := decoded(t, string(text))
	type row struct {
		Event   shell.EventType
		Matcher string
		Timeout time.Duration
		Args    []string
		Async   bool
		Status  string
		Place   string
	}
	var got []row
	for _, h := range hooks {
		got = append(got, row{h.Event, h.Selector.Tool, h.Timeout, h.Args, h.Async, h.StatusMessage, h.Place})
	}
	want := []row{
		{shell.PreToolUse, "Bash", 10 * time.Second, nil, false, "Checking the command", "line 6"},
		{shell.PreToolUse, "Write|Edit", 0, nil, false, "", "line 17"},
		{shell.PreToolUse, "mcp__.*", 0, []string{"--to", "audit.log"}, true, "", "line 31"},
		{shell.PostToolUse, "Edit|Write", 30 * time.Second, nil, false, "", "line 44"},
		{shell.SessionStart, "startup|resume", 0, nil, false, "", "line 58"},
		{shell.Stop, "", 0, nil, false, "", "line 64"},
		{shell.SubagentStart, "explore", 0, nil, false, "", "line 73"},
		{shell.SubagentStop, "", 0, nil, false, "", "line 76"},
		{shell.SessionEnd, "", 5 * time.Second, nil, false, "", "line 79"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wants := []string{
		"line 22: PreToolUse[1].hooks[1].type: hooks of the type prompt are not supported, only command is: this one does not run",
		"line 52: UserPromptSubmit: Claude Code's event UserPromptSubmit is not supported: its hooks don't run",
		"line 68: Stop[0].hooks[1].type: hooks of the type http are not supported, only command is: this one does not run",
		"line 81: Notification: Claude Code's event Notification is not supported: its hooks don't run",
	}
	if diff := cmp.Diff(wants, problems); diff != "" {
		t.Error(diff)
	}
}

func TestEveryEventOfClaudeCodeIsSupportedOrReported(t *testing.T) {
	t.Parallel()
	all := strings.Fields(`SessionStart Setup UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied PostToolUse PostToolUseFailure
		PostToolBatch Notification MessageDisplay SubagentStart SubagentStop TaskCreated TaskCompleted Stop StopFailure TeammateIdle InstructionsLoaded ConfigChange
		CwdChanged DirectoryAdded FileChanged WorktreeCreate WorktreeRemove PreCompact PostCompact Elicitation ElicitationResult SessionEnd`)
	if len(all) != 31 {
		t.Fatal(len(all))
	}
	supported := 0
	for _, e := range all {
		hooks, problems := decoded(t, fmt.Sprintf(`{%q: [{"hooks": [{"type": "command", "command": "true"}]}]}`, e))
		if len(hooks) == 1 && problems == nil {
			supported++
		} else if len(hooks) != 0 || len(problems) != 1 || !strings.Contains(problems[0], "Claude Code's event "+e+" is not supported") {
			t.Error(e, hooks, problems)
		}
	}
	if supported != 7 {
		t.Error(supported, "are supported")
	}
}

func TestTheOlderFormIsReadInTheOrderOfTheText(t *testing.T) {
	t.Parallel()
	hooks, problems := decoded(t, `{
		"PreToolUse": {"z": "first", "Bash": ["second", "third"], "a|b": "fourth", "*": "fifth"},
		"Stop": {"*": "sixth"},
		"PostToolUse": [],
		"SessionStart": null}`)
	if problems != nil || hooks == nil {
		t.Error(problems)
	}
	var got []string
	for _, h := range hooks {
		got = append(got, fmt.Sprintf("%s %s %s %s", h.Place, h.Event, h.Selector.Tool, h.Command))
	}
	want := []string{
		"line 2 PreToolUse z first", "line 2 PreToolUse Bash second", "line 2 PreToolUse Bash third", "line 2 PreToolUse a|b fourth", "line 2 PreToolUse * fifth",
		"line 3 Stop * sixth",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, nothing := range []string{"{}", "null", " {\n} "} {
		if hooks, problems := decoded(t, nothing); len(hooks)+len(problems) != 0 {
			t.Error(nothing, hooks, problems)
		}
	}
}

func TestEveryMemberOfAHookHasAnEffect(t *testing.T) {
	t.Parallel()
	hooks, problems := decoded(t, `{"PreToolUse": [{"matcher": "x", "hooks": [
		{"type": "command", "command": "c", "args": [], "timeout": 1.5, "if": "Bash(git *)", "payload": "p+", "env": {"A": "1"}, "async": true, "once": true, "name": "n",
		 "statusMessage": "s", "description": "for people"},
		{"command": "no type", "shell": "bash"},
		{"type": "command", "command": "c", "shell": "sh"}]}]}`)
	want := []shell.Hook{
		{
			Event: shell.PreToolUse, Name: "n", Command: "c", Args: []string{}, Selector: shell.Selector{Tool: "x", Payload: "p+"}, If: "Bash(git *)", Timeout: 1500 * time.Millisecond,
			Env: map[string]string{"A": "1"}, Async: true, Once: true, StatusMessage: "s", Claude: true, Place: "line 2",
		},
		{Event: shell.PreToolUse, Name: "no type", Command: "bash", Args: []string{"-c", "no type"}, Selector: shell.Selector{Tool: "x"}, Claude: true, Place: "line 4"},
		{Event: shell.PreToolUse, Command: "c", Selector: shell.Selector{Tool: "x"}, Claude: true, Place: "line 5"},
	}
	if diff := cmp.Diff(want, hooks); diff != "" || problems != nil {
		t.Error(diff, problems)
	}
}

func TestWhatHasNoEffectIsAProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	in := func(event, hook string) string { return "{\n" + `"` + event + `": [{"hooks": [` + "\n" + hook + "]}]}" }
	command := `{"type": "command", "command": "c"`
	for name, c := range map[string]struct {
		text  string
		want  string
		hooks int
	}{
		"an event of ours, misspelt": {in("PreToolUSe", command+"}"), "line 2: PreToolUSe: there is no event PreToolUSe, did you mean PreToolUse? Its hooks don't run", 0},
		"an event of nobody":         {in("Brunch", command+"}"), "line 2: Brunch: there is no event Brunch: its hooks don't run; the events are SessionStart, PreToolUse,", 0},
		"one that another serves":    {in("PostToolUseFailure", command+"}"), "PostToolUse is fired for tools that fail too", 0},
		"a type":                     {in("Stop", `{"type": "agent", "prompt": "p", "model": "m"}`), "line 3: Stop[0].hooks[0].type: hooks of the type agent are not supported", 0},
		"an MCP tool":                {in("Stop", `{"type": "mcp_tool", "server": "s", "tool": "t"}`), "hooks of the type mcp_tool", 0},
		"a shell":                    {in("Stop", command+`, "shell": "powershell"}`), "line 3: Stop[0].hooks[0].shell: the shell powershell is not supported", 0},
		"waking the model":           {in("Stop", command+`, "asyncRewake": true}`), "line 3: Stop[0].hooks[0].asyncRewake: waking the model is not supported", 1},
		"a member":                   {in("Stop", command+`, "url": "http://x"}`), "line 3: Stop[0].hooks[0].url: a command has no such member", 1},
		"a member of the group":      {`{"Stop": [{"hooks": [], "color": "red"}]}`, "line 1: Stop[0].color: there is no member color", 0},
		"a matcher of Stop":          {`{"Stop": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "c"}]}]}`, `there is nothing to match in Stop: the matcher "Bash" has no effect`, 1},
		"a rule of Stop":             {in("Stop", command+`, "if": "Bash"}`), "a permission rule (Bash) is for tool events", 0},
		"a long goodbye":             {in("SessionEnd", command+`, "timeout": 600}`), "SessionEnd has 1m0s at most", 1},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, problems := decoded(t, c.text)
			if len(problems) != 1 || !strings.Contains(problems[0], c.want) || len(hooks) != c.hooks {
				t.Errorf("%q, want %q; %d hooks", problems, c.want, len(hooks))
			}
			if _, err := shell.New(shell.Options{Dir: "."}, hooks...); err != nil {
				t.Error("what is left has to run:", err)
			}
		})
	}
}

func TestWhatCannotBeUnderstoodIsAnErrorWithItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":             {"{\n\"Stop\": [}\n", "hook: line 2: hooks: not JSON: invalid character '}'"},
		"nothing":             {"", "not JSON: unexpected end"},
		"a list":              {"[]", "line 1: hooks: want an object in braces"},
		"more behind it":      {"{}\n{}", "line 2: hooks: not JSON"},
		"the file around it":  {"{\n\"hooks\": {}}", `line 2: hooks: this is the file around the hooks: give what stands behind "hooks"`},
		"an event of text":    {"{\n\"Stop\": \"c\"}", "line 2: Stop: want a list of {matcher, hooks}"},
		"a group of text":     {`{"Stop": ["c"]}`, "line 1: Stop[0]: want an object in braces"},
		"a group of nothing":  {`{"Stop": [{}]}`, "Stop[0]: has no hooks"},
		"hooks of text":       {`{"Stop": [{"hooks": "c"}]}`, "Stop[0].hooks: want a list in brackets"},
		"a hook of text":      {`{"Stop": [{"hooks": ["c"]}]}`, "Stop[0].hooks[0]: want an object in braces"},
		"an empty hook":       {`{"Stop": [{"hooks": [{}]}]}`, "has neither a type nor a command"},
		"no command":          {`{"Stop": [{"hooks": [{"type": "command"}]}]}`, "has no command: give one"},
		"a blank command":     {`{"Stop": {"*": "  "}}`, `Stop["*"]: has no command`},
		"a command of 1":      {"{\"Stop\": [{\"hooks\":\n[\n{\"command\": 1}]}]}", "line 3: Stop[0].hooks[0].command: want a command in quotes"},
		"an older one of 1":   {`{"Stop": {"*": 1}}`, `Stop["*"]: want a command in quotes`},
		"a matcher of 1":      {`{"Stop": [{"matcher": 1, "hooks": []}]}`, "Stop[0].matcher: want a pattern in quotes"},
		"a bad matcher":       {"{\"PreToolUse\": [\n{\"matcher\": \"a(\", \"hooks\": [{\"command\": \"c\"}]}]}", `line 2: PreToolUse[0].hooks[0]: the matcher "a(" is no regular expression`},
		"a timeout of text":   {`{"Stop": [{"hooks": [{"command": "c", "timeout": "5s"}]}]}`, "timeout: want a number of seconds"},
		"a timeout of 0":      {`{"Stop": [{"hooks": [{"command": "c", "timeout": 0}]}]}`, "timeout: the timeout is 0: give a number of seconds, more than 0"},
		"a negative timeout":  {`{"Stop": [{"hooks": [{"command": "c", "timeout": -1}]}]}`, "the timeout is -1"},
		"an eternal timeout":  {`{"Stop": [{"hooks": [{"command": "c", "timeout": 1e300}]}]}`, "the timeout is 1e+300"},
		"async of text":       {`{"Stop": [{"hooks": [{"command": "c", "async": "no"}]}]}`, "async: want true or false"},
		"two commands in one": {`{"Stop": [{"hooks": [{"command": "c", "command": "d"}]}]}`, "command: it is there twice in Stop[0].hooks[0]"},
		"two lists in one":    {`{"Stop": [{"hooks": [{"command": "c"}], "hooks": []}]}`, "hooks: it is there twice in Stop[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, _, err := shell.Decode([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !errdefs.Validation.Is(err) || hooks != nil {
				t.Errorf("%v, want %s; %v", err, c.want, hooks)
			}
		})
	}
}

func TestAnEventThatStandsThereTwiceHasTheHooksOfBoth(t *testing.T) {
	t.Parallel()
	hooks, _ := decoded(t, `{"Stop": {"*": "a"}, "Stop": {"*": "b"}}`)
	if len(hooks) != 2 {
		t.Error(hooks)
	}
}

func FuzzDecodeShellHooks(f *testing.F) {
	text, err := os.ReadFile("testdata/settings_hooks.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`{"PreToolUse": {"Bash": ["a", "b"]}, "Stop": [{"hooks": [{"type": "http"}, {"command": "c", "timeout": 1e9, "args": null, "env": {"": ""}}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		hooks, problems, err := shell.Decode([]byte(text))
		if err != nil {
			if !errdefs.Validation.Is(err) || hooks != nil {
				t.Error(err, hooks)
			}
			return
		}
		lines := 1 + strings.Count(text, "\n")
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Text == "" {
				t.Errorf("%+v", p)
			}
		}
		for i, h := range hooks {
			if h.If != "" || len(h.Env) > 0 || strings.ContainsRune(h.Command+strings.Join(h.Args, ""), 0) { // only New knows
				continue
			}
			if _, err := shell.New(shell.Options{Dir: "."}, h); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		if !json.Valid([]byte(text)) {
			t.Error("it is no JSON")
		}
	})
}
