package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// A person sees which skills a prompt activates, what a subagent does and says as the subagent's, and which call a question is about.
func TestTheProgressSaysWhoDoesWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, text := range map[string]string{
		".agents/skills/release/SKILL.md": "---\nname: release\ndescription: Makes a release.\nkeywords: release\n---\nTag it.\n",
		".agents/skills/other/SKILL.md":   "---\nname: other\ndescription: Something else.\nkeywords: other\n---\nDo it.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(w.dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		w.file(name, text)
	}
	script := w.file("s.yaml", `
turns:
  - text: I ask somebody.
    tool_calls: [{id: c1, name: task, input: {agent: general-purpose, prompt: go}}]
  - text: Done.
agents:
  general-purpose:
    turns:
      - text: "I look.\nAnd touch."
        tool_calls: [{id: a, name: glob, input: {pattern: "*.none"}}, {id: b, name: bash, input: {command: touch refused}}, {id: c, name: bash, input: {command: touch asked}}]
      - text: Touched.
`)
	run := []string{"--dir", w.dir, "--journal", w.journal, "--model", "scripted/" + script, "--no-sandbox", "--deny", "Bash(touch refused)", "--ask", "Bash(touch asked)"}
	r := w.pawl(append([]string{"run", "--session", "s", "Make a release."}, run...)...)
	question := "  [general-purpose] ? bash {\"command\":\"touch asked\"}: the rule Bash(touch asked) (--ask)\n"
	for _, want := range []string{
		"◆ skill release: the prompt activates it\nI ask somebody.\n● task {", "  [general-purpose] I look.\n  [general-purpose] And touch.\n", "  [general-purpose] ● glob {\"pattern\":\"*.none\"}\n", "  [general-purpose]   ✓ glob: ",
		"  [general-purpose] ✗ bash {\"command\":\"touch refused\"}\n  [general-purpose]   denied: ", question,
	} {
		if r.code != exitWaiting || strings.Count(r.err, want) != 1 {
			t.Errorf("exit %d, %q is missing in\n%s", r.code, want, r.err)
		}
	}
	if strings.Contains(r.err, "skill other") || strings.Contains(r.err, "\nI look.") {
		t.Errorf("%s", r.err)
	}
	if r := w.pawl("approve", "s", "c1/c", "--journal", w.journal); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	r = w.pawl("resume", "s", "--journal", w.journal, "--no-sandbox")
	for _, want := range []string{"\n  [c1] ● bash {\"command\":\"touch asked\"}\n", "\n  [c1] Touched.\n"} { // who it is was said when it began
		if r.code != exitCompleted || r.out != "Done.\n" || strings.Count("\n"+r.err, want) != 1 {
			t.Errorf("%q is missing in %+v", want, r)
		}
	}
}

// What others say in between does not take away what is held back of the answer, and two runs may have calls of the same id.
func TestTheProgressKeepsRunsApart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, &out, false)
	p.holdAnswer = true
	of := func(run, parent string, d journal.Data) event.Event {
		return event.Event{Entry: journal.Entry{Session: "s", Run: run, Data: d}, ParentRun: parent}
	}
	calls := func(name string) message.Message {
		return message.Assistant("", message.ToolCall{ID: "c1", Name: name, Input: "{}"})
	}
	p.event(of("top", "", journal.ModelFinished{Message: calls("edit")}))
	p.event(of("low", "top", journal.RunStarted{Agent: "low"}))
	p.event(of("deep", "low", journal.RunStarted{Agent: "deep"}))
	p.event(event.Event{Entry: journal.Entry{Run: "top"}, Delta: event.TextDelta, Text: "The first half, "})
	p.event(event.Event{Entry: journal.Entry{Run: "deep"}, ParentRun: "low", Delta: event.TextDelta, Text: "not shown by halves"})
	p.event(of("deep", "low", journal.ModelFinished{Message: calls("read")}))
	p.event(event.Event{Entry: journal.Entry{Run: "top"}, Delta: event.TextDelta, Text: "the second.\n"})
	p.event(of("top", "", journal.ToolJudged{Call: "c1", Verdict: "deny", Reason: "no"}))
	p.event(of("deep", "low", journal.ToolJudged{Call: "c1", Verdict: "deny", Reason: "no"}))
	p.event(of("top", "", journal.ModelFinished{Message: message.Assistant("The first half, the second.\n", message.ToolCall{ID: "c2", Name: "x", Input: "{}"})}))
	const want = "✗ edit {}\n  denied: no\n    [deep] ✗ read {}\n    [deep]   denied: no\nThe first half, the second.\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A reply behind which the run goes on was not the answer, and is not lost.
func TestTheProgressShowsAReplyBehindWhichTheRunGoesOn(t *testing.T) {
	t.Parallel()
	for _, stopped := range []journal.Stopped{{Again: "test it first"}, {Steered: true}, {}} {
		var out bytes.Buffer
		p := newProgress(&out, &out, false)
		p.holdAnswer = true
		say := func(text string) {
			p.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: text})
			p.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.ModelFinished{Message: message.Assistant(text)}}})
		}
		say("First end.")
		p.event(event.Event{Entry: journal.Entry{Run: "r", Data: stopped}})
		goes := stopped.Again != "" || stopped.Steered
		if goes {
			say("The end.")
			p.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.Stopped{}}})
		}
		if got, want := out.String(), map[bool]string{true: "First end.\n", false: ""}[goes]; got != want {
			t.Errorf("%+v: %q, want %q", stopped, got, want)
		}
	}
}

// A model call that is tried again begins its reply anew: what was held back of it is not the answer's beginning.
func TestTheProgressForgetsWhatIsVoid(t *testing.T) {
	t.Parallel()
	for held, want := range map[bool]string{true: "retry: too much\nTwo.\n", false: "One\nretry: too much\nTwo.\n"} {
		var out bytes.Buffer
		p := newProgress(&out, &out, false)
		p.holdAnswer = held
		of := func(kind event.Delta, text, parent string) {
			p.event(event.Event{Entry: journal.Entry{Run: "r" + parent}, ParentRun: parent, Delta: kind, Text: text})
		}
		of(event.TextDelta, "One", "")
		of(event.Retry, "too much", "")
		of(event.TextDelta, "Two.\n", "")
		p.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.ModelFinished{Message: message.Assistant("Two.\n", message.ToolCall{ID: "c", Name: "x", Input: "{}"})}}})
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}

// A reply that another process heard comes whole: it is shown all the same, and one that came in pieces is not shown twice.
func TestTheProgressShowsAReplyThatWasHeardElsewhere(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		var out bytes.Buffer
		p := newProgress(&out, &out, false)
		p.holdAnswer = held
		replies := func(text string, pieces ...string) {
			for _, piece := range pieces {
				p.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: piece})
			}
			p.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.ModelFinished{Message: message.Assistant(text, message.ToolCall{ID: "c", Name: "x", Input: "{}"})}}})
		}
		replies("Whole.")
		replies("In two.", "In ", "two.")
		replies("Whole again.")
		if want := "Whole.\nIn two.\nWhole again.\n"; out.String() != want {
			t.Errorf("held back %t: %q, want %q", held, out.String(), want)
		}
	}
}
