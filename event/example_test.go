package event_test

import (
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

func TestAnEventIsAnEntryOrADelta(t *testing.T) {
	if got := (event.Event{Entry: journal.Entry{Data: journal.Resumed{}}, Delta: event.Retry}).Type(); got != "resumed" {
		t.Error(got)
	}
	if got := (event.Event{Delta: event.ToolOutput}).Type(); got != "tool.output" {
		t.Error(got)
	}
}
