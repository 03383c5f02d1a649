package journal_test

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func TestWhatALogTellsOfItsStateIsWhatItsStateSays(t *testing.T) {
	log, err := journal.Open(t.Context(), journal.Memory(), "s")
	if err != nil {
		t.Fatal(err)
	}
	same := func(when string, messages int) {
		t.Helper()
		st := log.State()
		if got := log.Driver(); got != st.Driver {
			t.Errorf("%s: the driver is %q, want %q", when, got, st.Driver)
		}
		if got := log.Run(); got != st.Run {
			t.Errorf("%s: the run is %q, want %q", when, got, st.Run)
		}
		got, want := fmt.Sprint(log.Transcript().Messages()), fmt.Sprint(st.Messages.Messages())
		if got != want || log.Transcript().Len() != messages {
			t.Errorf("%s: the transcript is %s, want %s, of %d messages", when, got, want, messages)
		}
	}
	add := func(entries ...journal.Entry) {
		t.Helper()
		if err := log.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	same("before anything", 0)
	if err := log.Drive(t.Context(), "me", journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "me", Attempt: 1}}, journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}}); err != nil {
		t.Fatal(err)
	}
	same("when it has begun", 1)
	add(journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.Assistant("", message.ToolCall{ID: "c", Name: "x", Input: "{}"})}})
	same("while a call is open", 3)
	add(journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: journal.ToolFinished{Call: "c", Name: "x", Content: "done", Outcome: journal.OutcomeOK}})
	same("when it has its result", 3)
	add(journal.Entry{Run: "r", Data: journal.RunFinished{Status: "completed"}})
	same("at the end", 3)
}
