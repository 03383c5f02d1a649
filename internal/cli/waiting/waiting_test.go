package waiting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/cli/waiting"
	"github.com/pawl-dev/pawl/journal"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reply = journal.Key{Op: "model", ID: "1"}
	call  = journal.Key{Op: "tool", ID: "c"}
	short = journal.Key{Op: "compact", ID: "2"}
)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func entry(k journal.Key, d journal.Data) event.Event {
	return event.Event{Entry: journal.Entry{Session: "s", Run: "r", Key: k, Data: d}}
}

func delta(k journal.Key, kind event.Delta, text string, wait time.Duration) event.Event {
	return event.Event{Entry: journal.Entry{Session: "s", Run: "r", Key: k}, Delta: kind, Text: text, Wait: wait}
}

func TestWhatEventsSayIsWaitedFor(t *testing.T) {
	t.Parallel()
	below := entry(reply, journal.ModelStarted{Model: "m"})
	below.Run, below.ParentRun = "low", "r"
	for name, c := range map[string]struct {
		events []event.Event // one a second
		want   string        // 10 s after the first
	}{
		"nothing":                   {nil, ""},
		"words of a model":          {[]event.Event{entry(reply, journal.ModelStarted{Model: "m"})}, "waiting for the model: 10 s"},
		"words came":                {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.TextDelta, "I", 0)}, ""},
		"thoughts came":             {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.ReasoningDelta, "hm", 0)}, ""},
		"words of another call":     {[]event.Event{entry(reply, journal.ModelStarted{}), delta(journal.Key{Op: "model", ID: "2"}, event.TextDelta, "I", 0)}, "waiting for the model: 10 s"},
		"a reply without words":     {[]event.Event{entry(reply, journal.ModelStarted{}), entry(reply, journal.ModelFinished{})}, ""},
		"a failure":                 {[]event.Event{entry(reply, journal.ModelStarted{}), entry(reply, journal.ModelFailed{})}, ""},
		"another attempt":           {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Retry, "busy", 30*time.Second)}, "trying again in 21 s"},
		"another attempt goes on":   {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Retry, "busy", 2*time.Second)}, "waiting for the model, again: 7 s"},
		"another attempt, words":    {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Retry, "busy", time.Second), delta(reply, event.TextDelta, "I", 0)}, ""},
		"a tool":                    {[]event.Event{entry(call, journal.ToolStarted{Call: journal.Called{ID: "c", Name: "bash"}})}, "bash: 10 s"},
		"a tool that writes":        {[]event.Event{entry(call, journal.ToolStarted{Call: journal.Called{ID: "c", Name: "bash"}}), delta(call, event.ToolOutput, "one\ntwo \r\n\n", 0), delta(call, event.ToolOutput, "\n", 0)}, "bash: 10 s: two"},
		"a tool that is done":       {[]event.Event{entry(call, journal.ToolStarted{}), entry(call, journal.ToolFinished{})}, ""},
		"output of nothing":         {[]event.Event{delta(call, event.ToolOutput, "one", 0)}, ""},
		"a summary":                 {[]event.Event{delta(short, event.Waiting, "a summary of the transcript", 0)}, "waiting for a summary of the transcript: 10 s"},
		"a summary is there":        {[]event.Event{delta(short, event.Waiting, "a summary", 0), entry(short, journal.Compacted{})}, ""},
		"the session of another":    {[]event.Event{delta(journal.Key{}, event.Warning, "busy", 0), delta(journal.Key{}, event.Waiting, "the session", 12*time.Second)}, "waiting for the session: 9 s, at most 3 s more"},
		"longer than it should be":  {[]event.Event{delta(journal.Key{}, event.Waiting, "the session", 5*time.Second)}, "waiting for the session: 10 s"},
		"the session is there":      {[]event.Event{delta(journal.Key{}, event.Waiting, "the session", 0), entry(journal.Key{}, journal.Resumed{})}, ""},
		"a run that is over":        {[]event.Event{entry(call, journal.ToolStarted{}), entry(journal.Key{}, journal.RunFinished{})}, ""},
		"a run that is left":        {[]event.Event{entry(call, journal.ToolStarted{}), delta(journal.Key{}, event.RunLeft, "x", 0)}, ""},
		"a run that is interrupted": {[]event.Event{entry(call, journal.ToolStarted{}), entry(journal.Key{}, journal.Parked{})}, ""},
		"held back":                 {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Waiting, "the rate limit", 12*time.Second)}, "waiting for the rate limit: 9 s, at most 3 s more"},
		"held back, then sent":      {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Waiting, "the rate limit", time.Second), delta(reply, event.Waiting, "the model", 0)}, "waiting for the model: 8 s"},
		"held back, then words":     {[]event.Event{entry(reply, journal.ModelStarted{}), delta(reply, event.Waiting, "the rate limit", time.Second), delta(reply, event.TextDelta, "I", 0)}, ""},
		"a task and its model":      {[]event.Event{entry(call, journal.ToolStarted{Call: journal.Called{Name: "task"}}), below}, "task: 10 s | waiting for the model: 9 s"},
		"no worker, as it is here":  {[]event.Event{entry(journal.Key{}, journal.RunStarted{})}, ""},
	} {
		var w waiting.Waits
		for i, e := range c.events {
			w.Event(e, at(i))
		}
		if got := texts(&w, at(10)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func texts(w *waiting.Waits, now time.Time) string {
	var all []string
	for _, one := range w.All() {
		all = append(all, one.Text(now))
	}
	return strings.Join(all, " | ")
}

func TestAWorkerIsWaitedForUntilSomethingIsDone(t *testing.T) {
	t.Parallel()
	for _, begins := range []journal.Data{journal.RunStarted{}, journal.Resumed{}} {
		w := waiting.Waits{Elsewhere: "a worker"}
		w.Event(entry(journal.Key{}, begins), at(0))
		w.Event(entry(journal.Key{}, journal.Said{}), at(0)) // whoever began the run put it there
		w.Event(delta(journal.Key{}, event.Warning, "nobody is there", 0), at(1))
		if got := texts(&w, at(65)); got != "waiting for a worker: 1 min 5 s" {
			t.Errorf("%q", got)
		}
		w.Event(entry(journal.Key{Op: "prepared"}, journal.Prepared{}), at(66))
		if got := texts(&w, at(70)); got != "" {
			t.Errorf("%q", got)
		}
	}
}

func TestWhatNoEventTellsOf(t *testing.T) {
	t.Parallel()
	var w waiting.Waits
	w.Begin(waiting.Start, "files", at(0))
	w.Begin(waiting.Start, "wiki", at(1))
	all := w.All()
	w.End(waiting.Start, "files")
	w.End(waiting.Start, "nobody")
	if got := texts(&w, at(3601)); got != "the MCP server wiki starts: 1 h 0 min" {
		t.Errorf("%q", got)
	}
	if len(all) != 2 || all[0].What != "files" || !all[0].Since.Equal(at(0)) {
		t.Errorf("what was given stays: %+v", all)
	}
}
