package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/journal/sqlite"
	"github.com/pawl-dev/pawl/message"
)

// leaveDead leaves the session s in the journal, as a process left it that was killed in the second of three commands.
func (w world) leaveDead() {
	t := w.t
	t.Helper()
	script := w.file("s.yaml", `turns:
  - tool_calls: [{id: a, name: bash, input: {command: "echo a >> done.txt"}}, {id: b, name: bash, input: {command: "echo b >> done.txt"}}, {id: c, name: bash, input: {command: "echo c >> done.txt"}}]
  - text: "All done."
`)
	store, err := sqlite.Open(strings.TrimPrefix(w.journal, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	calls := []message.ToolCall{}
	for _, id := range []string{"a", "b", "c"} {
		calls = append(calls, message.ToolCall{ID: id, Name: "bash", Input: `{"command":"echo ` + id + ` >> done.txt"}`})
	}
	effect := func(op, id string, d journal.Data) journal.Entry {
		return journal.Entry{Run: "r", Key: journal.Key{Op: op, ID: id}, Data: d}
	}
	err = store.Append(t.Context(), "s", 0,
		journal.Entry{Data: journal.SessionCreated{}},
		journal.Entry{Run: "r", Data: journal.RunStarted{Agent: "pawl", Owner: "o", Attempt: 1, Model: "scripted/" + script, Dir: w.dir}},
		journal.Entry{Run: "r", Data: journal.Said{Message: message.User("go")}},
		effect("prepare", "", journal.Prepared{System: "x", Edit: message.Edit{To: 1}}),
		effect("model", "1", journal.ModelStarted{}),
		effect("model", "1", journal.ModelFinished{Message: message.Assistant("", calls...)}),
		effect("judge", "a", journal.ToolJudged{Call: "a", Verdict: "allow"}),
		effect("judge", "b", journal.ToolJudged{Call: "b", Verdict: "allow"}),
		effect("judge", "c", journal.ToolJudged{Call: "c", Verdict: "allow"}),
		effect("tool", "a", journal.ToolStarted{Call: journal.CalledOf(calls[0])}),
		effect("tool", "a", journal.ToolFinished{Call: "a", Name: "bash", Content: "(no output)", Outcome: journal.OutcomeOK}),
		effect("tool", "b", journal.ToolStarted{Call: journal.CalledOf(calls[1])}),
	)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAKilledRunIsFinishedByResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leaveDead()
	if r := w.pawl("sessions", "list", "--json", "--journal", w.journal); !strings.Contains(r.out, `"status":"unfinished"`) {
		t.Errorf("%+v", r)
	}
	if r := w.pawl("resume", "s", "--journal", w.journal); r.code != exitCompleted || r.out != "All done.\n" {
		t.Fatalf("%+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "done.txt")); err != nil || string(b) != "c\n" {
		t.Errorf("what was done, or may have been, was done again: %q %v", b, err)
	}
	if show := w.pawl("sessions", "show", "s", "--journal", w.journal); !strings.Contains(show.out, "tool bash · unknown") {
		t.Error(show.out)
	}
	for _, args := range [][]string{{"resume", "s", "--journal", w.journal}, {"resume", "t", "--journal", w.journal}, {"resume"}, {"resume", "s", "--journal", "memory"}} {
		if r := w.pawl(args...); r.code != exitUsage || r.err == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestWhatHappensToACallOfUnknownOutcomeIsTheCallersChoice(t *testing.T) {
	t.Parallel()
	done := func(w world) string {
		b, err := os.ReadFile(filepath.Join(w.dir, "done.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(b)), " ")
	}
	t.Run("report", func(t *testing.T) {
		w := newWorld(t)
		w.leaveDead()
		if r := w.pawl("resume", "s", "--journal", w.journal, "--unknown", "report"); r.code != exitCompleted || done(w) != "c" {
			t.Fatalf("%+v, %s", r, done(w))
		}
	})
	t.Run("retry", func(t *testing.T) {
		w := newWorld(t)
		w.leaveDead()
		if r := w.pawl("resume", "s", "--journal", w.journal, "--unknown", "retry"); r.code != exitCompleted || done(w) != "b c" {
			t.Fatalf("%+v, %s", r, done(w))
		}
	})
	for answer, c := range map[string]struct {
		args []string
		done string
	}{
		"yes": {[]string{"approve", "s", "b/again-1"}, "b c"},
		"no":  {[]string{"reject", "s", "b/again-1", "--reason", "I looked"}, "c"},
	} {
		t.Run("ask, "+answer, func(t *testing.T) {
			w := newWorld(t)
			w.leaveDead()
			r := w.pawl("resume", "s", "--journal", w.journal, "--unknown", "ask", "--json")
			if r.code != exitWaiting || !strings.Contains(r.err, "run it again?") || !strings.Contains(r.err, "pawl approve s b/again-1") {
				t.Fatalf("%+v", r)
			}
			if !strings.Contains(r.out, `"pending":[{"call_id":"b/again-1","name":"bash","input":{"command":"echo b >> done.txt"},"reason":"the process died`) || strings.Contains(r.out, `"type":"tool.finished"`) {
				t.Errorf("%s", r.out)
			}
			if r := w.pawl(append(c.args, "--journal", w.journal)...); r.code != 0 {
				t.Fatalf("%+v", r)
			}
			if r := w.pawl("resume", "s", "--journal", w.journal); r.code != exitCompleted || done(w) != c.done {
				t.Fatalf("%+v, %s", r, done(w))
			}
			if show := w.pawl("sessions", "show", "s", "--journal", w.journal); answer == "no" && !strings.Contains(show.out, "I looked") {
				t.Error(show.out)
			}
		})
	}
	if r := newWorld(t).pawl("resume", "s", "--unknown", "again"); r.code != exitUsage || !strings.Contains(r.err, "want report, ask or retry") {
		t.Errorf("%+v", r)
	}
}
