package project

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/internal/near"
)

// namedTool is a place where a definition names a tool.
type namedTool struct {
	Place
	name string
	in   string // what names it, for people
}

// namedIn are the tools that the front matter of an agent names.
func namedIn(fm frontMatter) (all []namedTool) {
	for _, f := range fm.fields {
		switch f.Name {
		case "tools", "disallowedTools", "disallowed-tools":
			names, _ := f.list()
			for _, name := range names {
				all = append(all, namedTool{f.at, name, "its name in " + f.Name})
			}
		}
	}
	return all
}

// UnknownTools says which permission rules, disallowed tools, matchers of hooks and tools of subagents name a tool that is not among known, which is to have all that a program offers; those without effect for another reason are not told of. It is no
// problem by itself: other programs may read the same files, and have tools that nobody here knows. When a name looks like one that is known, Remedy says so; else it is empty. Tools of MCP servers, and what Claude Code has or reads
// (.claude), are never told of.
func (p *Project) UnknownTools(known []string) (all []Problem) {
	for _, n := range append(p.ruleTools(), p.named...) {
		foreign := strings.HasPrefix(strings.ToLower(n.name), "mcp__") || strings.Contains(n.name, "*") || permission.ForeignTool(n.name) || strings.HasPrefix(n.File, ".claude/")
		if foreign || slices.ContainsFunc(known, func(o string) bool { return permission.SameTool(o, n.name) }) {
			continue
		}
		problem := Problem{n.Place, fmt.Sprintf("there is no tool %q: %s has no effect", clip(n.name), n.in), ""}
		if names := near.Names(n.name, known); len(names) > 0 {
			problem.Remedy = fmt.Sprintf("did you mean %s?", names[0])
		}
		if !slices.Contains(all, problem) {
			all = append(all, problem)
		}
	}
	return all
}

// ruleTools are the tools that the settings' rules, disallowed tools and matchers of hooks name, whether they count or wait.
func (p *Project) ruleTools() (all []namedTool) {
	for _, v := range p.values {
		var text string
		if v.State != StateRemoved && (v.Key == "hooks.PreToolUse" || v.Key == "hooks.PostToolUse") {
			all = append(all, matcherTools(v)...)
		}
		if v.State == StateRemoved || json.Unmarshal([]byte(v.text), &text) != nil {
			continue
		}
		switch v.Key {
		case "permissions.allow", "permissions.ask", "permissions.deny":
			all = append(all, namedTool{v.Place, permission.RuleTool(text), fmt.Sprintf("the rule %q", clip(text))})
		case "disallowedTools":
			all = append(all, namedTool{v.Place, permission.RuleTool(text), "its name in disallowedTools"})
		}
	}
	return all
}

// matcherTools are the tools that a hook's matcher names, if it is a list of names and no pattern.
func matcherTools(v Value) (all []namedTool) {
	var h shell.Hook
	if json.Unmarshal([]byte(v.text), &h) != nil {
		return nil
	}
	for name := range strings.FieldsFuncSeq(h.Selector.Tool, func(r rune) bool { return r == '|' || r == ',' }) {
		if name = strings.TrimSpace(name); !plainName(name) { // so it is a pattern, which may match what nobody here knows
			return nil
		}
		all = append(all, namedTool{v.Place, name, fmt.Sprintf("its name in the matcher %q", clip(h.Selector.Tool))})
	}
	return all
}
