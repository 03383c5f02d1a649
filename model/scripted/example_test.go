package scripted_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
	"github.com/pawl-dev/pawl/model/scripted"
)

func Example() {
	m := scripted.New(
		scripted.Calls(scripted.Call{Name: "read", Input: `{"file_path":"go.mod"}`}),
		scripted.Text("It is a Go module."),
	)
	h := message.NewHistory(message.User("What is this?"))
	for {
		reply, err := m.Complete(context.Background(), model.Request{Messages: h})
		if err != nil {
			fmt.Println(err)
			return
		}
		h = h.Append(reply.Message)
		calls := reply.Message.ToolCalls()
		if len(calls) == 0 {
			fmt.Println(reply.Message.Text())
			return
		}
		for _, c := range calls {
			fmt.Println(c.ID, c.Name, c.Input)
			h = h.Append(message.Results(message.ToolResult{Call: c.ID, Name: c.Name, Content: "module x"}))
		}
	}
	// Output:
	// call_1_1 read {"file_path":"go.mod"}
	// It is a Go module.
}

func ExampleParse() {
	s, err := scripted.Parse("demo.yaml", []byte(`
turns:
  - error: {status: 529, retry_after: 1s}
  - text: "Here I am."
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	m := s.Model()
	req := model.Request{Messages: message.NewHistory(message.User("Hello?"))}
	for attempt := range 2 {
		reply, err := m.Complete(model.WithAttempt(context.Background(), attempt), req)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(reply.Message.Text())
	}
	_, err = scripted.Parse("demo.yaml", []byte("turns:\n  - txet: hi\n"))
	fmt.Println(err)
	// Output:
	// scripted: HTTP 529: turn 1 of the script is an error
	// Here I am.
	// demo.yaml:2: unknown field "txet" in a turn: it may have delay, error, reasoning, stop, text, tool_calls, usage, when
}

// A script with parts for child agents. A Runtime (package pawl) asks For them by the IDs of its subagents.
func ExampleScript() {
	s := scripted.Script{
		Name:   "review",
		Turns:  []scripted.Turn{scripted.Calls(scripted.Call{Name: "task", Input: `{"agent":"reviewer","prompt":"Review it."}`})},
		Agents: map[string][]scripted.Turn{"reviewer": {scripted.Text("Looks right.")}},
	}
	lead := s.Model()
	for _, m := range []*scripted.Model{lead, lead.For("reviewer"), lead.For("tester")} {
		reply, err := m.Complete(context.Background(), model.Request{Messages: message.NewHistory(message.User("Review it."))})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(reply.Model, reply.Message.Text(), len(reply.Message.ToolCalls()), "calls")
	}
	// Output:
	// scripted/review  1 calls
	// scripted/review#reviewer Looks right. 0 calls
	// scripted/review: the script has nothing for the agent "tester" (it has: reviewer): add it under agents
}
