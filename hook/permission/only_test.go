package permission_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
)

func TestAListOfWhatIsAllowedIsTheWholeOfIt(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		rules, tool, input string
		want               bool
	}{
		{"", "read", `{"file_path":"a"}`, false},
		{"", "skill", `{"name":"x"}`, true},
		{"", "ask_user", `{"question":"x"}`, true},
		{"", "bash_output", `{}`, true},
		{"", "bash_kill", `{"id":"x"}`, true},
		{"", "task", `{"agent":"x","prompt":"x"}`, false},
		{"", "bash", `{"command":"true"}`, false},
		{"Read", "read", `{"file_path":"a"}`, true},
		{"Read", "glob", `{"pattern":"*"}`, true},
		{"Read", "bash", `{"command":"cat a"}`, false}, // no rule is about commands
		{"Read(src/**)", "read", `{"file_path":"src/a"}`, true},
		{"Read(src/**)", "read", `{"file_path":"a"}`, false},
		{"Read(src/**)", "read", `{"file_path":"src/../a"}`, false},
		{"Bash", "bash", `{"command":"touch a; echo b > c"}`, true},
		{"Bash", "write", `{"file_path":"a","content":""}`, false},
		{"Bash(go test:*)", "Bash", `{"command":"go test ./..."}`, true},
		{"Bash(go test:*)", "bash", `{"command":"go test ./... && touch a"}`, false},
		{"Bash(go test:*)", "bash", `{"command":"go test ./... | tail -1"}`, true},
		{"Bash(go test:*)", "bash", `{"command":"go test ./... && cat a"}`, false},
		{"Bash(go test:*) Read", "bash", `{"command":"go test ./... && cat a"}`, true},
		{"Bash(go test:*) Read", "bash", `{"command":"cat a | head -3; git status"}`, true},
		{"Bash(go test:*) Read", "bash", `{"command":"cat a; touch b"}`, false},
		{"Bash(go test:*) Read(src/**)", "bash", `{"command":"cat a"}`, false},
		{"Bash(go test:*) Read(src/**)", "bash", `{"command":"cat src/a"}`, true},
		{"Bash(go test:*)", "bash", `{"command":"ls"}`, false},
		{"Bash(go test:*) Glob", "bash", `{"command":"ls"}`, false},
		{"Bash(go test:*)", "bash", `{"command":"go test ./... > a"}`, false},
		{"Bash(go test:*) Write", "bash", `{"command":"go test ./... > a"}`, true},
		{"Bash(go:*) Bash(git add:*)", "bash", `{"command":"go build && git add ."}`, true},
		{"Task(explore)", "task", `{"agent":"explore","prompt":"x"}`, true},
		{"Task(explore)", "task", `{"agent":"worker","prompt":"x"}`, false},
		{"mcp__notes", "mcp__notes__add", `{}`, true},
		{"mcp__notes", "mcp__mail__send", `{}`, false},
		{"other", "other", `{}`, true},
	} {
		var rules []string
		for _, r := range strings.SplitAfter(c.rules, ") ") {
			if r = strings.TrimSpace(r); r != "" {
				rules = append(rules, r)
			}
		}
		only, err := permission.Only(dir, rules...)
		if err != nil {
			t.Fatal(err)
		}
		if got := only(&hook.ToolUse{Call: message.ToolCall{ID: "c", Name: c.tool, Input: c.input}}); got != c.want {
			t.Errorf("%q: %s %s: %v", rules, c.tool, c.input, got)
		}
	}
	if _, err := permission.Only(dir, "Read", "Bash("); !errdefs.Validation.Is(err) {
		t.Error(err)
	}
}
