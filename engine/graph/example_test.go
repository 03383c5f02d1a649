package graph_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/graph"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

func Example() {
	def := graph.Definition{
		Name: "story", Entry: "write",
		Nodes: []graph.Node{
			{ID: "write", Type: "model", Config: map[string]any{"prompt": "Write about ${last.text}.", "output": "draft"}},
			{ID: "review", Type: "model", Config: map[string]any{"prompt": "Is it good? Say yes or no.", "output": "verdict"}},
		},
		Edges: []graph.Edge{
			{From: "write", To: "review"},
			{From: "review", To: "write", Condition: `verdict == "no"`},
			{From: "review", To: graph.End},
		},
	}
	m := scripted.New(scripted.Text("Foxes."), scripted.Text("no"), scripted.Text("Foxes hunt at night."), scripted.Text("yes"))
	eng, err := graph.Compile(def, graph.Kinds{Loop: loop.Config{Model: m}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "writer"}, eng, agent.Request{Message: message.User("foxes")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Status, res.LastBoard.Var("draft"))
	// Output: completed Foxes hunt at night.
}
