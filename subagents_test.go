//go:build unix

package pawl_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// Every subagent is told the project's rules and memory, behind its own instructions and in the order of the run above: those of files, the built-in ones, and those of the program that have the Runtime's engine.
func TestSubagentsKnowTheProjectsRulesAndMemory(t *testing.T) {
	dir := world(t, together(map[string]string{
		"AGENTS.md": "Remember the milk.\n@docs/style.md\n", "docs/style.md": "No tabs.", ".agents/rules/10-b.md": "Second rule.", ".agents/rules/1-a.md": "First rule.",
	}, agentFile("filed", "of a file", ""), skillFile("release", "")))
	names := []string{"filed", "explore", "plan", "general-purpose", "coded", "owner"}
	systems := map[string]string{}
	m := thinking(func(req model.Request) message.Message {
		last := req.Messages.Last()
		if task, ok := strings.CutPrefix(last.Text(), "you are "); ok && last.Role() == message.RoleUser {
			systems[task] = req.System
			return message.Assistant("seen")
		}
		if last.Role() == message.RoleTool {
			return message.Assistant("done")
		}
		name := last.Text()
		return does("c-"+name, "task", fmt.Sprintf(`{"agent":%q,"prompt":"you are %s"}`, name, name))
	})
	own, err := loop.New(loop.Config{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	change := func(o *pawl.Options) {
		o.Subagents = agent.Subagents{{Agent: agent.Agent{ID: "coded", Instructions: "I am coded."}, Description: "x"}, {Agent: agent.Agent{ID: "owner", Instructions: "I am the owner."}, Engine: own, Description: "x"}}
	}
	rt := serve(t, dir, m, change)
	for _, name := range names {
		asks(t, rt, name, name)
	}
	if got := slices.Sorted(maps.Keys(systems)); len(got) != len(names) {
		t.Fatal(got)
	}
	const project = "\n\n## Project Rules\n\nFirst rule.\n\nSecond rule.\n\n## Memory\n\nRemember the milk.\nNo tabs."
	for name, want := range map[string]string{"filed": "You are filed.", "explore": "You explore a project", "plan": "You plan a change", "general-purpose": "You do one task", "coded": "I am coded."} {
		if got := systems[name]; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, project) || strings.Count(got, "## ") != 2 {
			t.Errorf("%s is told:\n%s", name, got)
		}
	}
	if systems["owner"] != "I am the owner." {
		t.Errorf("one that brings its own engine is told %q", systems["owner"])
	}
	bare := serve(t, dir, m, change, func(o *pawl.Options) { o.NoProject = true })
	if asks(t, bare, "b", "coded"); systems["coded"] != "I am coded." {
		t.Errorf("without the project: %q", systems["coded"])
	}
}
