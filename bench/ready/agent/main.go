package main

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/anthropic"
	"github.com/pawl-dev/pawl/tool"
)

type input struct {
	Value string `json:"value"`
}

func main() {
	echo := tool.Func("echo", "Gives back what it is given.", func(_ context.Context, in input) (string, error) { return in.Value, nil })
	eng, err := loop.New(loop.Config{Model: anthropic.New("bench"), Tools: []tool.Tool{echo}})
	if err != nil {
		panic(err)
	}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "bench"}, eng, agent.Request{Message: message.User("x")}, agent.WithJournal(journal.Memory()))
	fmt.Println(res, err)
}
