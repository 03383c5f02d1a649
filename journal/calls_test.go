package journal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

func TestACallThatHadBegunIsNeverSaidToBeNotRun(t *testing.T) {
	call := func(id string) message.ToolCall { return message.ToolCall{ID: id, Name: "pay", Input: "{}"} }
	entries := []journal.Entry{
		{Seq: 1, Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}},
		{Seq: 2, Run: "r", Data: journal.Said{Message: message.User("go")}},
		{Seq: 3, Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.Assistant("", call("a"), call("b"))}},
		{Seq: 4, Run: "r", Key: journal.Key{Op: "tool", ID: "a"}, Data: journal.ToolStarted{Call: journal.CalledOf(call("a"))}},
		// the process died; the next prompt closes the run
		{Seq: 5, Run: "r2", Data: journal.RunStarted{Agent: "a", Owner: "p", Attempt: 1}},
		{Seq: 6, Run: "r2", Data: journal.Said{Message: message.User("again")}},
	}
	var got []string
	for r := range message.Of[message.ToolResult](journal.Fold(entries...).Messages.At(2)) {
		got = append(got, r.Call+" "+r.Content)
	}
	if len(got) != 2 || !strings.Contains(got[0], "unknown") || !strings.Contains(got[1], "Not run") {
		t.Fatal(got)
	}
}

func TestAReplyOfManyCallsFoldsInLinearTime(t *testing.T) {
	cost := func(n int) float64 {
		calls := make([]message.ToolCall, n)
		entries := []journal.Entry{{Seq: 1, Run: "r", Data: journal.RunStarted{Agent: "a", Owner: "o", Attempt: 1}}}
		add := func(op, id string, d journal.Data) {
			entries = append(entries, journal.Entry{Seq: int64(len(entries) + 1), Run: "r", Key: journal.Key{Op: op, ID: id}, Data: d})
		}
		for i := range calls {
			calls[i] = message.ToolCall{ID: fmt.Sprint(i), Name: "t", Input: "{}"}
		}
		add("model", "1", journal.ModelFinished{Message: message.Assistant("", calls...)})
		for _, c := range calls {
			add("tool", c.ID, journal.ToolFinished{Call: c.ID, Name: c.Name, Outcome: journal.OutcomeOK})
		}
		return testing.AllocsPerRun(1, func() { journal.Fold(entries...) }) / float64(n)
	}
	if few, many := cost(100), cost(5000); many > 1.5*few {
		t.Errorf("a call costs %.1f allocations among 100 and %.1f among 5,000", few, many)
	}
}
