package temporal_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"go.temporal.io/sdk/client"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/postgres"
	"github.com/pawl-dev/pawl/message"
	playing "github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/temporal"
	"github.com/pawl-dev/pawl/tool"
)

// A worker in one process, and in another one a run that is begun, answered when it asks, and waited for. Here both are one program; with nothing but the handle's names a third one could go on with it.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := client.Dial(client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")}) // "" is 127.0.0.1:7233
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	store, err := postgres.Open(ctx, os.Getenv("JOURNAL"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()

	// The worker has all that is not data: models, tools, keys.
	refund := tool.Func("refund", "Pay an order back.", func(_ context.Context, in struct{ Order string }) (string, error) {
		return "paid back: " + in.Order, nil
	}, tool.RequiresApproval)
	eng, err := loop.New(loop.Config{
		Model: playing.New(playing.Calls(playing.Call{ID: "c1", Name: "refund", Input: `{"Order":"A7"}`}), playing.Text("Your money is on its way."), playing.Text("You are welcome.")),
		Tools: []tool.Tool{refund},
	})
	if err != nil {
		log.Fatal(err)
	}
	support := agent.Agent{ID: "support", Instructions: "You help customers."}
	w, err := temporal.NewWorker(temporal.Config{Client: c, Store: store, Members: []temporal.Member{{Agent: support, Engine: eng}}})
	if err != nil {
		log.Fatal(err)
	}
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()

	// Whoever begins the run says who is to do it, where, and what is asked.
	h, err := temporal.Begin(ctx, c, temporal.Order{Agent: "support", Session: "chat", Message: message.User("I want my money back for A7.")})
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range journal.Follow(ctx, store, h.Session, 0) { // until it asks, or is over without
		if err != nil {
			log.Fatal(err)
		}
		if asked, ok := e.Data.(journal.Asked); ok {
			if err := h.Answer(ctx, journal.Answered{ID: asked.ID, Approved: true, By: "ann"}); err != nil {
				log.Fatal(err)
			}
			break
		}
		if _, over := e.Data.(journal.RunFinished); over {
			break
		}
	}
	done, err := h.Wait(ctx) // an error of the waiting; that of the run is done.Err()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Status, done.Text, done.Err())

	// The same with the caller at hand, who is told of events and asked questions as of a run here.
	res, err := agent.Run(ctx, support, temporal.NewEngine(c, eng), agent.Request{ContextID: "chat", Message: message.User("Thanks!")}, agent.WithJournal(store))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status, res.Text())

	stop()
	fmt.Println(<-worked)
}
