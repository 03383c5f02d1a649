package agui_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/engine"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/serve/internal/agui"
)

// What of a run an ordinary loop doesn't have: an engine's board, steering, what tools write, warnings, and replies that were not streamed or came in other words than they ended with.
func TestWhatARunHasBesideReplies(t *testing.T) {
	in, err := agui.Parse([]byte(`{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e := agui.NewEncoder(in, "r")
	var got strings.Builder
	told := func(all []agui.Event) {
		for _, v := range all {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(append(b, '\n'))
		}
	}
	model1 := journal.Key{Op: "model", ID: "1"}
	entry := func(key journal.Key, d journal.Data) event.Event {
		return event.Event{Entry: journal.Entry{Run: "r", Key: key, Data: d}}
	}
	delta := func(kind event.Delta, attempt int, text string) event.Event {
		return event.Event{Entry: journal.Entry{Run: "r", Key: model1}, Delta: kind, Attempt: attempt, Text: text}
	}
	for _, v := range []event.Event{
		entry(journal.Key{}, journal.RunStarted{Attempt: 1, Inputs: journal.Vars{"n": 1, agui.Forwarded: "x"}}),
		entry(journal.Key{Op: "steer", ID: "1"}, journal.Said{Message: message.User("Hurry.")}),
		entry(journal.Key{Op: "tell", ID: "1"}, journal.Said{Message: message.User("Go on."), By: "pawl"}),
		entry(journal.Key{Scope: "node", Op: "model", ID: "1"}, journal.ModelStarted{}),
		{Entry: journal.Entry{Run: "r", Key: journal.Key{Scope: "node", Op: "model", ID: "1"}}, Delta: event.TextDelta, Text: "inside"},
		entry(journal.Key{Scope: "node", Op: "model", ID: "1"}, journal.ModelFinished{Message: message.Assistant("inside")}),
		entry(journal.Key{Op: "visit", ID: "1"}, journal.Visited{Board: journal.Board{Set: journal.Vars{"n": 2, "a/b~": []any{"x"}}}}),
		entry(journal.Key{Op: "board", ID: "1"}, journal.Board{Delete: []string{"n", "never"}, Append: map[string][]message.Message{engine.MainChannel: {message.Assistant("Emitted.")}}}),
		entry(model1, journal.ModelStarted{}),
		delta(event.TextDelta, 0, "Wrong"),
		entry(model1, journal.ModelFinished{Message: message.Assistant("Right.")}),
		{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}}, Delta: event.ToolOutput, Stream: "stdout", Text: "out"},
		{Entry: journal.Entry{Run: "r"}, Delta: event.Warning, Text: "Mind."},
		{Entry: journal.Entry{Run: "r"}, Delta: event.Waiting, Text: "the session", Wait: 10 * time.Second},
		{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "compact", ID: "2"}}, Delta: event.Waiting, Text: "a summary"},
		{Entry: journal.Entry{Run: "another", Key: model1}, Delta: event.TextDelta, Text: "no"},
		entry(journal.Key{Op: "model", ID: "2"}, journal.ModelStarted{}),
		{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "2"}}, Delta: event.ReasoningDelta, Text: "Hm"},
		entry(journal.Key{}, journal.RunFinished{Status: "failed"}),
	} {
		told(e.Tell(v))
	}
	told(e.Fail("internal", "broken"))
	want := `{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}
{"type":"TEXT_MESSAGE_START","messageId":"r/said/1","role":"user"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"r/said/1","delta":"Hurry."}
{"type":"TEXT_MESSAGE_END","messageId":"r/said/1"}
{"type":"STEP_STARTED","stepName":"node:model/1"}
{"type":"STEP_FINISHED","stepName":"node:model/1"}
{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a~1b~0","value":["x"]},{"op":"add","path":"/n","value":2}]}
{"type":"TEXT_MESSAGE_START","messageId":"r/said/2","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"r/said/2","delta":"Emitted."}
{"type":"TEXT_MESSAGE_END","messageId":"r/said/2"}
{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/n"}]}
{"type":"STEP_STARTED","stepName":"model/1"}
{"type":"TEXT_MESSAGE_START","messageId":"r/model/1","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"r/model/1","delta":"Wrong"}
{"type":"TEXT_MESSAGE_END","messageId":"r/model/1"}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"x"},{"content":"Hurry.","id":"r/said/1","role":"user"},{"content":"Emitted.","id":"r/said/2","role":"assistant"}]}
{"type":"TEXT_MESSAGE_START","messageId":"r/model/1/1","role":"assistant"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"r/model/1/1","delta":"Right."}
{"type":"TEXT_MESSAGE_END","messageId":"r/model/1/1"}
{"type":"STEP_FINISHED","stepName":"model/1"}
{"type":"CUSTOM","name":"pawl.tool_output","value":{"stream":"stdout","text":"out","toolCallId":"c"}}
{"type":"CUSTOM","name":"pawl.warning","value":{"text":"Mind."}}
{"type":"CUSTOM","name":"pawl.waiting","value":{"text":"the session","waitMs":10000}}
{"type":"CUSTOM","name":"pawl.waiting","value":{"text":"a summary"}}
{"type":"STEP_STARTED","stepName":"model/2"}
{"type":"REASONING_START","messageId":"r/model/2/reasoning"}
{"type":"REASONING_MESSAGE_START","messageId":"r/model/2/reasoning","role":"reasoning"}
{"type":"REASONING_MESSAGE_CONTENT","messageId":"r/model/2/reasoning","delta":"Hm"}
{"type":"REASONING_MESSAGE_END","messageId":"r/model/2/reasoning"}
{"type":"REASONING_END","messageId":"r/model/2/reasoning"}
{"type":"STEP_FINISHED","stepName":"model/2"}
{"type":"RUN_ERROR","message":"broken","code":"internal"}
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Error(d)
	}
}
