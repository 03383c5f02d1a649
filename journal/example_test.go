package journal_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// A process dies while a tool runs. Another one takes the session over: it finds the model's reply on record, and the tool begun but not
// done; the first one, should it only have slept, can do no more harm.
func Example() {
	ctx := context.Background()
	store := journal.Memory() // or sqlite.Open("journal.db")

	first, _ := journal.Open(ctx, store, "session-1")
	_ = first.Drive(ctx, "host-a/1",
		journal.Entry{Run: "run-1", Data: journal.RunStarted{Agent: "coder", Owner: "host-a/1", Attempt: 1}},
		journal.Entry{Run: "run-1", Data: journal.Said{Message: message.User("Delete the old logs.")}},
	)
	call := message.ToolCall{ID: "c1", Name: "bash", Input: `{"command":"rm logs/*"}`}
	model, tool := journal.Key{Op: "model", ID: "1"}, journal.Key{Op: "tool", ID: "c1"}
	_ = first.Append(ctx, journal.Entry{Run: "run-1", Key: model, Data: journal.ModelFinished{Message: message.Assistant("", call)}})
	_ = first.Append(ctx, journal.Entry{Run: "run-1", Key: tool, Data: journal.ToolStarted{Call: journal.CalledOf(call)}})

	second, _ := journal.Open(ctx, store, "session-1")
	_ = second.Drive(ctx, "host-b/7", journal.Entry{Run: "run-1", Data: journal.Resumed{Owner: "host-b/7"}})
	reply, _ := second.Recorded(model)
	outcome, begun := second.Recorded(tool)
	fmt.Println("the model said:", reply.(journal.ModelFinished).Message.ToolCalls()[0].Name)
	fmt.Println("the tool: begun", begun, "- outcome", outcome)

	done := journal.ToolFinished{Call: "c1", Name: "bash", Outcome: journal.OutcomeUnknown, Content: "Nobody knows whether it ran.", IsError: true}
	fmt.Println("second:", second.Append(ctx, journal.Entry{Run: "run-1", Key: tool, Data: done}))
	err := first.Append(ctx, journal.Entry{Run: "run-1", Key: tool, Data: journal.ToolFinished{Call: "c1", Name: "bash", Outcome: journal.OutcomeOK}})
	fmt.Println("first is fenced:", errors.Is(err, errdefs.Conflict))
	fmt.Println("messages:", second.State().Messages.Len())
	// Output:
	// the model said: bash
	// the tool: begun true - outcome <nil>
	// second: <nil>
	// first is fenced: true
	// messages: 3
}

// A fork shares its parent's entries up to a position and goes its own way from there.
func ExampleStore_fork() {
	ctx, store := context.Background(), journal.Memory()
	say := func(text string) journal.Entry { return journal.Entry{Data: journal.Said{Message: message.User(text)}} }
	_ = store.Append(ctx, "main", 0, say("one"), say("two"), say("three"))

	_ = store.Append(ctx, "what-if", 2, journal.Entry{Data: journal.SessionCreated{Parent: "main", At: 2}}, say("another three"))
	for e, err := range store.Read(ctx, "what-if", 0) {
		if err != nil {
			panic(err)
		}
		if said, ok := e.Data.(journal.Said); ok {
			fmt.Println(e.Seq, e.Session, said.Message.Text())
		}
	}
	// Output:
	// 1 main one
	// 2 main two
	// 4 what-if another three
}

// One part of a program, or another program on the same store, watches what an agent does in a session. Who was cut off goes on behind the last entry that he has.
func ExampleFollow() {
	store := journal.Memory() // or the sqlite.Store, or postgres.Store, that others write to
	go func() {               // somebody else, mostly in another process
		ctx := context.Background()
		_ = store.Append(ctx, "session-1", 0, journal.Entry{Data: journal.Said{Message: message.User("Delete the old logs.")}})
		_ = store.Append(ctx, "session-1", 1, journal.Entry{Data: journal.RunFinished{Status: "completed"}})
	}()

	last := int64(0) // kept where a reconnecting client finds it
	for entry, err := range journal.Follow(context.Background(), store, "session-1", last) {
		if err != nil {
			fmt.Println(err)
			return
		}
		last = entry.Seq
		fmt.Println(last, entry.Data.Kind())
		if _, over := entry.Data.(journal.RunFinished); over {
			break
		}
	}
	// Output:
	// 1 said
	// 2 run.finished
}
