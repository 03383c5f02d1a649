package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// said is a delta of the run r.
func said(text string) event.Event {
	return event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "model", ID: "1"}}, Delta: event.TextDelta, Text: text}
}

func entry(run string, key journal.Key, d journal.Data) event.Event {
	return event.Event{Entry: journal.Entry{Session: "s", Run: run, Key: key, Data: d}}
}

func matching(t testing.TB, pattern string) func(event.Event) bool {
	t.Helper()
	match, err := event.Subject(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return match
}
