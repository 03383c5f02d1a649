package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/agent/askuser"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/hook"
	"github.com/pawl-dev/pawl/hook/permission"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/tool"
	"github.com/pawl-dev/pawl/tool/builtin"
)

// A whole set-up: transcripts in files of the caller's own, permission rules, a question to the user, a subagent, and the tools with what they depend on. Hooks do the rest.
func Example_completeSetup() {
	dir, err := os.MkdirTemp("", "setup-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	// Sessions in files, and permissions: reading and tasks run unasked, all else is asked about.
	sessions := hook.Sessions(hook.FileSessions(filepath.Join(dir, "sessions")))
	permissions, err := permission.New(permission.Config{Mode: permission.ModeDefault, Dir: dir, Allow: []string{"Read", "Glob", "Grep"}})
	must(err)

	// Tools get what they depend on when they are made.
	ws, err := builtin.Open(dir)
	must(err)
	defer func() { _ = ws.Close() }()
	researcher, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("It is a small project.")), Tools: []tool.Tool{ws.Read(), ws.Glob(), ws.Grep()}})
	must(err)
	task, err := agent.Task(agent.Subagents{{
		Agent: agent.Agent{ID: "researcher", Instructions: "You are a code researcher."}, Engine: researcher, Description: "Researches codebases to answer questions",
	}})
	must(err)
	tools := append(ws.Tools(), askuser.New(askuser.Deny()), task)

	eng, err := loop.New(loop.Config{
		Model: scripted.New(
			scripted.Turn{Calls: []scripted.Call{{ID: "c1", Name: "task", Input: `{"agent":"researcher","prompt":"What is this?"}`}, {ID: "c2", Name: "bash", Input: `{"command":"touch made"}`}}},
			scripted.Text("A small project."),
		),
		Tools: tools, Logger: slog.Default(),
	})
	must(err)
	coder := agent.Agent{
		ID: "coder", Instructions: "You are a helpful coding assistant.",
		Hooks: []hook.Middleware{sessions, permissions, hook.Inject("memory", message.Text{Text: "We use Go."})},
	}

	res, err := agent.Run(context.Background(), coder, eng, agent.Request{ContextID: "s", Message: message.User("What is this?")})
	must(err)
	fmt.Println(res.Status, res.Cause)
	for _, p := range res.Pending {
		fmt.Println("waits:", p.Call.Name, p.Call.Input)
	}
	// Output:
	// interrupted awaiting_person
	// waits: bash {"command":"touch made"}
}
