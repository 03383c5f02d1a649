package temporal_test

import (
	"context"
	"fmt"
	"log"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/tool"
)

// yourModel is any model: openai.New(…), anthropic.New(…).
var yourModel model.Model

// A worker, and a program that has it do a run. Both have the Temporal service and the journal in common, and may be on different machines.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(client.Options{HostPort: "temporal.example:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	store, err := postgres.Open(ctx, "postgres://pawl@db.example/pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()

	refund := tool.Func("refund", "Pays an order back.", func(_ context.Context, in struct {
		Order string `json:"order"`
	},
	) (string, error) {
		return "paid back " + in.Order, nil
	}, tool.RequiresApproval)
	eng, err := loop.New(loop.Config{Model: yourModel, Tools: []tool.Tool{refund}})
	if err != nil {
		log.Fatal(err)
	}
	support := agent.Agent{ID: "support", Instructions: "You help customers."}

	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: support, Engine: eng}}})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Println(w.Run(ctx)) }()

	h, err := temporal.Begin(ctx, c, temporal.Order{Agent: "support", Message: message.User("Order 7 came broken.")})
	if err != nil {
		log.Fatal(err)
	}
	done, err := h.Wait(ctx) // or later, from anywhere: temporal.Attach(c, h.Session, h.Run)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Status, done.Text, done.Err())
}
