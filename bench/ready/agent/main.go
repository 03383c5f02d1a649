// Command agent is an agent of the parts that it needs: agent.Run over engine/loop, model/anthropic and one tool, with a journal in memory. Without a prompt it ends as soon as it is ready to be asked.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/tool"
)

type input struct {
	Value string `json:"value"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	echo := tool.Func("echo", "Gives back what it is given.", func(_ context.Context, in input) (string, error) { return in.Value, nil })
	engine, err := loop.New(loop.Config{Model: anthropic.New("bench", model.WithBaseURL(os.Getenv("UPSTREAM")), model.WithKey("none")), Tools: []tool.Tool{echo}})
	if err != nil {
		return err
	}
	store := journal.Memory()
	if _, err := journal.Open(ctx, store, "session"); err != nil {
		return err
	}
	if len(os.Args) < 2 {
		return nil
	}
	res, err := agent.Run(ctx, agent.Agent{ID: "bench"}, engine, agent.Request{ContextID: "session", Message: message.User(os.Args[1])}, agent.WithJournal(store))
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}
