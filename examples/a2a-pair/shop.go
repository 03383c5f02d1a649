package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/remote"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

// shop answers a customer. The agent over there is one that tasks are given to, as any subagent here: its engine is the one thing that differs.
func shop(ctx context.Context, prompt string) error {
	m, err := pawl.OpenModel(cmp.Or(*name, "scripted/examples/a2a-pair/shop.yaml"))
	if err != nil {
		return err
	}
	client, err := a2a.Dial(ctx, "http://"+*addr)
	if err != nil {
		return err
	}
	over, err := remote.New(client)
	if err != nil {
		return err
	}
	ask, err := agent.Task([]agent.Subagent{{Agent: agent.Agent{ID: "warehouse"}, Engine: over, Description: client.Card().Description}})
	if err != nil {
		return err
	}
	eng, err := loop.New(loop.Config{Model: m, Tools: []tool.Tool{ask}})
	if err != nil {
		return err
	}
	seller := agent.Agent{ID: "seller", Instructions: "You sell ratchets. Have the warehouse set aside what people take."}
	res, err := agent.Run(ctx, seller, eng, agent.Request{Message: message.User(prompt)})
	if err != nil {
		return err
	}
	fmt.Println(res.Text())
	return res.Err
}
