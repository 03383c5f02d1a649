package agent_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// Prompts of one ContextID are one conversation: the journal has what was said before.
func ExampleRun_multiTurn() {
	ctx, store := context.Background(), journal.Memory()
	eng, _ := loop.New(loop.Config{Model: script{message.Assistant("Hello Ada."), message.Assistant("You are Ada.")}})
	for _, prompt := range []string{"I am Ada.", "Who am I?"} {
		res, _ := agent.Run(ctx, agent.Agent{ID: "a"}, eng, agent.Request{ContextID: "chat", Message: message.User(prompt)}, agent.WithJournal(store))
		fmt.Println(res.Text(), len(res.Messages), "new of", res.LastBoard.Channel(engine.MainChannel).Len())
	}
	// Output:
	// Hello Ada. 1 new of 2
	// You are Ada. 1 new of 4
}

// A model hands over by calling a tool; the host looks at the Result and runs whom it likes.
func ExampleHandoffDecider() {
	ctx := context.Background()
	hs := []agent.Handoff{
		{ToAgentID: "billing", Description: "Refunds, invoices, plans"},
		{ToAgentID: "tech", Description: "Bugs and errors"},
	}
	model := script{
		message.Assistant("Billing will help you.", message.ToolCall{ID: "c1", Name: "transfer_to_billing", Input: `{"reason":"a refund","note":"order 12"}`}),
	}
	eng, _ := loop.New(loop.Config{Model: model, Tools: agent.HandoffTools(ctx, nil, hs)})
	desk := agent.Agent{ID: "desk", Deciders: []agent.Decider{agent.HandoffDecider(hs)}}
	res, _ := agent.Run(ctx, desk, eng, agent.Request{Message: message.User("I want my money back.")})
	if ev, ok := agent.HandoffFromResult(res); ok {
		fmt.Printf("to %s: %s (%s)\n", ev.ToAgentID, ev.Args.Reason, ev.Args.Note)
	}
	fmt.Println(res.Text(), res.State[agent.StateFinalizeReason])
	// Output:
	// to billing: a refund (order 12)
	// Billing will help you. handoff:billing
}

// A team follows handoffs itself, in one conversation. The next prompt goes to who has it.
func ExampleTeam() {
	ctx, store := context.Background(), journal.Memory()
	hs := []agent.Handoff{{ToAgentID: "billing", Description: "Refunds, invoices, plans"}}
	desk, _ := loop.New(loop.Config{
		Model: persona{
			message.Assistant("Billing will help you.", message.ToolCall{ID: "c1", Name: "transfer_to_billing", Input: `{"note":"order 12"}`}),
		},
		Tools: agent.HandoffTools(ctx, nil, hs),
	})
	billing, _ := loop.New(loop.Config{Model: persona{message.Assistant("It is on its way.")}})
	team, err := agent.NewTeam(agent.TeamConfig{Members: []agent.Member{
		{Agent: agent.Agent{ID: "desk"}, Engine: desk, Handoffs: hs},
		{Agent: agent.Agent{ID: "billing"}, Engine: billing},
	}})
	if err != nil {
		panic(err)
	}
	for _, prompt := range []string{"I want my money back.", "When?"} {
		res, _ := team.Run(ctx, agent.Request{ContextID: "chat", Message: message.User(prompt)}, agent.WithJournal(store))
		fmt.Println(res.State[agent.StateTeamPath], res.Text())
	}
	// Output:
	// [desk billing] It is on its way.
	// [billing] It is on its way.
}

// A revise is a fresh attempt: the same run, from the same prompt, as often as it is allowed.
func ExampleWithMaxRevise() {
	short := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: len(res.Text()) > 10, Reason: "too long"}, nil
	})
	eng := &flaky{answers: []string{"a very long answer", "still too long", "short"}}
	res, _ := agent.Run(context.Background(), agent.Agent{ID: "a"}, eng, agent.Request{Message: message.User("?")}, agent.WithDecider(short), agent.WithMaxRevise(2))
	fmt.Println(res.Text(), res.Attempts, res.Committed) // the last one that there was is kept, unless a decider says DiscardOutput
	// Output: still too long 2 true
}
