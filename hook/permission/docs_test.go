package permission_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/tool"
)

// Each rule of docs/fence.md forbids what stands beside it, and not the row of another kind of rule.
func TestTheRulesOfThePageAreAboutWhatItSays(t *testing.T) {
	b, err := os.ReadFile("../../docs/fence.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	// call is the call that an example stands for, which is one of the tool that the rule names.
	call := func(rule, example string) (name string, input map[string]any) {
		name, _, _ = strings.Cut(rule, "(")
		if rest, ok := strings.CutPrefix(example, "~/"); ok {
			example = filepath.Join(home, rest)
		}
		switch name {
		case "Bash":
			return "bash", map[string]any{"command": example}
		case "Read":
			return "read", map[string]any{"file_path": example}
		case "Edit":
			return "edit", map[string]any{"file_path": example, "old_string": "a", "new_string": "b"}
		case "WebFetch":
			return "web_fetch", map[string]any{"url": example}
		case "Task":
			return "task", map[string]any{"agent": example, "prompt": "x"}
		case "Skill":
			return "skill", map[string]any{"name": example}
		}
		return example, map[string]any{}
	}
	verdict := func(rule, name string, input map[string]any) hook.Verdict {
		t.Helper()
		p, err := permission.New(permission.Config{Dir: dir, Deny: []string{rule}, Fence: true})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		use := &hook.ToolUse{Tool: tool.Definition{Tool: model.Tool{Name: name}}, Call: message.ToolCall{ID: "c", Name: name, Input: string(text)}}
		return hook.Judge(context.Background(), []hook.Middleware{p}, use, nil).Verdict
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(b), -1)
	if len(rows) < 15 {
		t.Errorf("only %d rules were found: the pattern no longer fits the page", len(rows))
	}
	for _, row := range rows {
		name, input := call(row[1], row[2])
		if v := verdict(row[1], name, input); v != hook.Deny {
			t.Errorf("the rule %s says %s of %s %v", row[1], v, name, input)
		}
		if v := verdict("Bash(nothing)", name, input); v == hook.Deny {
			t.Errorf("%s %v is denied without the rule %s", name, input, row[1])
		}
		for _, verb := range []permission.Config{{Allow: []string{row[1]}}, {Ask: []string{row[1]}}} {
			if _, err := permission.New(verb); err != nil {
				t.Error(err)
			}
		}
	}
	var modes []permission.Mode
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(string(b), -1) {
		modes = append(modes, permission.Mode(row[1]))
	}
	slices.Sort(modes)
	if want := slices.Sorted(slices.Values(permission.Modes())); !slices.Equal(modes, want) {
		t.Errorf("the page has the modes %v, there are %v", modes, want)
	}
}
