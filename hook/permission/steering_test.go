package permission_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
)

func TestEditsOfWhatRunsOutsideOfTheSandboxLaterAreAskedAbout(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".git/hooks", ".agents", "sub/.git", "scripts/hooks", "unused"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".git/hooks", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../shared.gitconfig\n", "shared.gitconfig": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	steering := []string{
		"scripts/hooks/pre-commit", "shared.gitconfig",
		".git/hooks/pre-commit", "./x/../.git/config", ".git/info/attributes", ".git", "sub/.git/config", ".agents/settings.json", ".claude/settings.local.json", ".vscode/tasks.json", ".envrc",
		filepath.Join(dir, ".agents/rules/a.md"), "link/pre-commit",
	}
	for mode, want := range map[permission.Mode]hook.Verdict{
		permission.ModeDefault: hook.Ask, permission.ModeAcceptEdits: hook.Ask, permission.ModeDontAsk: hook.Deny, permission.ModePlan: hook.Deny, permission.ModeBypass: hook.Allow,
	} {
		for _, fence := range []bool{true, false} {
			grants := new(permission.Grants)
			m := judging(t, permission.Config{Mode: mode, Dir: dir, Fence: fence, Allow: []string{"Edit", "Write", "Edit(.git/**)", "mcp__fs"}, Grants: grants})
			for _, name := range steering {
				for _, u := range []*hook.ToolUse{
					call("write " + name), call("edit " + name), useOf("str_replace_based_edit_tool", in{"command": "create", "path": name}), useOf("mcp__fs__write", in{"path": name, "content": "x"}),
				} {
					if d := judged(t, m, u); d.Verdict != want {
						t.Errorf("%s, fence %v: %s %s: %v %s", mode, fence, u.Call.Name, u.Call.Input, d.Verdict, d.Reason)
					}
				}
			}
			u := call("write .envrc")
			for grant, want := range map[hook.Grant]hook.Verdict{{Rule: "Edit"}: want, {Tool: "write", Input: u.Call.Input}: hook.Allow} { // who approved a rule did not see this call
				if err := grants.Approve("s1", grant); err != nil {
					t.Fatal(err)
				}
				if d := judged(t, m, u); d.Verdict != want && mode != permission.ModePlan {
					t.Errorf("%s: after %+v was approved: %v %s", mode, grant, d.Verdict, d.Reason)
				}
				grants.Forget("s1")
			}
			for _, name := range []string{"main.go", "scripts/x", "unused/x", ".gitignore", ".github/workflows/ci.yml", "docs/.agents.md", "src/.agents/x", "a.envrc"} {
				if d := judged(t, m, call("write "+name)); d.Verdict != hook.Allow && mode != permission.ModePlan {
					t.Errorf("%s: %s: %v %s", mode, name, d.Verdict, d.Reason)
				}
			}
			for _, u := range []*hook.ToolUse{call("read .agents/settings.json"), call("grep x .git"), call("bash cat .git/config")} {
				if d := judged(t, m, u); d.Verdict != hook.Allow {
					t.Errorf("%s: %s: %v %s", mode, u.Call.Input, d.Verdict, d.Reason)
				}
			}
		}
	}
}
