package event_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

func Example() {
	show := func(e event.Event) {
		switch d := e.Data.(type) {
		case nil:
			fmt.Println(e.Type(), e.Text)
		case journal.ToolStarted:
			fmt.Println(e.Type(), d.Call.Name)
		}
	}
	show(event.Event{Delta: event.TextDelta, Text: "hello"})
	show(event.Event{Entry: journal.Entry{Data: journal.ToolStarted{Call: journal.Called{Name: "bash"}}}})
	// Output:
	// text.delta hello
	// tool.started bash
}

// Somebody watches the tools of all runs, and is not waited for.
func ExampleBus() {
	var bus event.Bus // engine.Publishing has runs publish into it
	tools, err := event.Subject("agent.run.*.step.*.tool.>")
	if err != nil {
		fmt.Println(err)
		return
	}
	sub := bus.Subscribe(context.Background(), tools, event.Policy{Full: event.DropOldest, Buffer: 100})

	publish := func(run string, key journal.Key, d journal.Data) {
		if bus.Listening() {
			bus.Publish(context.Background(), event.Event{Entry: journal.Entry{Run: run, Key: key, Data: d}})
		}
	}
	publish("r1", journal.Key{}, journal.RunStarted{Attempt: 1})
	publish("r1", journal.Key{Op: "tool", ID: "c1"}, journal.ToolStarted{})
	publish("r2", journal.Key{Scope: "review", Op: "tool", ID: "c2"}, journal.ToolFinished{Outcome: journal.OutcomeError})
	bus.Close() // what was published is still read

	for e := range sub.Events() {
		fmt.Println(e.Subject())
	}
	fmt.Println(sub.Lost(), "lost")
	// Output:
	// agent.run.r1.step.-.tool.c1.start
	// agent.run.r2.step.review.tool.c2.error
	// 0 lost
}

// A pattern that nothing can ever match is a mistake.
func ExampleSubject() {
	_, err := event.Subject("agent.run.*.steps.>")
	fmt.Println(err)
	_, err = event.Subject("agent.run." + event.Part("my run.2") + ".end")
	fmt.Println(err)
	// Output:
	// event: subject "agent.run.*.steps.>": part 4 is "steps", and no subject has that there: want start or attempt or end or note or step or stream, see event.Event.Subject
	// <nil>
}

func TestAnEventIsAnEntryOrADelta(t *testing.T) {
	if got := (event.Event{Entry: journal.Entry{Data: journal.Resumed{}}, Delta: event.Retry}).Type(); got != "resumed" {
		t.Error(got)
	}
	if got := (event.Event{Delta: event.ToolOutput}).Type(); got != "tool.output" {
		t.Error(got)
	}
}
