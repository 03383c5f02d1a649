package permission_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

func TestNamesOfOneTool(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"Bash", "bash", true},
		{"Shell", "bash", true},
		{"BashOutput", "bash_output", true},
		{"WebFetch", "web_fetch", true},
		{"LS", "glob", true},
		{"Agent", "task", true},
		{"bash", "bash_kill", false},
		{"mcp__A__b", "mcp__a__B", true},
		{"mcp__a__b_c", "mcp__a__bc", false},
		{"", "bash", false},
	} {
		if got := permission.SameTool(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
	for rule, want := range map[string]string{"Bash(go test:*)": "Bash", " Read ": "Read", "mcp__a__*": "mcp__a__*"} {
		if got := permission.RuleTool(rule); got != want {
			t.Errorf("%q: %q", rule, got)
		}
	}
	for name, want := range map[string]bool{"WebSearch": true, "todowrite": true, "MultiEdit": true, "NotebookEdit": true, "Bsh": false, "deploy": false} {
		if got := permission.ForeignTool(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestARuleForAMisspelledToolSaysWhichMayBeMeant(t *testing.T) {
	_, err := permission.New(permission.Config{Dir: t.TempDir(), Rules: []permission.Rule{{Verdict: hook.Deny, Text: "Bsh(ls)"}}})
	if err == nil || !strings.Contains(err.Error(), "the tool Bsh takes no specifier here: did you mean Bash? For all of Bsh write Bsh; only Bash, Read,") {
		t.Error(err)
	}
}
