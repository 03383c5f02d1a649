package agent_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/tool"
)

func ExampleRun() {
	add := tool.Func("add", "Add two numbers.", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }, tool.ReadOnly)
	model := script{ // a stand-in for a real model
		message.Assistant("Let me see.", message.ToolCall{ID: "c1", Name: "add", Input: `{"A":2,"B":3}`}),
		message.Assistant("It is five."),
	}
	eng, err := loop.New(loop.Config{Model: model, Tools: []tool.Tool{add}})
	if err != nil {
		panic(err)
	}
	res, err := agent.Run(context.Background(), agent.Agent{ID: "calculator"}, eng, agent.Request{Message: message.User("2+3?")})
	if err != nil {
		panic(err) // it could not begin
	}
	fmt.Println(res.Status, res.Text())
	for _, m := range res.Messages {
		fmt.Println(m.Role(), m.Len())
	}
	// Output:
	// completed It is five.
	// assistant 2
	// tool 1
	// assistant 1
}

// A run that was interrupted, or whose process died, goes on where it was: a tool whose result is in the journal is not run again.
func ExampleResume() {
	ctx, store := context.Background(), journal.Memory() // a store on disk outlives the process
	host := &myHost{interrupts: make(chan engine.Interrupt, 1)}
	pay := tool.Func("pay", "Pay.", func(context.Context, struct{}) (string, error) {
		fmt.Println("paying")
		host.interrupts <- engine.Interrupt{Cause: engine.CauseHostShutdown}
		return "paid", nil
	})
	eng, _ := loop.New(loop.Config{Model: script{message.Assistant("", call("c1", "pay", `{}`)), message.Assistant("all paid")}, Tools: []tool.Tool{pay}})
	ag := agent.Agent{ID: "payer"}

	res, _ := agent.Run(ctx, ag, eng, agent.Request{ContextID: "s", Message: message.User("pay")}, agent.WithJournal(store), agent.WithEngineHost(host))
	fmt.Println(res.Status, res.Cause)
	res, _ = agent.Resume(ctx, ag, eng, "s", agent.WithJournal(store))
	fmt.Println(res.Status, res.Text())
	_, err := agent.Resume(ctx, ag, eng, "s", agent.WithJournal(store))
	fmt.Println(errors.Is(err, errdefs.NotFound))
	// Output:
	// paying
	// interrupted host_shutdown
	// completed all paid
	// true
}

// A Decider judges a run when it is over. This one has it done again until it names its sources.
func ExampleDecider() {
	cites := agent.DeciderFunc(func(_ context.Context, _ agent.RunInfo, _ *agent.Request, res *agent.Result) (agent.FinalizeDecision, error) {
		return agent.FinalizeDecision{Revise: res.Text() != "42 [1]", Reason: "no sources"}, nil
	})
	eng := &flaky{answers: []string{"42", "42 [1]"}}
	res, _ := agent.Run(context.Background(), agent.Agent{ID: "a", Deciders: []agent.Decider{cites}}, eng, agent.Request{Message: message.User("?")}, agent.WithMaxRevise(3))
	fmt.Println(res.Text(), "after", res.Attempts, "attempts")
	// Output: 42 [1] after 2 attempts
}

// flaky answers better each time. It is an engine of its own: one needs nothing but a board.
type flaky struct{ answers []string }

func (f *flaky) Execute(_ context.Context, r engine.Run, _ engine.Host, b *engine.Board) (*engine.Board, error) {
	b.Append(engine.MainChannel, message.Assistant(f.answers[r.Attempt-1]))
	return b, nil
}
