package serve_test

import (
	"context"
	"fmt"
	"net"

	"github.com/pawl-dev/pawl/a2a"
	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/serve"
)

// A client of A2A finds the agent, and gives it a task.
func Example_a2a() {
	engine, err := loop.New(loop.Config{Model: scripted.New(scripted.Text("It is five."))})
	if err != nil {
		fmt.Println(err)
		return
	}
	adder := serve.Of(agent.Agent{ID: "adder"}, engine, journal.Memory())
	s, err := serve.New(adder, serve.Options{Card: agent.AgentCard{Name: "Adder", Description: "Adds numbers."}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- s.Serve(ctx, l) }()

	client, err := a2a.Dial(ctx, "http://"+l.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	event, err := client.Send(ctx, a2a.SendRequest{Message: a2a.Message{ID: "one", Role: a2a.RoleUser, Parts: []a2a.Part{a2a.Text("How much is 2 + 3?")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.Card().Name, event.Task.Status.State, event.Task.Artifacts[0].Parts[0].Text)
	stop()
	fmt.Println(<-served)
	// Output:
	// Adder TASK_STATE_COMPLETED It is five.
	// <nil>
}
