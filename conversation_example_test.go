package pawl_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
	"github.com/pawl-dev/pawl/pack"
)

// lookup asks for an order, and then says how it is.
func lookup() *scripted.Model {
	return scripted.New(scripted.Calls(scripted.Call{ID: "c1", Name: "lookup_order", Input: `{"order_id":"7"}`}), scripted.Text("It was shipped."))
}

// A loader of one's own, for packs that several conversations share.
func ExampleWithLoader() {
	loader := &pack.Loader{}
	p, err := loader.Load("testdata/support.pack.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.ID, p.Version)
	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithLoader(loader), pawl.WithModel(lookup()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conv.Close())
	// Output:
	// support 1.0.0
	// <nil>
}

// What happens in a turn, in order, while Send is under way.
func ExampleConversation_Subscribe() {
	ctx := context.Background()
	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithModel(lookup()), pawl.WithVars(map[string]any{"name": "Ada"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	conv.OnTool("lookup_order", func(map[string]any) (any, error) { return "shipped", nil })
	events := conv.Subscribe(ctx, event.Policy{}, pawl.EventSend, pawl.EventToolCall, pawl.EventToolResult, pawl.EventResponse, pawl.EventError)
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range events.Events() {
			switch _, name := e.Tool(); e.Type {
			case pawl.EventToolCall:
				fmt.Println(e.Type, name, e.Args())
			case pawl.EventToolResult:
				fmt.Println(e.Type, name, e.Data["content"])
			case pawl.EventError:
				fmt.Println(e.Type, e.Error())
			default:
				fmt.Println(e.Type, e.Text())
			}
		}
	})
	if _, err := conv.Send(ctx, "Where is order 7?"); err != nil {
		fmt.Println(err)
	}
	if err := conv.Close(); err != nil { // ends the range
		fmt.Println(err)
	}
	wg.Wait()
	// Output:
	// send Where is order 7?
	// tool_call lookup_order map[order_id:7]
	// tool_result lookup_order shipped
	// response It was shipped.
}

// A call waits for a person: nothing runs, and no model is called, until he has answered.
func ExampleConversation_OnToolAsync() {
	ctx := context.Background()
	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithModel(lookup()), pawl.WithVars(map[string]any{"name": "Ada"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()
	conv.OnToolAsync("lookup_order",
		func(args map[string]any) pawl.Pending { // the zero Pending would let it run at once
			return pawl.Pending{Reason: "personal_data", Message: fmt.Sprintf("Show order %v?", args["order_id"])}
		},
		func(map[string]any) (any, error) { return "shipped", nil })

	resp, err := conv.Send(ctx, "Where is order 7?")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range resp.Pending {
		fmt.Println(p.ID, p.Prompt)
		if err := conv.ResolveTool(ctx, p.ID); err != nil { // or RejectTool, from any process
			fmt.Println(err)
		}
	}
	if resp, err = conv.Continue(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Text())
	// Output:
	// c1 Show order 7?
	// It was shipped.
}

// What was said elsewhere becomes a part of the conversation.
func ExampleConversation_AddMessage() {
	ctx := context.Background()
	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithModel(lookup()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()
	for _, m := range []message.Message{message.User("Hello"), message.Assistant("Hello, Ada.")} {
		if err := conv.AddMessage(ctx, m); err != nil {
			fmt.Println(err)
		}
	}
	messages, err := conv.Messages(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range messages.All() {
		fmt.Println(m.Role(), m.Text())
	}
	// Output:
	// user Hello
	// assistant Hello, Ada.
}

// Safe concurrent access.
func ExampleConversation_SetVar() {
	conv, err := pawl.Open("testdata/support.pack.json", "chat", pawl.WithModel(lookup()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()

	var wg sync.WaitGroup

	for i := 0; i < 10; i++ {
		wg.Add(1)
		go func(n int) {
			defer wg.Done()
			conv.SetVar(fmt.Sprintf("key_%d", n), n)
		}(i)
	}

	wg.Wait()
	v, ok := conv.GetVar("key_7")
	fmt.Println(v, ok)
	// Output: 7 true
}

// A workflow leads from prompt to prompt: here a refund that a person approves, and then a farewell that speaks for itself.
func ExampleOpenWorkflow() {
	desk := scripted.New(
		scripted.Calls(scripted.Call{Name: "refund", Input: `{"order":"7"}`}),
		scripted.Calls(scripted.Call{Name: "workflow__set_artifact", Input: `{"name":"receipt","value":"R-7"}`}),
		scripted.Calls(scripted.Call{Name: "workflow__transition", Input: `{"event":"Refunded","context":"Order 7 was broken."}`}),
		scripted.Text("Your money is back on Monday."),
	)
	ctx := context.Background()
	conv, err := pawl.OpenWorkflow("testdata/refund.pack.json", pawl.WithModel(desk))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conv.Close() }()
	conv.OnToolAsync("refund",
		func(map[string]any) pawl.Pending { return pawl.Pending{Reason: "money"} },
		func(args map[string]any) (any, error) {
			return fmt.Sprint("order ", args["order"], " is paid back"), nil
		})

	resp, err := conv.Send(ctx, "Order 7 came broken.")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := conv.ResolveTool(ctx, resp.Pending[0].ID); err != nil {
		fmt.Println(err)
		return
	}
	if resp, err = conv.Continue(ctx); err != nil {
		fmt.Println(err)
		return
	}
	at, err := conv.Workflow(ctx)
	fmt.Println(resp.Text(), at.State, at.Ended, at.Artifacts["receipt"], err)
	// Output: Your money is back on Monday. farewell completed R-7 <nil>
}
