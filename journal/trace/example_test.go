package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/agent"
	"github.com/pawl-dev/pawl/engine/loop"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/trace"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model/scripted"
)

func ExampleHTML() {
	ctx, store := context.Background(), journal.Memory()
	eng, _ := loop.New(loop.Config{Model: scripted.New(scripted.Text("Nobody knows why. It <b>works</b>."))})
	req := agent.Request{ContextID: "s", Message: message.User("Why does it work?")}
	if _, err := agent.Run(ctx, agent.Agent{ID: "helper"}, eng, req, agent.WithJournal(store)); err != nil {
		fmt.Println(err)
	}

	var page bytes.Buffer // or a file
	if err := trace.HTML(ctx, &page, store, "s", 0); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(page.String(), "Why does it work?"))
	fmt.Println(strings.Contains(page.String(), "It &lt;b&gt;works&lt;/b&gt;."))
	// Output:
	// true
	// true
}
