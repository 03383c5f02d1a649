package stream_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/stream"
)

// A worker says what its model says, and the model fails on the way; another attempt is whole. Who follows the session is cut off after each piece of news, and goes on from where it was.
func Example() {
	ctx := context.Background()
	log, st := journal.Memory(), stream.Memory(stream.Retention{})
	key := journal.Key{Op: "model", ID: "1"}
	note := func(after int64, d journal.Data) {
		if err := log.Append(ctx, "chat", after, journal.Entry{Run: "r", Key: key, Data: d}); err != nil {
			fmt.Println(err)
		}
	}

	// In a worker.
	w := stream.NewWriter(st, stream.Batching{}, nil)
	note(0, journal.ModelStarted{})
	first := w.Begin(stream.Item{Session: "chat", Run: "r", Key: key, Seq: 1, Attempt: 1})
	first.Add(event.Event{Delta: event.TextDelta, Text: "Good mor"})
	first.End()
	first.Flush(ctx)
	note(1, journal.ModelFailed{Error: "overloaded"})
	second := w.Begin(stream.Item{Session: "chat", Run: "r", Key: key, Seq: 1, Behind: 2, Attempt: 2})
	second.Add(event.Event{Delta: event.TextDelta, Text: "Good "})
	second.Add(event.Event{Delta: event.TextDelta, Text: "evening."})
	second.End()
	second.Flush(ctx)
	note(2, journal.ModelFinished{Message: message.Assistant("Good evening.")})
	w.Close(ctx)

	// Somewhere else.
	var at stream.Position
	for over := false; !over; {
		for news, err := range stream.Follow(ctx, log, st, "chat", at) {
			if err != nil {
				fmt.Println(err)
				return
			}
			for _, e := range news.Events {
				fmt.Printf("%s %d %q\n", e.Type(), e.Attempt, e.Text)
				over = over || e.Type() == "model.finished"
			}
			at = news.At
			break
		}
	}
	// Output:
	// model.started 0 ""
	// text.delta 0 "Good mor"
	// model.failed 0 ""
	// retry 1 "overloaded"
	// text.delta 1 "Good evening."
	// model.finished 0 ""
}
