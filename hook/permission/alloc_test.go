package permission_test

import (
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// Every call of every tool is judged, most often to be let through.
func TestAPermissionDecisionTakesOneAllocation(t *testing.T) {
	rules, err := permission.New(permission.Config{Allow: []string{"echo"}, Deny: []string{"other", "Bash(rm:*)", "Read(.env)"}, Ask: []string{"third", "Edit(src/**)"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	use := &hook.ToolUse{Tool: tool.Definition{}, Call: message.ToolCall{ID: "c", Name: "echo", Input: `{"value":"something that is no path","flag":true,"n":3}`}, Result: &tool.Result{Content: "it"}}
	if n := testing.AllocsPerRun(100, func() {
		d, err := rules.PreToolUse(t.Context(), use)
		if err != nil || d.Verdict != hook.Allow || d.Reason != "allowed by the rule echo (allow rule 1)" {
			t.Fatal(d, err)
		}
	}); n > 1 { // what the call reaches
		t.Errorf("a call that a rule allows takes %.0f allocations, want at most 1", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := rules.PostToolUse(t.Context(), use); err != nil || use.Result.Content != "it" {
			t.Fatal(use.Result, err)
		}
	}); n > 0 {
		t.Errorf("a result that is not of a search takes %.0f allocations, want none", n)
	}
}
