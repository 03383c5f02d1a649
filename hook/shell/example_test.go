//go:build unix

package shell_test

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/shell"
	"github.com/pawl-dev/pawl/message"
)

// ExampleNew shows hooks as they stand in a settings file: one keeps agents from force-pushing, another tells each session what it has to know.
func ExampleNew() {
	hooks, problems, err := shell.Decode([]byte(`{
		"PreToolUse": [{"matcher": "Bash", "hooks": [
			{"type": "command", "command": "if grep -q 'push --force'; then echo 'Ask a person to force-push.' >&2; exit 2; fi", "timeout": 10}]}],
		"SessionStart": [{"hooks": [{"type": "command", "command": "echo 'Releases are made on Fridays.'"}]}],
		"PreCompact": [{"hooks": [{"type": "command", "command": "date"}]}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(problems)
	ctx := context.Background()
	shells, err := shell.New(shell.Options{
		Dir:    os.TempDir(), // the project
		Notify: func(_ context.Context, n shell.Notice) { fmt.Println(n.Kind, n) },
	}, hooks...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = shells.Close(ctx) }()

	w := hook.Where{Session: "s1", Run: "r1"}
	start, err := shells.Fire(ctx, shell.SessionStart, w, shell.SessionPayload{Source: "startup"})
	fmt.Println(start.Context, err)
	use := &hook.ToolUse{Where: w, Call: message.ToolCall{ID: "1", Name: "bash", Input: `{"command":"git push --force"}`}}
	d := hook.Judge(ctx, []hook.Middleware{shells.Middleware()}, use, nil)
	fmt.Println(d.Verdict, d.Reason)
	// Output:
	// [line 5: PreCompact: Claude Code's event PreCompact is not supported: its hooks don't run]
	// output SessionStart hook echo 'Releases are made on Fridays.': Releases are made on Fridays.
	// Releases are made on Fridays. <nil>
	// deny Ask a person to force-push.
}
