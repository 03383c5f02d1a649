package temporal

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/stream"
)

// A tool has a run below it, in the same activity: what is said there is in that run's session, and ends with each of its effects.
func TestWhatRunsBelowSayIsInTheirStreams(t *testing.T) {
	st := stream.Memory(stream.Retention{})
	w := stream.NewWriter(st, stream.Batching{}, nil)
	s := &speaking{noting: new(noting), writer: w, attempt: 2, session: "above", behind: 9}
	call, below := journal.Key{Op: "tool", ID: "c"}, journal.Key{Op: "model", ID: "1"}
	say := func(session string, key journal.Key, seq int64, kind event.Delta, text string, d journal.Data) {
		t.Helper()
		if err := s.Publish(t.Context(), event.Event{Entry: journal.Entry{Session: session, Run: session, Key: key, Seq: seq, Data: d}, Delta: kind, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	say("above", call, 8, event.ToolOutput, "begins ", nil)
	say("below", below, 3, "", "", journal.ModelStarted{})
	say("below", below, 3, event.TextDelta, "hel", nil)
	say("above", call, 8, event.ToolOutput, "goes on", nil)
	say("below", below, 3, event.TextDelta, "lo", nil)
	say("below", below, 0, "", "", journal.ModelFinished{Message: message.Assistant("hello")})
	time.Sleep(300 * time.Millisecond) // it is written by itself
	check := func(session, text string, behind int64, ended bool) {
		t.Helper()
		items, err := st.Read(t.Context(), session, 0)
		if err != nil || len(items) == 0 {
			t.Fatalf("%s: %v, %v", session, items, err)
		}
		var said strings.Builder
		for _, i := range items {
			said.WriteString(i.Text)
		}
		if i := items[len(items)-1]; said.String() != text || i.End != ended || i.Attempt != 2 || i.Behind != behind {
			t.Errorf("%s: %q, %+v", session, &said, i)
		}
	}
	check("below", "hello", 3, true)
	check("above", "begins goes on", 9, false)
	s.end(t.Context())
	check("above", "begins goes on", 9, true)
	w.Close(t.Context())
}

func TestAPublishedDeltaCostsNothing(t *testing.T) {
	w := stream.NewWriter(stream.Memory(stream.Retention{}), stream.Batching{Every: time.Hour, Bytes: 1 << 30, Pending: 1 << 30}, nil)
	defer w.Close(context.WithoutCancel(t.Context()))
	s := &speaking{noting: new(noting), writer: w, attempt: 1, session: "s"}
	d := engine.DeltasOf(&engine.Run{ID: "r", Session: "s"}, s, journal.Key{Op: "model", ID: "1"}, 0)
	ctx := t.Context()
	if d.Emit(ctx, event.TextDelta, "", "the first one"); !d.On() {
		t.Fatal("nobody listens")
	}
	if n := testing.AllocsPerRun(20_000, func() { d.Emit(ctx, event.TextDelta, "", "word ") }); n != 0 {
		t.Errorf("%v allocations a delta", n)
	}
}
