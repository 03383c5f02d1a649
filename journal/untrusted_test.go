package journal_test

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// The first thing that brought what strangers wrote is named, in whatever scope it came; what comes later, and what is dropped, changes nothing.
func TestWhatBroughtUntrustedContentIsFolded(t *testing.T) {
	run := journal.Entry{Run: "r", Data: journal.RunStarted{Attempt: 1}}
	done := func(call, scope string, untrusted bool) journal.Entry {
		return journal.Entry{Run: "r", Key: journal.Key{Scope: scope, Op: "tool", ID: call}, Data: journal.ToolFinished{Call: call, Name: "look", Outcome: journal.OutcomeOK, Untrusted: untrusted}}
	}
	searched := message.New(message.RoleAssistant, message.ProviderCall{Call: "s1", Name: "web_search"})
	for want, entries := range map[string][]journal.Entry{
		"":               {run, done("c1", "", false)},
		"look (call c2)": {run, done("c1", "", false), done("c2", "", true), done("c3", "", true), {Run: "r", Data: journal.RunFinished{Status: "failed", Discarded: true}}},
		"look (call c1)": {run, done("c1", "node/1", true), {Run: "r", Data: journal.RunStarted{Attempt: 2}}, {Run: "r", Key: journal.Key{Op: "compact", ID: "1"}, Data: journal.Compacted{Edit: message.Edit{}}}},
		"web_search, run by the provider (call s1)": {run, {Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: searched}}},
		"pages that the provider read":              {run, {Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.New(message.RoleAssistant, message.Text{Text: "x", Citations: []message.Citation{{URL: "https://example.com/a"}}})}}},
		" ":                                         {run, {Run: "r", Key: journal.Key{Op: "model", ID: "1"}, Data: journal.ModelFinished{Message: message.New(message.RoleAssistant, message.Text{Text: "x", Citations: []message.Citation{{Title: "notes.pdf"}}})}}}, // a file of the conversation
		"task (call c1)":                            {run, {Run: "r", Key: journal.Key{Op: "tool", ID: "c1"}, Data: journal.ToolFinished{Call: "c1", Name: "task", Outcome: journal.OutcomeOK, Background: &journal.Called{ID: "c1", Name: "task"}}}, {Run: "r", Key: journal.Key{Op: "steer", ID: "result/c1"}, Data: journal.Said{Message: message.User("x"), Untrusted: true}}},
		"the parent's":                              {{Run: "r", Data: journal.RunStarted{Attempt: 1, Untrusted: "the parent's"}}, done("c1", "", true)},
	} {
		want = strings.TrimSpace(want)
		var read []journal.Entry
		for _, e := range entries { // as a store gives them back
			b, err := journal.EncodeData(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			if e.Data, err = journal.DecodeData(e.Data.Kind(), b); err != nil {
				t.Fatal(err)
			}
			read = append(read, e)
		}
		if got := journal.Fold(read...).Untrusted; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := journal.Fold(entries[:1]...).With(entries[1:]...).Untrusted; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
