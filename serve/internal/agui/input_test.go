package agui_test

import (
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/serve/internal/agui"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":"x"}],"state":{"a":[1,null,{"$int64":1}]},"forwardedProps":[1]}`,
		`{"threadId":"t","runId":"r","messages":[{"id":"1","role":"assistant","toolCalls":[{"id":"c","function":{"name":"x","arguments":"{"}}]},{"id":"2","role":"tool","toolCallId":"c","content":[{"type":"image","source":{"type":"url","value":"https://a/b"}}],"error":"e"},{"id":"3","role":"user","content":[{"type":"text","text":"x"},{"type":"document","source":{"type":"data","value":"AA==","mimeType":"a/b"}}]}]}`,
		`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":{"approved":true,"input":{}}},{"interruptId":"j","status":"cancelled"}]}`,
		`{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"resolved","payload":"yes"}],"context":[{"description":"d","value":"v"}]}`, `{}`, `[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := agui.Parse(b)
		if err != nil {
			if !errors.Is(err, errdefs.Validation) || err.Error() == "" {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		if in.ThreadID == "" || in.RunID == "" || len(in.Tools) > 0 || !in.Last.IsZero() && in.Last.CheckFiles() != nil {
			t.Errorf("%q: %+v", b, in)
		}
		if h := message.Repair(in.History); h.Len() != in.History.Len() {
			t.Errorf("%q: its history is not valid", b)
		}
		for _, r := range in.Resume {
			for _, p := range []journal.Pending{{}, {Asked: journal.Asked{Confirm: true}}, {Asked: journal.Asked{Call: &journal.Called{ID: "c"}}}} {
				a, err := r.Answer(p, "x")
				if err == nil && a.ID != r.InterruptID || err == nil && r.Status == "cancelled" && a.Approved {
					t.Errorf("%q: %+v", b, a)
				}
			}
		}
	})
}
