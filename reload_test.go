//go:build unix

package pawl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/internal/testkit/tier"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool/mcp"
)

// eventually waits for something to become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 30 s: %s", what)
		}
	}
}

// tellsAll is a model that says what it is told: the system prompt, and of the agents.
func tellsAll(req model.Request) message.Message {
	text := req.System
	for _, f := range req.Tools {
		if f.Name == "task" {
			text += f.Description
		}
	}
	return message.Assistant(text)
}

func agentFile(name, description, fields string) map[string]string {
	return map[string]string{".agents/agents/" + name + ".md": "---\nname: " + name + "\ndescription: " + description + "\n" + fields + "---\nYou are " + name + ".\n"}
}

func TestASpoiledSkillSubagentOrRuleStaysAsItWasAndIsWarnedOf(t *testing.T) {
	tier.SkipQuick(t, "it waits for file watchers")
	all := func(n string) map[string]string {
		return together(agentFile("a", "agent-"+n, ""), map[string]string{
			".agents/skills/s/SKILL.md": "---\nname: s\ndescription: skill-" + n + "\n---\nDo it.\n", ".agents/rules/1-r.md": "rule-" + n,
		})
	}
	dir := world(t, all("one"))
	rt := serve(t, dir, thinking(tellsAll))
	runs := 0
	until := func(when string, wants []string, warnings ...string) {
		t.Helper()
		var text, said string
		defer func() {
			if t.Failed() {
				t.Logf("%s: it says %s\nand warns %s", when, text, said)
			}
		}()
		eventually(t, when, func() bool {
			runs++
			var warned []string
			text, warned = asks(t, rt, fmt.Sprintf("s%d", runs), "go")
			said = strings.Join(warned, "\n")
			ok, files := len(warnings) > 0 || said == "", 0
			for _, w := range warnings {
				if ok = ok && strings.Contains(said, w); strings.Contains(w, "can't be used") {
					files++
				}
			}
			ok = ok && strings.Count(said, "can't be used") == files // each once
			for _, n := range []string{"one", "two", "three"} {
				for _, what := range []string{"skill-", "agent-", "rule-"} {
					ok = ok && strings.Contains(text, what+n) == slices.Contains(wants, what+n)
				}
			}
			return ok
		})
	}
	of := func(n string) []string { return []string{"skill-" + n, "agent-" + n, "rule-" + n} }
	const skill, agent, rule = "the skill s can't be used, and stays as it was: .agents/skills/s/SKILL.md:", "the agent a can't be used, and stays as it was: .agents/agents/a.md:", "the rule can't be used, and stays as it was: .agents/rules/1-r.md:"

	until("at first", of("one"))
	lay(t, dir, all("two"))
	until("changed", of("two"))
	lay(t, dir, together(agentFile("a", "agent-three", "maxTurns: 0\n"), map[string]string{".agents/skills/s/SKILL.md": "---\nname: s\n---\n", ".agents/rules/1-r.md": "rule-three\xff"}))
	until("spoiled", of("two"), skill, agent, rule, "it has no description", `maxTurns is "0"`, "line 1 is no UTF-8 text")
	lay(t, dir, together(agentFile("a", "agent-three", "model: nobody/x\n"), map[string]string{".agents/skills/s/SKILL.md": "skill-three"}))
	until("spoiled in another way", of("two"), skill, agent, rule, "it has no front matter", `there is no provider "nobody"`)
	lay(t, dir, map[string]string{".agents/settings.json": "{"})
	until("with settings that can't be read", of("two"), skill, agent, rule, "the project's settings can't be read, and what was before stays in force")
	lay(t, dir, map[string]string{".agents/settings.json": "{}", ".agents/rules/1-r.md": "rule-three"})
	until("one is mended", []string{"skill-two", "agent-two", "rule-three"}, skill, agent)
	lay(t, dir, all("three"))
	until("mended", of("three"))
	lay(t, dir, together(agentFile("a", "agent-one", "timeout: soon\n"), map[string]string{".agents/skills/s/SKILL.md": "", ".agents/rules/1-r.md": "\xff"}))
	until("spoiled again", of("three"), skill, agent, rule)
	for _, gone := range []string{".agents/rules/1-r.md", ".agents/agents/a.md", ".agents/skills/s"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	until("gone", nil)
	lay(t, dir, map[string]string{".agents/skills/s/SKILL.md": "x"})
	until("there again, and never usable since", nil, "the skill s can't be used: .agents/skills/s/SKILL.md:1:1: it has no front matter")
}

func TestWhatIsSpoiledStaysAsItWasWhenAnMCPServerHasOtherTools(t *testing.T) {
	dir := world(t, skillFile("s", ""))
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		if req.Messages.Last().Text() == "add" {
			return does("c1", "mcp__notes__add", "{}")
		}
		text := tellsAll(req).Text()
		for _, f := range req.Tools {
			text += " " + f.Name
		}
		return message.Assistant(text)
	}), func(o *pawl.Options) { o.MCP = []mcp.Server{{Name: "notes", URL: notes(t)}} })
	lay(t, dir, map[string]string{".agents/skills/s/SKILL.md": "spoiled"})
	stays := func(session string) (text string, ok bool) {
		text, warned := asks(t, rt, session, "go")
		return text, strings.Contains(text, "About s.") && strings.Contains(strings.Join(warned, ""), "the skill s can't be used, and stays as it was")
	}
	eventually(t, "it stays", func() bool { _, ok := stays("s"); return ok })
	asks(t, rt, "other", "add")
	eventually(t, "another tool", func() bool {
		text, ok := stays("s")
		if !ok {
			t.Fatal(text)
		}
		return strings.Contains(text, "mcp__notes__added")
	})
}

func TestWhatCantBeUsedFromTheBeginningIsWarnedOfAndTheRestWorks(t *testing.T) {
	dir := world(t, together(agentFile("other", "has another model", "model: nobody/x\n"), agentFile("limited", "a limited agent", "maxTurns: 0\n"), agentFile("good", "a good agent", ""), skillFile("fine", ""),
		map[string]string{".agents/skills/s/SKILL.md": "---\nname: s\n---\n", ".agents/rules/r.md": "\xff"}))
	text, warned := asks(t, serve(t, dir, thinking(tellsAll)), "s", "go")
	if !strings.Contains(text, "a good agent") || !strings.Contains(text, "About fine.") || strings.Contains(text, "has another model") || strings.Contains(text, "a limited agent") {
		t.Error(text)
	}
	if len(warned) != 1 {
		t.Fatal(warned)
	}
	for _, want := range []string{
		"the skill s can't be used: .agents/skills/s/SKILL.md: it has no description: ", "the agent limited can't be used: .agents/agents/limited.md:4:1: maxTurns is",
		`the agent other can't be used: .agents/agents/other.md: model "nobody/x": there is no provider "nobody"`, "the rule can't be used: .agents/rules/r.md: line 1 is no UTF-8",
	} {
		if strings.Count(warned[0], want) != 1 {
			t.Errorf("%s: not once in %s", want, warned[0])
		}
	}
	_, warned = asks(t, serve(t, dir, thinking(tellsAll), func(o *pawl.Options) { o.NoSubagents = true }), "s", "go")
	if len(warned) != 1 || strings.Contains(warned[0], "the agent") {
		t.Error("it warns of agents that it has no use for:", warned)
	}
}

func TestAReloadThatCantTakeEffectSaysSo(t *testing.T) {
	dir := world(t, map[string]string{"AGENTS.md": "one"})
	rt := serve(t, dir, thinking(tellsAll), func(o *pawl.Options) { o.Trusted = true })
	lay(t, dir, map[string]string{"AGENTS.md": "two", ".agents/settings.json": `{"mcpServers": {"gone": {"command": "/no/such/program", "required": true}}}`})
	eventually(t, "a warning", func() bool {
		text, warned := asks(t, rt, "s", "go")
		said := strings.Join(warned, "")
		if strings.Contains(said, "settings can't be read") {
			t.Fatal(said)
		}
		return strings.Contains(text, "one") && strings.Contains(said, "what has changed in the project can't take effect, and what was before stays in force: mcp: server gone: start: ")
	})
}

func TestWhatTheFileOfASubagentSaysOfModelLimitsAndToolsHolds(t *testing.T) {
	dir := world(t, together(
		agentFile("own", "has a model", "model: scripted/own.yaml\n"), agentFile("short", "has few turns", "maxTurns: 2\n"), agentFile("quick", "has little time", "timeout: 50ms\n"),
		agentFile("careful", "runs nothing", "disallowedTools: bash\n"),
		map[string]string{
			"own.yaml": "turns: [{text: by its own model}]",
			"script.yaml": `turns:
  - tool_calls: [{id: t1, name: task, input: {agent: own, prompt: "x"}}]
  - tool_calls: [{id: t2, name: task, input: {agent: short, prompt: "x"}}]
  - tool_calls: [{id: t3, name: task, input: {agent: quick, prompt: "x"}}]
  - tool_calls: [{id: t4, name: task, input: {agent: careful, prompt: "x"}}]
  - text: done
agents:
  own: {turns: [{text: by the model above}]}
  short: {turns: [{tool_calls: [{id: s1, name: bash, input: {command: "true"}}]}, {tool_calls: [{id: s2, name: bash, input: {command: "true"}}]}, {text: "in three turns"}]}
  quick: {turns: [{text: "too late", delay: 20s}]}
  careful: {turns: [{tool_calls: [{id: b1, name: bash, input: {command: "touch made"}}, {id: b2, name: glob, input: {pattern: "*.yaml"}}]}, {text: "was careful"}]}
  explore: {turns: [{text: x}]}
  general-purpose: {turns: [{text: x}]}
  plan: {turns: [{text: x}]}
`,
		}))
	t.Chdir(dir)
	m, err := pawl.OpenModel("scripted/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rt := serve(t, dir, m, func(o *pawl.Options) { o.Trusted = true }) // a script as a model
	if text, warned := asks(t, rt, "s", "go"); text != "done" || len(warned) > 0 {
		t.Fatal(text, warned)
	}
	results := map[string]string{}
	for e, err := range rt.Journal().Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(journal.ToolFinished); ok {
			results[d.Call] = fmt.Sprintf("%s: %s", d.Outcome, d.Content)
		}
	}
	for id, want := range map[string]string{
		"t1": "ok: by its own model", "t2": "the task of short ended as failed: loop: the limit of model calls is reached: the run made 2 model calls", "t3": "the task of quick ended as failed: ", "t4": "ok: was careful",
	} {
		if !strings.Contains(results[id], want) {
			t.Errorf("%s: %q, want %q", id, results[id], want)
		}
	}
	if !strings.Contains(results["t3"], "50ms") {
		t.Error(results["t3"])
	}
	if v := verdicts(t, rt.Journal(), "s/t4"); v["b1"] != "deny" || v["b2"] != "allow" {
		t.Error(v)
	}
	if v := verdicts(t, rt.Journal(), "s/t2"); v["s1"] != "allow" {
		t.Error(v)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("a tool ran that the agent does not have")
	}
}

func TestADisallowedTaskToolIsNotOffered(t *testing.T) {
	offered := func(settings string) (names []string) {
		dir := world(t, map[string]string{".agents/settings.json": settings})
		asks(t, serve(t, dir, thinking(func(req model.Request) message.Message {
			for _, f := range req.Tools {
				names = append(names, f.Name)
			}
			return message.Assistant("done")
		})), "s", "go")
		return names
	}
	if names := offered(`{"disallowedTools": ["Task"]}`); slices.Contains(names, "task") || !slices.Contains(names, "bash") {
		t.Error(names)
	}
	if names := offered(`{}`); !slices.Contains(names, "task") {
		t.Error(names)
	}
}

func TestTheSummaryOfABackgroundTaskIsToldUnlessItIsDisabled(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		dir := world(t, agentFile("helper", "helps", ""))
		var heard []string
		rt := serve(t, dir, thinking(func(req model.Request) message.Message {
			switch {
			case strings.HasPrefix(req.System, "You are helper."):
				return message.Assistant("I helped.")
			case replies(req) == 0:
				return message.Assistant("", call("t1", "task", `{"agent":"helper","prompt":"help","background":true}`))
			}
			heard = told(req)
			return message.Assistant("done")
		}), func(o *pawl.Options) { o.DisableSubagentSummary = disabled })
		if res, err := rt.Run(t.Context(), pawl.Request{Prompt: "go", SessionID: "s"}); err != nil || res.Text() != "done" {
			t.Error(res, err)
		}
		log, err := journal.Open(t.Context(), rt.Journal(), "s/t1")
		if err != nil || log.State().Status != "completed" || log.State().Messages.Last().Text() != "I helped." {
			t.Errorf("the task: %+v %v", log.State(), err)
		}
		want := []string{"[Subagent Result: helper]\nTask: help\nStatus: success\nOutput: I helped."}
		if disabled {
			want = nil
		}
		if !slices.Equal(heard, want) {
			t.Errorf("disabled %v: %q", disabled, heard)
		}
	}
}

// processes is an MCP server's settings, and which of the processes that were started for it live, in the order of their starts.
func processes(t *testing.T) (settings func(n int) string, started func() []int, living func() []int) {
	t.Helper()
	pids := t.TempDir()
	settings = func(n int) string {
		return fmt.Sprintf(`{"mcpServers": {"p": {"command": %q, "startup": 20, "env": {%q: "1", %q: %q, "N": "%d"}}}}`, os.Args[0], probing, pidsIn, pids, n)
	}
	started = func() (all []int) {
		entries, err := os.ReadDir(pids)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pid)
		}
		return all
	}
	living = func() []int {
		return slices.DeleteFunc(started(), func(pid int) bool { return syscall.Kill(pid, 0) != nil })
	}
	return settings, started, living
}

func TestAServerThatAReloadReplacesEnds(t *testing.T) {
	settings, started, living := processes(t)
	dir := world(t, map[string]string{".agents/settings.json": settings(0)})
	var system string
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		if system = req.System; replies(req) > 0 {
			return message.Assistant(last(req))
		}
		return does("c1", "mcp__p__env", `{"name":"N"}`)
	}), func(o *pawl.Options) { o.Trusted = true })
	if n := len(living()); n != 1 {
		t.Fatal(n)
	}
	for n := 1; n <= 5; n++ {
		lay(t, dir, map[string]string{".agents/settings.json": settings(n)})
		eventually(t, "a new server, and no other", func() bool { return len(started()) == n+1 && len(living()) == 1 })
		if text, _ := asks(t, rt, fmt.Sprintf("s%d", n), "go"); text != strconv.Itoa(n) {
			t.Errorf("run %d: %q", n, text)
		}
	}
	lay(t, dir, map[string]string{".agents/rules/1-r.md": "a rule"}) // of the servers nothing has changed
	eventually(t, "the rule", func() bool {
		_, err := rt.Run(t.Context(), pawl.Request{Prompt: "go"})
		return err == nil && strings.Contains(system, "a rule")
	})
	lay(t, dir, map[string]string{".agents/settings.json": "{}"})
	eventually(t, "no server", func() bool { return len(living()) == 0 })
	if n := len(started()); n != 6 {
		t.Error("servers that nothing has changed of were started again:", n)
	}
}

func TestARunUnderWayKeepsTheServerThatAReloadReplaces(t *testing.T) {
	settings, started, living := processes(t)
	dir := world(t, map[string]string{".agents/settings.json": settings(0)})
	rt := serve(t, dir, thinking(func(req model.Request) message.Message {
		if replies(req) > 0 {
			return message.Assistant(last(req))
		}
		lay(t, dir, map[string]string{".agents/settings.json": settings(1)})
		eventually(t, "another server", func() bool { return len(started()) == 2 })
		if n := len(living()); n != 2 {
			t.Error("while it runs:", n)
		}
		return does("c1", "mcp__p__env", `{"name":"N"}`)
	}), func(o *pawl.Options) { o.Trusted = true })
	old := living()
	if text, _ := asks(t, rt, "s", "go"); text != "0" {
		t.Error("it has another server:", text)
	}
	eventually(t, "the old server has ended", func() bool { return len(living()) == 1 && !slices.Contains(living(), old[0]) })
	if err := rt.Close(); err != nil || len(living()) != 0 {
		t.Error(err, living())
	}
}
