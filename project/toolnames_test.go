package project_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/project"
)

// A misspelled name guards nothing. What is right, of another program or of a program of somebody's is not called wrong.
func TestNamesOfToolsThatThereAreNot(t *testing.T) {
	w := newWorld(t)
	w.put("~/.agents/settings.json", `{"permissions": {"ask": ["Edti"]}}`)
	w.put(".agents/settings.json", `{
  "permissions": {
    "deny": ["Bsh", "Bash(rm:*)", "bash", "Read(.env)", "MultiEdit", "WebFetch(domain:x.org)", "mcp__none__x", "Web*", "TodoWrite", "KillShell", "Task(explore)"],
    "allow": ["Gerp", "Deploy", "Shell(ls)", "LS"]
  },
  "hooks": {
    "PreToolUse": [{"matcher": "Bsh|Edit", "hooks": [{"type": "command", "command": "x"}, {"type": "command", "command": "y"}]}, {"matcher": "Ba.h|Bsh", "hooks": [{"type": "command", "command": "x"}]}],
    "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "x"}]}]
  },
  "disallowedTools": ["wirte", "bash_output", "BashOutput"]
}`)
	w.put(".agents/agents/a.md", "---\nname: a\ndescription: x\ntools:\n  - raed\n  - Grep\n  - mcp__x\n  - WebSearch\ndisallowedTools: glbo, Bash\n---\nDo.\n")
	w.put(".agents/agents/all.md", "---\nname: all\ndescription: x\ntools: '*'\n---\nDo.\n")
	w.put(".agents/agents/broken.md", "---\nname: broken\ntools: raed\n---\nDo.\n")
	var got []string
	for _, problem := range w.load().UnknownTools([]string{"bash", "bash_output", "bash_kill", "read", "write", "edit", "glob", "grep", "web_fetch", "task"}) {
		got = append(got, problem.String())
	}
	want := []string{
		`~/.agents/settings.json:1:26: there is no tool "Edti": the rule "Edti" has no effect: did you mean edit?`,
		`.agents/settings.json:3:14: there is no tool "Bsh": the rule "Bsh" has no effect: did you mean bash?`,
		`.agents/settings.json:4:15: there is no tool "Gerp": the rule "Gerp" has no effect: did you mean grep?`,
		`.agents/settings.json:4:23: there is no tool "Deploy": the rule "Deploy" has no effect`,
		`.agents/settings.json:7: there is no tool "Bsh": its name in the matcher "Bsh|Edit" has no effect: did you mean bash?`,
		`.agents/settings.json:10:23: there is no tool "wirte": its name in disallowedTools has no effect: did you mean write?`,
		`.agents/agents/a.md:4:1: there is no tool "raed": its name in tools has no effect: did you mean read?`,
		`.agents/agents/a.md:9:1: there is no tool "glbo": its name in disallowedTools has no effect: did you mean glob?`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// What Claude Code's files say is for Claude Code.
func TestNamesOfToolsInFilesOfAnotherProgramAreItsOwn(t *testing.T) {
	w := newWorld(t)
	w.put(".agents/settings.json", `{"compat": true}`)
	w.put(".claude/settings.json", `{"permissions": {"deny": ["Brandnew"]}}`)
	w.put(".claude/agents/a.md", "---\nname: a\ndescription: x\ntools: Brandnew\n---\nDo.\n")
	if all := w.load().UnknownTools([]string{"bash"}); len(all) > 0 {
		t.Error(all)
	}
}

func TestAnAgentsToolsMayHaveTheNamesThatOtherProgramsGiveThem(t *testing.T) {
	all := []string{"bash", "bash_output", "read", "web_fetch", "glob", "edit", "mcp__a__b_c"}
	a := project.Subagent{Tools: []string{"BashOutput", "WebFetch", "LS", "MultiEdit", "mcp__A__B_C"}}
	if d := cmp.Diff([]string{"bash_output", "web_fetch", "glob", "edit", "mcp__a__b_c"}, a.Gate(all)); d != "" {
		t.Error(d)
	}
	a = project.Subagent{DisallowedTools: []string{"Shell", "WebFetch", "mcp__a__bc"}}
	if d := cmp.Diff([]string{"bash_output", "read", "glob", "edit", "mcp__a__b_c"}, a.Gate(all)); d != "" {
		t.Error(d)
	}
}
