package loop_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func ExampleNew() {
	read := tool.Func("read", "Read a file.", func(_ context.Context, in path) (string, error) { return "module example", nil }, tool.ReadOnly)
	remove := tool.Func("remove", "Remove a file.", func(context.Context, path) (string, error) { return "gone", nil }, tool.Destructive)
	careful := hook.Middleware{Name: "careful", PreToolUse: func(_ context.Context, u *hook.ToolUse) (hook.Decision, error) {
		if u.Tool.Destructive {
			return hook.Denied("nothing is removed here"), nil
		}
		return hook.Decision{}, nil
	}}
	eng, err := loop.New(loop.Config{
		Model:  plays(uses(call("c1", "read", `{"path":"go.mod"}`), call("c2", "remove", `{"path":"go.mod"}`)), says("It is called example.")),
		Tools:  []tool.Tool{read, remove},
		Hooks:  []hook.Middleware{careful},
		Limits: loop.Limits{Steps: 10},
	})
	if err != nil {
		panic(err)
	}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("What is in go.mod?")})
	if err != nil {
		panic(err)
	}
	for r := range message.Of[message.ToolResult](res.Messages[1]) {
		fmt.Println(r.Name, r.Content)
	}
	fmt.Println(res.Text())
	// Output:
	// read module example
	// remove nothing is removed here
	// It is called example.
}
