package message_test

import (
	"encoding/json"
	"testing"

	"github.com/pawl-dev/pawl/message"
)

func TestAHistorySurvivesItsJSON(t *testing.T) {
	type session struct {
		ID       string
		Messages message.History
	}
	call := message.ToolCall{ID: "c1", Name: "look", Input: `{"a":1}`}
	for _, h := range []message.History{
		{},
		message.NewHistory(message.User("hi <&>"), message.Assistant("", call), message.Results(message.ToolResult{Call: "c1", Name: "look", Content: "seen"})),
	} {
		b, err := json.Marshal(session{"s", h})
		if err != nil {
			t.Fatal(err)
		}
		var again session
		if err := json.Unmarshal(b, &again); err != nil || again.Messages.Len() != h.Len() {
			t.Fatalf("%s: %v", b, err)
		}
		if bb, err := json.Marshal(again); err != nil || string(bb) != string(b) {
			t.Errorf("%s\n%s %v", b, bb, err)
		}
	}
	if _, err := json.Marshal(message.NewHistory(message.Message{})); err == nil {
		t.Error("a message without a role was written")
	}
	if err := json.Unmarshal([]byte(`[{"role":"king"}]`), new(message.History)); err == nil {
		t.Error("a role that is none was read")
	}
}
