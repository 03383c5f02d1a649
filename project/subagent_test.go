package project_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-dev/pawl/project"
)

func TestThreeSubagentsAreBuiltInAndTwoOnlyRead(t *testing.T) {
	p := newWorld(t).load()
	var names []string
	for _, a := range p.Subagents {
		names = append(names, a.Name)
	}
	if d := cmp.Diff([]string{"explore", "general-purpose", "plan"}, names); d != "" {
		t.Error(d)
	}
	all := []string{"bash", "read", "write", "edit", "glob", "grep", "skill", "task", "mcp__x__y"}
	for name, want := range map[string][]string{"explore": {"read", "glob", "grep"}, "plan": {"read", "glob", "grep"}, "general-purpose": all} {
		a, ok := p.Subagent(name)
		if d := cmp.Diff(want, a.Gate(all)); d != "" || !ok || a.Description == "" || a.Instructions == "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestASubagentIsReadFromItsFile(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/agents/review.md", "---\nname: reviewer\ndescription: |\n  Reviews\n  code.\ntools: Read, Grep, Bash\ndisallowedTools: [Write, bash]\nmodel: anthropic/x\nmaxTurns: 12\ntimeout: 5m\n---\n\nLook closely.\n")
	w.put(".agents/agents/README.md", "Not an agent.")
	p := w.load()
	wantNoProblem(t, p)
	a, ok := p.Subagent("reviewer")
	want := project.Subagent{
		Name: "reviewer", Description: "Reviews code.", Instructions: "Look closely.", Tools: []string{"Read", "Grep", "Bash"}, DisallowedTools: []string{"Write", "bash"},
		Model: "anthropic/x", MaxTurns: 12, Timeout: 5 * time.Minute, Layer: project.LayerProject, File: ".agents/agents/review.md",
	}
	if d := cmp.Diff(want, a, cmpopts.EquateEmpty()); d != "" || !ok {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"read", "grep"}, a.Gate([]string{"bash", "read", "write", "grep"})); d != "" {
		t.Error(d)
	}
}

func TestAnEmptyListOfToolsIsNoToolsAndNeverAll(t *testing.T) {
	for tools, want := range map[string][]string{
		"tools:\n": {}, "tools: []\n": {}, "tools: nothing\n": {}, "": {"bash", "mcp__a__x", "mcp__ab__y"}, "tools: '*'\n": {"bash", "mcp__a__x", "mcp__ab__y"},
		"tools: mcp__a\n": {"mcp__a__x"}, "disallowedTools: mcp__a\n": {"bash", "mcp__ab__y"}, "tools: Bash\ndisallowedTools: BASH\n": {},
	} {
		w := newWorld(t)
		w.put(".agents/agents/a.md", "---\nname: a\ndescription: b\n"+tools+"---\nGo.")
		a, ok := w.load().Subagent("a")
		if d := cmp.Diff(want, a.Gate([]string{"bash", "mcp__a__x", "mcp__ab__y"})); d != "" || !ok {
			t.Errorf("%q: %s", tools, d)
		}
	}
}

func TestABrokenSubagentIsListedWithItsReason(t *testing.T) {
	for text, want := range map[string]string{
		"Just text.":                                                         "it has no front matter",
		"---\ndescription: b\n---\nGo.":                                      "it has no name",
		"---\nname: a\n---\nGo.":                                             "it has no description",
		"---\nname: a\ndescription: b\n---\n ":                               "it has no instructions",
		"---\nname: a*\ndescription: b\n---\nGo.":                            `"a*" is no name for an agent`,
		"---\nname: a\ndescription: b\nmaxTurns: 0\n---\nGo.":                "want a whole number, 1 or more",
		"---\nname: a\ndescription: b\nmaxTurns: many\n---\nGo.":             `maxTurns is "many"`,
		"---\nname: a\ndescription: b\ntimeout: 5\n---\nGo.":                 "want a time such as 10m",
		"---\nname: a\ndescription: b\ntools: {read: true}\n---\nGo.":        "tools is no list of texts",
		"---\nname: a\ndescription: b\ntools: Bash(go test:*)\n---\nGo.":     "is no tool's name",
		"---\nname: a\ndescription: b\ndisallowedTools: 'Bash(rm)'\n---\nGo": "is no tool's name",
	} {
		w := newWorld(t)
		w.put(".agents/agents/a.md", text)
		p := w.load()
		wantProblem(t, p, ".agents/agents/a.md", want)
		if _, ok := p.Subagent("a"); ok || len(p.Subagents) != 4 || p.Subagents[0].Name != "a" || !strings.Contains(p.Subagents[0].Broken, want) {
			t.Errorf("%q: %+v", text, p.Subagents[0])
		}
	}
}

func TestAFieldThatASubagentDoesNotHaveIsAProblem(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/agents/a.md", "---\nname: a\ndescription: b\npermissionMode: bypassPermissions\nmodel: inherit\n---\nGo.")
	p := w.load()
	wantProblem(t, p, `.agents/agents/a.md:4:1: there is no field "permissionMode": it has no effect`)
	if a, ok := p.Subagent("a"); !ok || a.Model != "" || len(p.Problems) != 1 {
		t.Errorf("%+v", a)
	}
}

func TestTheProjectsSubagentBeatsTheUsersAndABuiltInOne(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/agents/explore.md", "---\nname: explore\ndescription: the user's\n---\nGo.")
	if a, _ := w.load().Subagent("explore"); a.Description != "the user's" {
		t.Errorf("%+v", a)
	}
	w.put(".agents/agents/explore.md", "---\nname: explore\ndescription: the project's\n---\nGo.")
	p := w.load()
	wantProblem(t, p, "~/.agents/agents/explore.md: there is another agent explore")
	if a, _ := p.Subagent("explore"); a.Description != "the project's" || len(p.Subagents) != 3 {
		t.Errorf("%+v", a)
	}
}
