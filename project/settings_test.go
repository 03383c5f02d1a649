package project_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox/fence"
	"github.com/pawl-dev/pawl/tool/mcp"
)

func TestAnEmptyDirectoryHasTheDefaults(t *testing.T) {
	w := newWorld(t)
	p := w.load()
	wantNoProblem(t, p)
	s := p.Settings
	if s.Permissions.Mode != permission.ModeDefault || !s.Gitignore || s.Compat || s.SandboxSet || s.Sandbox.Off || !s.Sandbox.Network.All || s.Sandbox.Root != w.root || p.Prompt() != "" || len(p.Skills) != 0 {
		t.Errorf("%+v", s)
	}
}

func rules(p *project.Project, v hook.Verdict) (out []string) {
	for _, r := range p.Settings.Permissions.Rules {
		if r.Verdict == v {
			out = append(out, r.Text)
		}
	}
	return out
}

func TestListsAddUpOverTheLayersAndADenyStays(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"permissions": {"deny": ["Read(.env)", "WebFetch"]}, "disallowedTools": ["bash"]}`)
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash(rm:*)", "Read(.env)"], "ask": ["Edit(go.mod)"]}}`)
	w.put(".agents/settings.local.json", `{"permissions": {"deny": [], "allow": ["Read(.env)"]}, "disallowedTools": ["write", "bash"]}`)
	p := w.load(project.WithTrusted(), project.WithOverrides(json.RawMessage(`{"permissions": {"deny": null, "allow": ["WebFetch"]}}`)))
	wantNoProblem(t, p)
	if d := cmp.Diff([]string{"Read(.env)", "WebFetch", "Bash(rm:*)"}, rules(p, hook.Deny)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"Read(.env)", "WebFetch"}, rules(p, hook.Allow)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"bash", "write"}, p.Settings.DisallowedTools); d != "" {
		t.Error(d)
	}
	if place := p.Settings.Permissions.Rules[0].Place; place != "~/.agents/settings.json:1:27" {
		t.Errorf("the first rule is at %s", place)
	}
}

func TestOfScalarsTheHighestLayerCountsAndFalseAndZeroAreSet(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"model": "a/user", "respectGitignore": false, "sandbox": {"enabled": false, "limits": {"files": 5, "cpu": "1m"}}}`)
	w.put(".agents/settings.json", `{"model": "a/project", "respectGitignore": true}`)
	w.put(".agents/settings.local.json", `{"model": "a/local", "respectGitignore": false, "sandbox": {"enabled": true, "limits": {"files": 0}}}`)
	p := w.load(project.WithTrusted())
	wantNoProblem(t, p)
	s := p.Settings
	if s.Model != "a/local" || s.Gitignore || s.Sandbox.Off || s.Sandbox.Limits.Files != 0 || s.Sandbox.Limits.CPU != time.Minute {
		t.Errorf("%+v", s)
	}
	if p = w.load(project.WithOverrides(json.RawMessage(`{"model": ""}`))); p.Settings.Model != "" {
		t.Errorf("an override that is empty is no override: %q", p.Settings.Model)
	}
}

func TestMapsAreMergedByKeyAndMCPServersReplacedByName(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"env": {"A": "user", "B": "user"}, "mcp": {"servers": {"one": {"command": "u", "args": ["-e", "A=1", "-e", "B=2", ""], "env": {"X": "1"}}, "two": {"url": "https://u.example"}}}}`)
	w.put(".agents/settings.json", `{"env": {"B": "project"}, "mcpServers": {"one": {"command": "p"}}}`)
	p := w.load(project.WithTrusted())
	wantNoProblem(t, p)
	if d := cmp.Diff(map[string]string{"A": "user", "B": "project"}, p.Settings.Env); d != "" {
		t.Error(d)
	}
	want := []mcp.Server{
		{Name: "one", Command: "p", Variables: true, Place: ".agents/settings.json:1:42"},
		{Name: "two", URL: "https://u.example", Variables: true, Place: "~/.agents/settings.json:1:141"},
	}
	if d := cmp.Diff(want, p.Settings.MCP); d != "" {
		t.Error(d)
	}
	w.put(".agents/settings.json", `{}`)
	if args := w.load().Settings.MCP[0].Args; !slices.Equal(args, []string{"-e", "A=1", "-e", "B=2", ""}) {
		t.Errorf("arguments are no set: %q", args)
	}
}

func TestEveryMemberOfAnMCPServerCounts(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"mcpServers": {
  "a": {"type": "stdio", "command": "run", "args": ["${X}"], "env": {"K": "${X:-y}"}, "cwd": "sub", "timeout": 3, "startup": "5s", "required": true, "defer": true, "enabledTools": ["x"], "disabledTools": ["q*"]},
  "b": {"type": "http", "url": "${HOST}/mcp", "headers": {"A": "b"}, "oauth": {"clientId": "id", "clientSecret": "s"}, "defer": false},
  "c": {"type": "sse", "url": "http://localhost/sse", "defer": "auto", "oauth": {"callbackPort": 1}}}}`)
	t.Setenv("X", "x")
	t.Setenv("HOST", "http://h")
	p := w.load(project.WithTrusted())
	want := []mcp.Server{
		{
			Name: "a", Command: "run", Args: []string{"${X}"}, Env: map[string]string{"K": "${X:-y}"}, Dir: "sub", Timeout: 3 * time.Second, Startup: 5 * time.Second, Required: true, Defer: mcp.DeferAlways,
			Allow: []string{"x"}, Deny: []string{"q*"}, Variables: true, Place: ".agents/settings.json:2:3",
		},
		{Name: "b", URL: "${HOST}/mcp", Headers: map[string]string{"A": "b"}, OAuth: mcp.OAuth{ClientID: "id", ClientSecret: "s"}, Defer: mcp.DeferNever, Variables: true, Place: ".agents/settings.json:3:3"},
		{Name: "c", URL: "http://localhost/sse", SSE: true, Variables: true, Place: ".agents/settings.json:4:3"},
	}
	if d := cmp.Diff(want, p.Settings.MCP); d != "" {
		t.Error(d)
	}
	if len(p.Problems) != 1 || !strings.Contains(p.Problems[0].String(), "mcp.servers.c.oauth.callbackPort") {
		t.Error(p.Problems)
	}
	for _, v := range p.Values() {
		if strings.Contains(v.Text, `"clientSecret":"s"`) {
			t.Error("the secret is shown:", v.Text)
		}
	}
}

func TestAVariableOfAnMCPServerThatIsNotSetIsAProblemWithItsPlace(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"mcpServers": {"a": {"command": "x", "args": ["${PAWL_TEST_UNSET}"]}}}`)
	w.put(".agents/settings.json", `{"mcpServers": {
  "a": {"url": "https://${PAWL_TEST_UNSET}", "headers": {"Authorization": "Bearer ${PAWL_TEST_SET}", "B": "${PAWL_TEST_OTHER}"}}}}`)
	w.put(".agents/settings.local.json", `{"env": {"PAWL_TEST_SET": "from the settings"}}`)
	var got []string
	for _, p := range w.load(project.WithTrusted()).Problems {
		got = append(got, p.String())
	}
	if d := cmp.Diff([]string{
		".agents/settings.json:2:8: the MCP server a: url: ${PAWL_TEST_UNSET} is not set: set it, or write ${PAWL_TEST_UNSET:-default}: it has no tools until then",
		".agents/settings.json:2:8: the MCP server a: headers.B: ${PAWL_TEST_OTHER} is not set: set it, or write ${PAWL_TEST_OTHER:-default}: it has no tools until then",
	}, got); d != "" {
		t.Error(d)
	}
	if got := w.load().Problems; len(got) != 1 || got[0].File != "~/.agents/settings.json" {
		t.Error("the one that counts is looked at:", got)
	}
}

// What is approved is the text: another value of a variable asks nobody again, another name does.
func TestAnApprovalIsOfTheTextBeforeVariables(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"mcpServers": {"a": {"command": "x", "args": ["${PAWL_TEST_A}"]}}}`)
	t.Setenv("PAWL_TEST_A", "1")
	if err := project.Approve(w.load()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PAWL_TEST_A", "2")
	if p := w.load(); len(p.Settings.MCP) != 1 {
		t.Error(p.Untrusted())
	}
	w.put(".agents/settings.json", `{"mcpServers": {"a": {"command": "x", "args": ["${PAWL_TEST_B}"]}}}`)
	if p := w.load(); len(p.Settings.MCP) != 0 || len(p.Untrusted()) != 1 {
		t.Error(p.Settings.MCP)
	}
}

func TestHooksAddUpFromTheLowestLayerEachOnce(t *testing.T) {
	w := newWorld(t)
	hookOf := func(command string) string {
		return `{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "` + command + `"}]}]}}`
	}
	w.put("~/.agents/settings.json", hookOf("./a"))
	w.put(".agents/settings.json", "{\n"+hookOf("./b")[1:])
	w.put(".agents/settings.local.json", hookOf("./a"))
	p := w.load(project.WithTrusted())
	wantNoProblem(t, p)
	var got []string
	for _, h := range p.Settings.Hooks {
		got = append(got, h.Command+" "+h.Place)
	}
	if d := cmp.Diff([]string{"./a ~/.agents/settings.json:1", "./b .agents/settings.json:2"}, got); d != "" {
		t.Error(d)
	}
	w.put(".agents/settings.local.json", `{"disableAllHooks": true}`)
	if p := w.load(project.WithTrusted()); len(p.Settings.Hooks) != 0 {
		t.Errorf("disableAllHooks leaves %v", p.Settings.Hooks)
	}
}

func TestWhatHasNoEffectIsAProblemWithFileLineAndColumn(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", "{\n  \"modal\": 1,\n  \"permissions\": {\n    \"denny\": [],\n    \"allow\": [\"Bash(\", \"Read\"]},\n"+
		"  \"hooks\": {\"PreToolUze\": [],\n    \"Stop\": [{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"x\"}]}]},\n  \"mcp\": {\"srv\": {}},\n  \"äöü\": {\"model\": 1}, \"Model\": \"x\"\n}")
	p := w.load()
	for _, want := range [][]string{
		{`.agents/settings.json:2:3: there is no key "modal": it has no effect: did you mean model?`},
		{`.agents/settings.json:4:5: there is no key "permissions.denny"`, "did you mean permissions.deny?"},
		{`.agents/settings.json:5:15: the rule "Bash(" can't be understood`},
		{`.agents/settings.json:6:13: hooks: PreToolUze: there is no event`},
		{`.agents/settings.json:7:26: hooks: Stop[0].hooks[0].type`, "not supported"},
		{`.agents/settings.json:8:11: there is no key "mcp.srv"`},
		{`.agents/settings.json:9:3: there is no key "äöü"`},
		{`.agents/settings.json:9:24: there is no key "Model"`, "did you mean model?"},
	} {
		wantProblem(t, p, want...)
	}
	if len(p.Problems) != 8 {
		t.Errorf("problems:\n%s", problems(p))
	}
}

func TestSettingsThatCantBeUnderstoodFailTheLoadWithTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a comment", "{\n  // no\n  \"model\": \"a/b\"}", ".agents/settings.json:2:3: it is no JSON: there are no comments in JSON: remove the comment"},
		{"a comma too many", "{\"permissions\": {\"deny\": [\"Bash\",\n]}}", ".agents/settings.json:1:33: it is no JSON: there is a comma behind the last element: remove the comma"},
		{"cut off", `{"permissions": {`, ".agents/settings.json:1:18: it is no JSON"},
		{"empty", " ", ".agents/settings.json:1:1: it is empty: write {} or remove it"},
		{"two values", "{}\n{}", ".agents/settings.json:2:1: it is no JSON"},
		{"no object", "[]", ".agents/settings.json:1:1: it is no object"},
		{"a list that is a text", "{\n\"permissions\": {\"deny\": \"Bash\"}}", ".agents/settings.json:2:25: permissions.deny is of the wrong type: want a list of texts in brackets"},
		{"a rule that is a number", `{"permissions": {"ask": [1]}}`, "permissions.ask[0] is of the wrong type"},
		{"a deny rule that can't be understood", `{"permissions": {"deny": ["Bash("]}}`, `.agents/settings.json:1:27: the rule "Bash(" can't be understood`},
		{"an unknown mode", `{"permissions": {"defaultMode": "yolo"}}`, `there is no mode "yolo": want one of default, plan`},
		{"a variable that is a number", `{"env": {"A": 1}}`, "env.A is of the wrong type: want a text in quotes"},
		{"a variable without a name", `{"env": {"": "1"}}`, "is no name or value of a variable"},
		{"a hook without a command", "{\n\n\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\"}]}]}}", ".agents/settings.json:3:31: hooks: Stop[0].hooks[0]: has no command: give one"},
		{"a hook of the wrong form", `{"hooks": []}`, "want an object"},
		{"a server without a command", `{"mcpServers": {"x": {"args": []}}}`, "the MCP server x: it has neither a command nor a URL"},
		{"a server's name that could be a rule", `{"mcp": {"servers": {"x(*)": {"command": "y"}}}}`, "the MCP server x(*): the name: want"},
		{"a boolean in quotes", `{"sandbox": {"enabled": "false"}}`, "sandbox.enabled is of the wrong type: want true or false"},
		{"a negative limit", `{"sandbox": {"limits": {"files": -1}}}`, "want a whole number, 0 or more"},
		{"a time without a unit", `{"sandbox": {"limits": {"cpu": "5"}}}`, "want a time such as"},
		{"no UTF-8", "{\"model\": \"\xff\"}", ".agents/settings.json: line 1 is no UTF-8 text: save it as UTF-8"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "no UTF-8 text"},
		{"deeply nested", `{"env": ` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) + "}", "nested more than 64 deep"},
		{"very deeply nested", strings.Repeat("[", 500_000), "it is no JSON"},
		{"a line of 10 MB", `{"model": "` + strings.Repeat("x", 10<<20) + `"}`, ".agents/settings.json: it is larger than 1 MiB: make it smaller"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.put(".agents/settings.json", c.text)
			p, err := w.try()
			if p != nil || !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v\nwant %s", p, err, c.want)
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"env": {"A": 1}, "model": 2}`)
	w.put(".agents/settings.local.json", `{`)
	_, err := w.try()
	for _, want := range []string{"env.A", "model is", "settings.local.json:1:2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v has no %q", err, want)
		}
	}
}

func TestASettingsFileThatIsThereAndCantBeReadFailsTheLoad(t *testing.T) {
	t.Run("a directory", func(t *testing.T) {
		w := newWorld(t)
		w.put(".agents/settings.json/x", "")
		if _, err := w.try(); err == nil || !strings.Contains(err.Error(), ".agents/settings.json: it is a directory") {
			t.Error(err)
		}
	})
	t.Run("without the right to", func(t *testing.T) {
		if runtime.GOOS == "windows" || os.Geteuid() == 0 {
			t.Skip("who is root reads everything: run as somebody else")
		}
		w := newWorld(t)
		w.put(".agents/settings.json", "{}")
		if err := os.Chmod(filepath.Join(w.root, ".agents/settings.json"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := w.try(); err == nil || !strings.Contains(err.Error(), "it can't be read") {
			t.Error(err)
		}
	})
	t.Run("a link out of the project", func(t *testing.T) {
		w := newWorld(t)
		w.put("~/elsewhere.json", `{"permissions": {"allow": ["Bash"]}}`)
		w.link(filepath.Join(w.home, "elsewhere.json"), ".agents/settings.json")
		if _, err := w.try(); err == nil || !strings.Contains(err.Error(), "a symbolic link leads out of the project") {
			t.Error(err)
		}
	})
	t.Run("a link to nothing", func(t *testing.T) {
		w := newWorld(t)
		w.link("nothing.json", ".agents/settings.json")
		if _, err := w.try(); err != nil {
			t.Error(err)
		}
	})
}

func TestAByteOrderMarkIsNoContent(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", "\ufeff{\"model\": \"a/b\"}")
	w.put("AGENTS.md", "\ufeffRemember.")
	p := w.load()
	wantNoProblem(t, p)
	if p.Settings.Model != "a/b" || p.Memory != "Remember." {
		t.Errorf("%q %q", p.Settings.Model, p.Memory)
	}
}

func TestOfAKeyThatIsThereTwiceNothingIsLostAndItIsAProblem(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"permissions": {"deny": ["Bash"], "deny": ["Read"]}, "model": "a/1", "model": "a/2",
 "permissions": {"deny": ["Edit"]}}`)
	p := w.load()
	wantProblem(t, p, `.agents/settings.json:1:36: "deny" is there twice`)
	wantProblem(t, p, `.agents/settings.json:2:2: "permissions" is there twice`)
	if d := cmp.Diff([]string{"Bash", "Read", "Edit"}, rules(p, hook.Deny)); d != "" || p.Settings.Model != "a/2" {
		t.Error(d, p.Settings.Model)
	}
}

func TestEveryValueIsShownWithItsLayerAndWhetherItCounts(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"model": "a/user", "env": {"TOKEN": "secret-1"}}`)
	w.put(".agents/settings.json", `{"model": "a/project", "permissions": {"allow": ["Bash"], "deny": ["Read(x)"]}, "mcpServers": {"m": {"url": "https://m.example", "headers": {"Authorization": "secret-2"}}}}`)
	p := w.load(project.WithOverrides(json.RawMessage(`{"permissions": {"deny": ["Read(x)"]}}`)))
	var got []string
	for _, v := range p.Values() {
		if strings.Contains(v.Text, "secret") {
			t.Errorf("a secret is shown: %+v", v)
		}
		if v.Layer != project.LayerDefault || v.Key == "compat" {
			got = append(got, string(v.Layer)+" "+v.Key+" "+v.Text+" "+string(v.State))
		}
	}
	want := []string{
		"default compat false active",
		`user model "a/user" overridden`, `user env.TOKEN "…" active`,
		`project model "a/project" active`, `project permissions.allow "Bash" waiting`, `project permissions.deny "Read(x)" active`,
		`project mcp.servers.m {"url":"https://m.example","headers":{"Authorization":"…"}} waiting`,
		`override permissions.deny "Read(x)" repeated`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestPathsAreRelativeToTheProjectAndMissingOnesAreLeftOut(t *testing.T) {
	w := newWorld(t)
	w.put("~/data/x", "")
	w.put("secret/x", "")
	w.put("../other/x", "")
	w.put("~/.agents/settings.json", `{"permissions": {"additionalDirectories": ["../other", "~/data"]}, "sandbox": {"hide": ["secret", "./secret"], "write": ["/nowhere/at/all"]}}`)
	p := w.load()
	other := filepath.Join(filepath.Dir(w.root), "other")
	if d := cmp.Diff([]string{other, filepath.Join(w.home, "data")}, p.Settings.Directories); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(p.Settings.Directories, p.Settings.Sandbox.Write); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{filepath.Join(w.root, "secret")}, p.Settings.Sandbox.Hide); d != "" {
		t.Error(d)
	}
	wantProblem(t, p, "~/.agents/settings.json:1:", "sandbox.write", "there is no", "nowhere")
	if _, err := fence.Resolve(p.Settings.Sandbox); err != nil || !p.Settings.SandboxSet {
		t.Error(err)
	}
}

func TestOtherProgramsFilesAreReadWithCompatOnly(t *testing.T) {
	w := newWorld(t)
	w.put(".mcp.json", `{"mcpServers": {"tickets": {"command": "tickets", "args": ["--x"]}}}`)
	w.put(".claude/settings.json", `{"permissions": {"deny": ["Read(.env)"], "defaultMode": "auto"}, "model": "opus", "statusLine": {"type": "command"}, "compat": true,
  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check"}]}], "Notification": []}}`)
	w.put(".claude/settings.local.json", `{"env": {"A": "1"}}`)
	w.put(".claude/skills/release/SKILL.md", "---\nname: release\ndescription: makes a release\n---\nDo it.")
	w.put(".claude/agents/reviewer.md", "---\nname: reviewer\ndescription: reviews\nmodel: sonnet\n---\nReview.")
	w.put("CLAUDE.md", "Say please.")
	w.put(".agents/settings.json", `{"model": "a/b"}`)
	if p := w.load(); len(p.Problems)+len(p.Untrusted())+len(p.Skills) > 0 || p.Memory != "" || len(rules(p, hook.Deny)) > 0 {
		t.Errorf("without compat: %+v", p)
	}
	w.put(".agents/settings.json", `{"model": "a/b", "compat": true}`)
	p := w.load()
	if d := cmp.Diff([]string{"Read(.env)"}, rules(p, hook.Deny)); d != "" || p.Settings.Model != "a/b" || p.Settings.Permissions.Mode != permission.ModeDefault || !p.Settings.Compat {
		t.Error(d, p.Settings)
	}
	if len(p.Settings.Hooks)+len(p.Settings.MCP)+len(p.Settings.Env) > 0 || len(p.Untrusted()) != 3 {
		t.Errorf("it counts without approval: %+v", p.Settings)
	}
	wantProblem(t, p, `.claude/settings.json:1:`, `"statusLine" of Claude Code's settings has no effect`)
	wantProblem(t, p, `there is no mode "auto"`)
	wantProblem(t, p, `the model "opus" names no provider`)
	wantProblem(t, p, "compat has no effect in this file")
	wantProblem(t, p, "Notification is not supported")
	wantProblem(t, p, ".claude/agents/reviewer.md:4:1", `the model "sonnet" names no provider`)
	if _, ok := p.Skill("release"); !ok || p.Memory != "### CLAUDE.md\n\nSay please." {
		t.Errorf("%+v %q", p.Skills, p.Memory)
	}
	p = w.load(project.WithTrusted())
	if len(p.Settings.Hooks) != 1 || !p.Settings.Hooks[0].Claude || len(p.Settings.MCP) != 1 || p.Settings.Env["A"] != "1" {
		t.Errorf("%+v", p.Settings)
	}
}

func TestADirectoryThatIsNotThereIsNotFound(t *testing.T) {
	w := newWorld(t)
	if _, err := project.Load(t.Context(), filepath.Join(w.root, "nothing")); !errdefs.NotFound.Is(err) {
		t.Error(err)
	}
	w.put("file", "")
	if _, err := project.Load(t.Context(), filepath.Join(w.root, "file")); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

func TestTheHomeDirectoryAsAProjectHasOneSettingsFileWhichIsTheUsers(t *testing.T) {
	w := newWorld(t)
	w.root = w.home
	w.put(".agents/settings.json", `{"permissions": {"allow": ["Bash(ls)"]}}`)
	p := w.load()
	if len(p.Untrusted()) != 0 || len(rules(p, hook.Allow)) != 1 {
		t.Errorf("%+v", p.Settings)
	}
}

func TestHostileSettingsTakeLittleTime(t *testing.T) {
	tier.SkipUnlessAll(t, "it takes a minute of processor time with the race detector")
	many := func(n int, f func(i int) string) string {
		var parts []string
		for i := range n {
			parts = append(parts, f(i))
		}
		return strings.Join(parts, ",")
	}
	for name, text := range map[string]string{
		"many variables":     `{"env": {` + many(60_000, func(i int) string { return `"V` + strconv.Itoa(i) + `":"x"` }) + `}}`,
		"one variable often": `{"env": {` + many(100_000, func(int) string { return `"V":"x"` }) + `}}`,
		"many unknown keys":  `{` + many(90_000, func(i int) string { return `"k` + strconv.Itoa(i) + `":1` }) + `}`,
		"many rules":         `{"permissions": {"deny": [` + many(4_900, func(i int) string { return `"Bash(x` + strconv.Itoa(i) + `:*)"` }) + `]}}`,
		"too many rules":     `{"permissions": {"deny": [` + many(200_000, func(int) string { return `"B"` }) + `]}}`,
		"many hooks":         `{"hooks": {"Stop": [{"hooks": [` + many(20_000, func(i int) string { return `{"command":"` + strconv.Itoa(i) + `"}` }) + `]}]}}`,
		"many bad hooks":     `{"hooks": {"Stop": [{"hooks": [` + many(20_000, func(i int) string { return `{"type":"x` + strconv.Itoa(i) + `"}` }) + `]}]}}`,
		"many events":        `{"hooks": {` + many(50_000, func(i int) string { return `"E` + strconv.Itoa(i) + `":[]` }) + `}}`,
		"many servers":       `{"mcpServers": {` + many(20_000, func(i int) string { return `"s` + strconv.Itoa(i) + `":{"command":"x"}` }) + `}}`,
	} {
		w := newWorld(t)
		w.put(".agents/settings.json", text)
		began := time.Now()
		p, err := w.try()
		if took := time.Since(began); took > time.Minute { // what grows with the square takes far longer
			t.Errorf("%s: %v", name, took)
		}
		if (err != nil) != (name == "too many rules") {
			t.Errorf("%s: %.200v", name, err)
		}
		if p != nil && len(p.Problems) > 1000 {
			t.Errorf("%s: %d problems", name, len(p.Problems))
		}
		t.Logf("%s: %v", name, time.Since(began))
	}
}

func TestHostsLimitTheNetworkUnlessAllIsSaid(t *testing.T) {
	for text, want := range map[string]bool{
		`{"hosts": ["example.com"]}`:               false,
		`{"hosts": []}`:                            false,
		`{"hosts": ["10.0.0.1"], "all": true}`:     true,
		`{"all": false, "hosts": ["example.com"]}`: false,
		`{"hosts": null}`:                          true,
		`{}`:                                       true,
	} {
		for _, file := range []string{"~/.agents/settings.json", ".agents/settings.json"} { // what is stricter needs no approval
			w := newWorld(t)
			w.put(file, `{"sandbox": {"network": `+text+`}}`)
			if p := w.load(); p.Settings.Sandbox.Network.All != want {
				t.Errorf("%s in %s: all is %v", text, file, p.Settings.Sandbox.Network.All)
			}
		}
	}
}

func TestAHostThatIsNoneIsAnErrorWithItsPlace(t *testing.T) {
	for _, host := range []string{"http://a.b/c", "a.b:80", "a b", "*.*"} {
		w := newWorld(t)
		w.put(".agents/settings.json", "{\n"+`"sandbox": {"network": {"hosts": ["example.com", "`+host+`"]}}}`)
		if _, err := w.try(); !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "settings.json:2:") || !strings.Contains(err.Error(), "without scheme and port") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
