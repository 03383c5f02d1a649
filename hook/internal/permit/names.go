package permit

import (
	"path"
	"strings"
)

// The tools that rules know more of than their names.
const (
	bash     = "bash"
	output   = "bashoutput"
	kill     = "bashkill"
	read     = "read"
	write    = "write"
	edit     = "edit"
	glob     = "glob"
	grep     = "grep"
	fetch    = "webfetch"
	task     = "task"
	skill    = "skill"
	askUser  = "askuser"
	notebook = "notebookedit"
	editor   = "texteditor"
)

// otherNames are what the ecosystem calls these tools, in lower case and without underscores.
var otherNames = map[string]string{
	"shell": bash, "runshellcommand": bash, "killshell": kill, "killbash": kill,
	"readfile": read, "notebookread": read, "view": read,
	"writefile": write, "multiedit": edit, "editfile": edit, "notebookedit": notebook,
	"ls": glob, "listdirectory": glob, "listdir": glob, "search": grep,
	"fetch": fetch, "fetchurl": fetch,
	"agent": task, "askuserquestion": askUser,
	"strreplacebasededittool": editor, "strreplaceeditor": editor,
}

const mcpPrefix = "mcp__"

// canonical is the one name of a tool: in lower case; of one that is not an MCP server's, without underscores and under our name for it.
func canonical(name string) string {
	name = strings.ToLower(name)
	if strings.HasPrefix(name, mcpPrefix) {
		return name
	}
	name = strings.ReplaceAll(name, "_", "")
	if ours, ok := otherNames[name]; ok {
		return ours
	}
	return name
}

// SameTool reports whether two names are of one tool.
func SameTool(a, b string) bool { return canonical(a) == canonical(b) }

// ToolOf is the name of the tool in a rule, as it is written; it may have * in it.
func ToolOf(rule string) string {
	name, _, _ := strings.Cut(rule, "(")
	return strings.TrimSpace(name)
}

// Names reports whether a rule, as it is written, is about a tool.
func Names(rule, tool string) bool { return named(canonical(ToolOf(rule)), canonical(tool)) }

// Foreign reports whether other programs have a tool of that name.
func Foreign(name string) bool {
	_, ok := otherNames[strings.ReplaceAll(strings.ToLower(name), "_", "")]
	return ok
}

// named reports whether the rule's name, which may have * in it, is the tool's. A server's name alone stands for all its tools.
func named(pattern, tool string) bool {
	if strings.HasPrefix(pattern, mcpPrefix) && !strings.Contains(pattern[len(mcpPrefix):], "__") && !strings.HasSuffix(pattern, "*") {
		return strings.HasPrefix(tool, pattern+"__")
	}
	if strings.Contains(pattern, "*") {
		return wild(pattern, tool)
	}
	return pattern == tool
}

// wild matches a text in which * stands for any characters.
func wild(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return strings.HasSuffix(s, last)
}

// base is the last part of a program's path.
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}
