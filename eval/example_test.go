package eval_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/eval"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
	"github.com/pawl-dev/pawl/tool"
)

// desk is an engine whose model is a script: it looks an order up when it is asked for one.
func desk() engine.Engine {
	lookup := tool.Func("lookup_order", "Look an order up.", func(_ context.Context, in struct {
		Order int `json:"order"`
	},
	) (string, error) {
		return "shipped", nil
	}, tool.ReadOnly)
	order := scripted.Calls(scripted.Call{ID: "c1", Name: "lookup_order", Input: `{"order":7}`})
	order.When = scripted.When{Contains: "order 7"}
	said := scripted.Text("It was shipped.")
	said.When = scripted.When{ToolOK: "c1"}
	eng, err := loop.New(loop.Config{Model: scripted.New(order, said, scripted.Text("You are welcome.")), Tools: []tool.Tool{lookup}})
	if err != nil {
		panic(err)
	}
	return eng
}

func TestOrders(t *testing.T) {
	cases, err := eval.LoadCases("testdata/orders.jsonl", eval.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eval.Run(t, eval.Suite{
		Name:     "orders",
		Cases:    cases,
		How:      eval.Agent(nil, agent.Agent{ID: "desk"}, desk()),
		Scorers:  []eval.Scorer{eval.Contains(), eval.MaxSteps(3)},
		Repeats:  3,
		Baseline: "testdata/orders.json",
	})
}

// A suite without a test: the report says what came of it.
func ExampleDo() {
	short := func(_ context.Context, s eval.Sample) (eval.Score, error) {
		if n := len(s.Answer); n > 15 {
			return eval.Score{Value: 15 / float64(n), Why: fmt.Sprintf("it has %d bytes", n)}, nil
		}
		return eval.Score{Value: 1, Pass: true}, nil
	}
	report, err := eval.Do(context.Background(), eval.Suite{
		Name: "orders",
		Cases: []eval.Case{
			{Name: "order", Prompt: "Where is order 7?", Want: "It was shipped."},
			{Name: "thanks", Prompt: "Thank you!", Want: "You are welcome."},
		},
		How: eval.Agent(nil, agent.Agent{ID: "desk"}, desk()),
		Scorers: []eval.Scorer{
			eval.Exact(),
			eval.ToolCalls(eval.AnyOrder, eval.Use{Name: "lookup_order", Args: map[string]any{"order": 7}}),
			eval.Named("short", eval.ScorerFunc(short)),
		},
		Repeats: 5,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range report.Scores {
		fmt.Printf("%s: %d of %d, from %.2f to %.2f\n", s.Scorer, s.Passed, s.Of, s.Rate.Low, s.Rate.High)
	}
	for _, p := range report.Problems {
		fmt.Println(p.Kind, p.Case, p.Scorer)
	}
	// Output:
	// completed: 10 of 10, from 0.72 to 1.00
	// exact: 10 of 10, from 0.72 to 1.00
	// tools any order lookup_order{"order":7}: 5 of 10, from 0.24 to 0.76
	// short: 5 of 10, from 0.24 to 0.76
	// low thanks tools any order lookup_order{"order":7}
	// low thanks short
}

// Sessions that are on record are scored as fresh ones are; no model is called.
func ExampleRecorded() {
	ctx, store := context.Background(), journal.Memory() // or sqlite.Open, postgres.Open: where the sessions are
	for session, prompt := range map[string]string{"monday": "Where is order 7?", "tuesday": "Thank you!"} {
		req := agent.Request{ContextID: session, Message: message.User(prompt)}
		if _, err := agent.Run(ctx, agent.Agent{ID: "desk"}, desk(), req, agent.WithJournal(store)); err != nil {
			fmt.Println(err)
			return
		}
	}
	finished, others, err := eval.Recorded(ctx, store, journal.Query{Agent: "desk"})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := eval.Do(ctx, eval.Suite{
		Name:    "in service",
		Samples: finished,
		Scorers: []eval.Scorer{eval.MaxSteps(1), eval.ToolCalls(eval.NoneOf, eval.Uses("refund")...)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(finished), "finished,", len(others), "not")
	fmt.Println(report.Err())
	// Output:
	// 2 finished, 0 not
	// monday: steps <= 1: 0/1 passed (0 %, 95 % interval 0 % to 79.3 %), at least 100 % is asked for: model calls: 2, the limit is 1
}

// The evals of a pack are scorers: each turn is looked at, or the whole, as its trigger says.
func ExamplePack() {
	p, err := pack.Parse([]byte(`{
	  "id": "support", "name": "Support", "version": "1.0.0", "template_engine": {"version": "v1", "syntax": "{{variable}}"},
	  "prompts": {"chat": {"id": "chat", "name": "Chat", "version": "1.0.0", "system_template": "You help with orders."}},
	  "evals": [
	    {"id": "short", "type": "max_length", "trigger": "every_turn", "params": {"max_characters": 15}, "message": "Too long"},
	    {"id": "looked", "type": "tools_called", "trigger": "on_session_complete", "params": {"tool_names": ["lookup_order"]}, "when": {"turn_count_gte": 2}}
	  ]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	scorers, err := eval.Pack(p, "chat", eval.PackOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := eval.Do(context.Background(), eval.Suite{
		Name:    "support",
		Cases:   []eval.Case{{Name: "two turns", Messages: []message.Message{message.User("Where is order 7?"), message.User("Thank you!")}}},
		How:     eval.Agent(nil, agent.Agent{ID: "desk"}, desk()),
		Scorers: scorers,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range report.Cases[0].Samples[0].Scores {
		fmt.Printf("%s %.1f %q\n", s.Scorer, s.Value, s.Why)
	}
	// Output:
	// completed 1.0 ""
	// short 0.5 "turn 2: Too long: it has more than 15 characters"
	// looked 1.0 ""
}
