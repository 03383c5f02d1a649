package permission

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/hook/internal/permit"
)

// SameTool reports whether two names are of one tool, as permission rules take them: neither case nor underscores matter, and what other programs call a built-in tool is its name, too (Shell is bash, BashOutput is
// bash_output). Of the tools of MCP servers case alone doesn't matter.
func SameTool(a, b string) bool { return permit.SameTool(a, b) }

// RuleTool is the name of the tool in a permission rule, as it is written: Bash of "Bash(go test:*)". It may have * in it.
func RuleTool(rule string) string { return permit.ToolOf(rule) }

// RuleNames reports whether a permission rule is about calls of a tool, or some of them: by SameTool, and by the * that a rule's name may have.
func RuleNames(rule, tool string) bool { return permit.Names(rule, tool) }

// ForeignTool reports whether another program that reads such rules has a tool of that name, whether there is one like it here or not.
func ForeignTool(name string) bool {
	return permit.Foreign(name) || slices.ContainsFunc(foreignTools, func(o string) bool { return strings.EqualFold(o, name) })
}

// foreignTools are Claude Code's tools that there is nothing like here.
var foreignTools = []string{
	"Config", "CronCreate", "CronDelete", "CronList", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "ListMcpResourcesTool", "LSP", "Monitor", "NotebookEdit", "PowerShell", "ReadMcpResourceTool",
	"RemoteTrigger", "SendMessage", "SlashCommand", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TeamCreate", "TeamDelete", "TodoRead", "TodoWrite", "ToolSearch", "WebSearch",
}
