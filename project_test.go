//go:build unix

package pawl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/project"
	"github.com/pawl-dev/pawl/sandbox"
)

// world is a project directory, with a home and approvals of its own.
func world(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	lay(t, dir, files)
	return dir
}

func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil { // as editors do it
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func approve(t *testing.T, dir string) {
	t.Helper()
	p, err := project.Load(t.Context(), dir)
	if err == nil {
		err = project.Approve(p)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serve makes a Runtime over a project, without a sandbox and without questions but for what the settings say.
func serve(t *testing.T, dir string, m model.Model, change ...func(*pawl.Options)) *pawl.Runtime {
	t.Helper()
	o := pawl.Options{Model: m, ProjectRoot: dir, Journal: journal.Memory(), Sandbox: &sandbox.Policy{Off: true}}
	o.Permissions.Mode = "bypassPermissions"
	for _, f := range change {
		f(&o)
	}
	rt, err := pawl.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return rt
}

// asks is one run, with its warnings.
func asks(t *testing.T, rt *pawl.Runtime, session, prompt string) (text string, warnings []string) {
	t.Helper()
	for e, err := range rt.RunStream(t.Context(), pawl.Request{Prompt: prompt, SessionID: session}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Delta == event.Warning {
			warnings = append(warnings, e.Text)
		}
		if d, ok := e.Data.(journal.ModelFinished); ok {
			text = d.Message.Text()
		}
	}
	return text, warnings
}

// bash is a model that runs a command for each prompt, and says what came of it.
func bash(command string) model.Model {
	return thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleTool {
			return message.Assistant(last(req))
		}
		return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), "bash", fmt.Sprintf(`{"command":%q}`, command)))
	})
}

func TestWhatTheProjectSaysIsInTheSystemPrompt(t *testing.T) {
	dir := world(t, map[string]string{
		"AGENTS.md": "Remember the milk.\n@docs/style.md\n", "docs/style.md": "No tabs.", ".agents/rules/10-b.md": "Second rule.", ".agents/rules/1-a.md": "First rule.",
		".agents/skills/release/SKILL.md": "---\nname: release\ndescription: Makes a release.\n---\nTag it.\n",
	})
	var system []string
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		system = append(system, req.System)
		if len(system) == 1 {
			return message.Assistant("", call("c1", "skill", `{"name":"release"}`))
		}
		return message.Assistant(last(req))
	}))
	text, _ := asks(t, rt, "s", "go")
	if !strings.Contains(text, "Tag it.") {
		t.Error(text)
	}
	at := -1
	for _, want := range []string{"You are an agent", "## Project Rules", "First rule.", "Second rule.", "## Skills", "Makes a release.", "## Memory", "Remember the milk.", "No tabs."} {
		i := strings.Index(system[0], want)
		if i <= at {
			t.Errorf("%q is missing, or in another place:\n%s", want, system[0])
		}
		at = i
	}
	if strings.Contains(system[0], "Tag it.") || system[0] != system[1] {
		t.Error("the prompt moved, or has the skill's body")
	}
	without := serve(t, dir, thinking(func(req model.Request) message.Message { return message.Assistant(req.System) }), func(o *pawl.Options) { o.NoProject = true })
	if text, _ := asks(t, without, "s", "go"); strings.Contains(text, "Remember") {
		t.Error(text)
	}
}

func TestMemoryFromTheRootToWhereTheWorkIs(t *testing.T) {
	dir := world(t, map[string]string{"AGENTS.md": "Of the root.", "sub/AGENTS.md": "Of sub.", "sub/deep/AGENTS.md": "Of deep.", "other/AGENTS.md": "Of other."})
	says := thinking(func(req model.Request) message.Message { return message.Assistant(req.System) })
	for workdir, want := range map[string][]string{"": {"root"}, "sub": {"root", "sub"}, filepath.Join(dir, "sub", "deep"): {"root", "sub", "deep"}, ".": {"root"}} {
		text, _ := asks(t, serve(t, dir, says, func(o *pawl.Options) { o.Workdir = workdir }), "s", "go")
		var got []string
		for line := range strings.Lines(text[strings.Index(text, "## Memory"):]) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Of "); ok {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(name, "the "), "."))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", workdir, got, want)
		}
	}
}

// A model that writes @.env into AGENTS.md is not shown by the next run what it may not read.
func TestWhatADenyRuleNamesIsNotIncludedInThePrompt(t *testing.T) {
	tells := thinking(func(req model.Request) message.Message { return message.Assistant(req.System) })
	for name, c := range map[string]struct {
		settings string
		rules    permission.Config
		seen     bool
	}{
		"nobody":       {"{}", permission.Config{}, true},
		"the settings": {`{"permissions": {"deny": ["Read(.env)"]}}`, permission.Config{}, false},
		"the program":  {"{}", permission.Config{Deny: []string{"Read(.env)"}}, false},
	} {
		dir := world(t, map[string]string{".agents/settings.json": c.settings, ".env": "s3cr3t", "AGENTS.md": "Remember.\n@.env\n"})
		text, _ := asks(t, serve(t, dir, tells, func(o *pawl.Options) { o.Permissions = c.rules }), "s", "go")
		if !strings.Contains(text, "Remember.") || strings.Contains(text, "s3cr3t") != c.seen {
			t.Errorf("%s denies it: %s", name, text)
		}
	}
}

func TestAWorkdirIsADirectoryOfTheProject(t *testing.T) {
	dir := world(t, map[string]string{"sub/x": ""})
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for workdir, want := range map[string]string{"gone": "make it, or name another", "sub/x": "is no directory", "..": "is not in the project", t.TempDir(): "is not in the project", "out": "is not in the project"} {
		for _, o := range []pawl.Options{{}, {NoProject: true}} {
			o.Model, o.ProjectRoot, o.Workdir, o.Journal = says(), dir, workdir, journal.Memory()
			rt, err := pawl.New(t.Context(), o)
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "Options.Workdir: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", workdir, err)
			}
			if err == nil {
				_ = rt.Close()
			}
		}
	}
}

func TestSettingsActOnceTheyAreApprovedAndDenialsAtOnce(t *testing.T) {
	settings := `{
  "permissions": {"deny": ["Bash(touch denied)"], "allow": ["Bash(touch allowed)"]},
  "env": {"GREETING": "hello"}, "disallowedTools": ["grep"],
  "hooks": {"PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "echo hook >>hooks.log"}]}]}
}`
	dir := world(t, map[string]string{".agents/settings.json": settings})
	said := func(command string, change ...func(*pawl.Options)) (string, []string) {
		return asks(t, serve(t, dir, bash(command), change...), "s", "go")
	}
	logged := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "hooks.log"))
		return strings.Count(string(b), "hook")
	}
	text, warned := said("echo $GREETING")
	if text != "(no output)" || logged() != 0 || len(warned) != 1 || !strings.Contains(warned[0], "wait for approval") {
		t.Error("not approved:", text, warned, logged())
	}
	if text, _ := said("touch denied"); !strings.Contains(text, "denied by the rule Bash(touch denied) (.agents/settings.json:2") {
		t.Error(text)
	}
	if text, warned := said("echo $GREETING", func(o *pawl.Options) { o.Trusted = true }); text != "hello" || logged() != 1 || len(warned) != 0 {
		t.Error("trusted:", text, warned, logged())
	}
	approve(t, dir)
	if text, warned := said("echo $GREETING"); text != "hello" || logged() != 2 || len(warned) != 0 {
		t.Error("approved:", text, warned, logged())
	}
	if text, _ := said("touch denied"); !strings.Contains(text, "denied by the rule") {
		t.Error(text)
	}
	var offered []string
	asks(t, serve(t, dir, thinking(func(req model.Request) message.Message {
		for _, f := range req.Tools {
			offered = append(offered, f.Name)
		}
		return message.Assistant("done")
	})), "s", "go")
	if slices.Contains(offered, "grep") || !slices.Contains(offered, "glob") || !slices.Contains(offered, "task") {
		t.Error(offered)
	}
}

func TestTheModelOfTheSettingsIsUsedWhereTheProgramHasNone(t *testing.T) {
	dir := world(t, map[string]string{".agents/settings.json": `{"model": "scripted/script.yaml"}`, "script.yaml": "turns: [{text: from the script}]"})
	approve(t, dir)
	if text, _ := asks(t, serve(t, dir, nil), "s", "go"); text != "from the script" {
		t.Error(text)
	}
	for _, c := range []struct{ settings, want string }{{`{"model": "nobody/x"}`, "there is no provider"}, {`{}`, "Options.Model is needed, or a model in the settings"}, {`{"permissions": }`, "settings.json:1:"}} {
		lay(t, dir, map[string]string{".agents/settings.json": c.settings})
		_, err := pawl.New(t.Context(), pawl.Options{ProjectRoot: dir, Journal: journal.Memory()})
		if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.settings, err)
		}
	}
	if _, err := pawl.New(t.Context(), pawl.Options{ProjectRoot: dir, NoProject: true, Journal: journal.Memory()}); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}

// Which tools are called is said by a script: nobody's project says so unasked.
func TestAScriptOfAProjectIsNoModelUntilItIsApproved(t *testing.T) {
	const script = "turns: [{tool_calls: [{name: bash, input: {command: \"touch MARK\"}}]}, {text: well}]"
	for name, files := range map[string]map[string]string{
		"settings":              {".agents/settings.json": `{"model": "scripted/evil.yaml"}`},
		"local settings":        {".agents/settings.local.json": `{"model": "scripted/evil.yaml"}`},
		"another program's":     {".agents/settings.json": `{"compat": true}`, ".claude/settings.json": `{"model": "scripted/evil.yaml"}`},
		"what lies over it":     {".agents/settings.json": `{"model": "scripted/evil.yaml"}`, ".agents/settings.local.json": `{"model": "scripted/./evil.yaml"}`},
		"an agent":              {".agents/agents/a.md": "---\nname: a\ndescription: b\nmodel: scripted/evil.yaml\n---\nGo."},
		"an agent of another's": {".agents/settings.json": `{"compat": true}`, ".claude/agents/a.md": "---\nname: a\ndescription: b\nmodel: scripted/evil.yaml\n---\nGo."},
	} {
		dir := world(t, together(files, map[string]string{"evil.yaml": script}))
		mark := filepath.Join(dir, "MARK")
		var m model.Model
		if strings.Contains(name, "agent") {
			m = says()
		}
		rt, err := pawl.New(t.Context(), pawl.Options{ProjectRoot: dir, Model: m, Journal: journal.Memory(), Sandbox: &sandbox.Policy{Off: true}, Permissions: permission.Config{Mode: permission.ModeBypass}})
		if m == nil {
			if !errdefs.Validation.Is(err) || !strings.Contains(err.Error(), "pawl trust") {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if rt != nil {
			if text, warned := asks(t, rt, "s", `task {"agent":"a","prompt":"go"}`); strings.Contains(text, "well") || !strings.Contains(strings.Join(warned, " "), "its model is a script") {
				t.Errorf("%s: %s %v", name, text, warned)
			}
			if err := rt.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		approve(t, dir)
		text, _ := asks(t, serve(t, dir, nil), "s", "go")
		if _, err := os.Stat(mark); err != nil || text != "well" {
			t.Errorf("%s: approved, and it is not played: %s %v", name, text, err)
		}
	}
}

// A file that settings and definitions name is the project's, wherever the program was started.
func TestAScriptedModelOfAProjectIsRelativeToIt(t *testing.T) {
	files := together(map[string]string{
		".agents/settings.json": `{"model": "scripted/scripts/lead.yaml"}`,
		"scripts/lead.yaml":     "turns: [{tool_calls: [{id: c1, name: task, input: {agent: filed, prompt: go}}]}, {text: led}]",
		"below.yaml":            "turns: [{text: followed}]",
	}, agentFile("filed", "of a file", "model: scripted/below.yaml\n"))
	dir := world(t, files)
	t.Chdir(t.TempDir())
	store := journal.Memory()
	if text, warned := asks(t, serve(t, dir, nil, func(o *pawl.Options) { o.Journal, o.Trusted = store, true }), "s", "go"); text != "led" || len(warned) > 0 {
		t.Error(text, warned)
	}
	log, err := journal.Open(t.Context(), store, "s/c1")
	if err != nil || log.State().Messages.Last().Text() != "followed" {
		t.Errorf("%v %+v", err, log)
	}
	if text, _ := asks(t, serve(t, dir, nil, func(o *pawl.Options) { o.Overrides = []byte(`{"model": "scripted/below.yaml"}`) }), "s", "go"); text != "followed" {
		t.Error(text)
	}
	lay(t, os.Getenv("HOME"), map[string]string{"own.yaml": "turns: [{text: from home}]", ".agents/settings.json": `{"model": "scripted/~/own.yaml"}`})
	lay(t, dir, map[string]string{".agents/settings.json": "{}"})
	if text, _ := asks(t, serve(t, dir, nil), "s", "go"); text != "from home" {
		t.Error(text)
	}
}

func TestAChangeOfTheProjectCountsFromTheNextRunOn(t *testing.T) {
	dir := world(t, map[string]string{"AGENTS.md": "one"})
	m := thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleTool {
			return message.Assistant(req.System[strings.LastIndex(req.System, "\n")+1:] + " " + last(req))
		}
		return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), "bash", `{"command":"true"}`))
	})
	rt := serve(t, dir, m)
	n := 0
	until := func(want string, warns bool, about ...string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			n++
			text, warned := asks(t, rt, fmt.Sprintf("s%d", n), "go")
			said := strings.Join(warned, "\n")
			if strings.Count(said, "can't be read") > 1 {
				t.Fatalf("it warns of what was wrong before, too: %s", said)
			}
			if strings.HasPrefix(text, want) && warns == (len(warned) > 0) && strings.Contains(said, strings.Join(about, "")) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("not in 20 s: %s; it says %s, %v", want, text, warned)
			}
		}
	}
	until("one (no output)", false)
	lay(t, dir, map[string]string{"AGENTS.md": "two"})
	until("two (no output)", false)
	lay(t, dir, map[string]string{".agents/settings.json": `{"permissions": {"deny": ["Bash"]}}`})
	until("two denied by the rule Bash", false)
	lay(t, dir, map[string]string{".agents/settings.json": `{"permissions": `}) // the last good ones stay in force
	until("two denied by the rule Bash", true, "settings.json:1:")
	lay(t, dir, map[string]string{".agents/settings.json": "\n[]"})
	until("two denied by the rule Bash", true, "settings.json:2:")
	lay(t, dir, map[string]string{".agents/settings.json": `{}`})
	until("two denied by the rule Bash (.agents/settings.json (as it was)", true)
	approve(t, dir)
	until("two (no output)", false)
}

func TestAModelCantTakeItsOwnDenyRuleAway(t *testing.T) {
	dir := world(t, map[string]string{".agents/settings.json": `{"permissions": {"deny": ["Bash(touch denied)"]}}`})
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Role() == message.RoleTool {
			return message.Assistant(last(req))
		}
		return message.Assistant("", call(fmt.Sprintf("c%d", req.Messages.Len()), "bash", fmt.Sprintf(`{"command":%q}`, req.Messages.Last().Text())))
	}))
	denied := func(rt *pawl.Runtime, when string) {
		t.Helper()
		if text, _ := asks(t, rt, "s", "touch denied"); !strings.Contains(text, "denied by the rule Bash(touch denied)") {
			t.Errorf("%s: %s", when, text)
		}
	}
	denied(rt, "first")
	if text, _ := asks(t, rt, "s", "rm -r .agents && ls -A"); text != "(no output)" {
		t.Fatal(text)
	}
	denied(rt, "right behind it")
	for told := false; !told; { // until the Runtime has seen it
		_, warned := asks(t, rt, "s", "ls")
		told = strings.Contains(strings.Join(warned, ""), "1 restrictions are no longer in this project's files")
	}
	denied(rt, "seen")
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	again := serve(t, dir, bash("touch denied"))
	denied(again, "in the next Runtime")
	approve(t, dir)
	if text, _ := asks(t, serve(t, dir, bash("touch denied")), "s", "go"); text != "(no output)" {
		t.Error("approved:", text)
	}
}

func TestAReloadDoesNotChangeARunUnderWay(t *testing.T) {
	dir := world(t, map[string]string{"AGENTS.md": "one"})
	var systems []string
	reloaded := false
	m := thinking(func(req model.Request) message.Message {
		systems = append(systems, req.System)
		if len(systems) > 1 {
			return message.Assistant("done")
		}
		lay(t, dir, map[string]string{"AGENTS.md": "two"})
		for end := time.Now().Add(20 * time.Second); !reloaded && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			p, err := project.Load(t.Context(), dir)
			reloaded = err == nil && strings.Contains(p.Prompt(), "two")
		}
		time.Sleep(300 * time.Millisecond) // the watcher has its time, too
		return message.Assistant("", call("c1", "bash", `{"command":"true"}`))
	})
	if _, err := serve(t, dir, m).Run(t.Context(), pawl.Request{Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if !reloaded || systems[0] != systems[1] || !strings.Contains(systems[1], "one") {
		t.Error(systems)
	}
}

func TestAProjectsSubagentsWorkWithTheirOwnToolsOnly(t *testing.T) {
	dir := world(t, map[string]string{
		".agents/agents/looker.md": "---\nname: looker\ndescription: Looks at things.\ntools: read, glob\n---\nYou look.\n",
		"script.yaml": `turns:
  - tool_calls: [{id: t1, name: task, input: {agent: looker, prompt: "look"}}]
  - tool_calls: [{id: t2, name: task, input: {agent: explore, prompt: "explore"}}]
  - text: "done"
agents:
  looker: {turns: [{tool_calls: [{id: l1, name: bash, input: {command: "touch made"}}, {id: l2, name: task, input: {agent: looker, prompt: "x"}}]}, {text: "looked"}]}
  explore: {turns: [{tool_calls: [{id: e1, name: write, input: {file_path: "made", content: ""}}, {id: e2, name: glob, input: {pattern: "*"}}]}, {text: "explored"}]}
  general-purpose: {turns: [{text: "x"}]}
  plan: {turns: [{text: "x"}]}
`,
	})
	t.Chdir(dir)
	m, err := pawl.OpenModel("scripted/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rt := serve(t, dir, m)
	if text, _ := asks(t, rt, "s", "go"); text != "done" {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a tool ran that the agent does not have")
	}
	outcomes := map[string]string{}
	for _, session := range []string{"s/t1", "s/t2"} {
		for e, err := range rt.Journal().Read(t.Context(), session, 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Data.(type) {
			case journal.ToolJudged:
				outcomes[d.Call] = d.Verdict
			case journal.RunStarted:
				outcomes[session] = d.Agent
			}
		}
	}
	want := map[string]string{"s/t1": "looker", "s/t2": "explore", "l1": "deny", "l2": "invalid", "e1": "deny", "e2": "allow"}
	for k, v := range want {
		if outcomes[k] != v {
			t.Errorf("%s is %q, want %q", k, outcomes[k], v)
		}
	}
}
