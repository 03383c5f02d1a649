package script_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/engine/script"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

func Example() {
	eng, err := script.New(script.Config{
		Name:   "report.star",
		Source: `emit("The model says: " + generate("Write a report.").text)`,
		Loop:   loop.Config{Model: scripted.New(scripted.Text("Otters hold hands."))},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "reporter"}, eng, agent.Request{Message: message.User("Go.")})
	fmt.Println(res.Text(), err)
	// Output: The model says: Otters hold hands. <nil>
}
