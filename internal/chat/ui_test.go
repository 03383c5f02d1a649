package chat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/event"
	"github.com/pawl-dev/pawl/internal/raced"
	"github.com/pawl-dev/pawl/journal"
	"github.com/pawl-dev/pawl/message"
)

// working is a conversation with a run under way that has written so many entries.
func working(entries int) *ui {
	u := newUI(context.Background(), Config{Colour: true})
	u.resize(100, 30)
	u.run = &run{host: newHost(nil), put: map[string]int{}}
	at := func(i int, op, id string, d journal.Data) {
		u.event(event.Event{Entry: journal.Entry{Run: "r", Seq: int64(i), Key: journal.Key{Op: op, ID: id}, Data: d}})
		u.printed()
	}
	for i := range entries / 4 {
		id := fmt.Sprint("c", i)
		call := journal.Called{ID: id, Name: "bash", Input: `{"command":"ls"}`}
		at(i, "model", id, journal.ModelStarted{Model: "m"})
		at(i, "model", id, journal.ModelFinished{Model: "m", Message: message.New(message.RoleAssistant, message.Text{Text: "Words."}, message.ToolCall{ID: id, Name: "bash", Input: call.Input})})
		at(i, "tool", id, journal.ToolStarted{Call: call})
		at(i, "tool", id, journal.ToolFinished{Call: id, Name: "bash", Content: strings.Repeat("a line\n", 100), Outcome: journal.OutcomeOK})
	}
	return u
}

// printed is what the terminal has taken.
func (u *ui) printed() (lines []string) {
	lines, u.out = u.out, u.out[:0:0]
	return lines
}

func TestWhatADeltaCostsDoesNotGrowWithTheConversation(t *testing.T) {
	if raced.Enabled {
		t.Skip("the race detector allocates")
	}
	cost := func(entries int) float64 {
		u := working(entries)
		words := []event.Event{{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: "word "}, {Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: "end.\n\n"}}
		return testing.AllocsPerRun(200, func() {
			for _, e := range words {
				u.event(e)
				u.View()
			}
			if lines := u.printed(); len(lines) != 2 || lines[0] != "word end." {
				t.Fatalf("%q: not what came, and that alone", lines)
			}
		})
	}
	few, many := cost(40), cost(10_000)
	if many > few+2 {
		t.Errorf("%v allocations with 10,000 entries, %v with 40", many, few)
	}
	if u := working(10_000); len(u.tell.folds) > keptFolds || len(u.tell.calls) > 0 || len(u.waits.All()) > 0 {
		t.Errorf("kept: %d folds, %d calls, %d waits", len(u.tell.folds), len(u.tell.calls), len(u.waits.All()))
	}
}

// A reply of one block, such as code, does not cost more the longer it is, but for keeping it.
func TestALongOpenBlockIsShownByItsEnd(t *testing.T) {
	u := working(0)
	say := func(text string) {
		u.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: text})
	}
	say("```go\n")
	for i := range 20_000 {
		say(fmt.Sprintf("line %d\n", i))
	}
	const views = 51
	took := testing.AllocsPerRun(views-1, func() {
		say("more\n")
		if v := u.View().Content; !strings.Contains(v, "line 19999") && !strings.Contains(v, "more") || strings.Count(v, "\n") >= u.height {
			t.Fatal(v)
		}
	})
	if took > 5000 {
		t.Errorf("a delta takes %v allocations", took)
	}
	if lines := u.printed(); len(lines) > 0 {
		t.Errorf("%d lines were printed of a block that is open", len(lines))
	}
	say("```\n")
	if lines := u.printed(); len(lines) != 20_000+views+1 {
		t.Errorf("%d lines", len(lines))
	}
}

// What is retried is void: it is shown once, when it is whole.
func TestAReplyThatIsTriedAgainIsNotJoined(t *testing.T) {
	u := working(0)
	send := func(kind event.Delta, text string) {
		u.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: kind, Text: text})
	}
	send(event.TextDelta, "half of")
	send(event.Retry, "overloaded")
	send(event.TextDelta, "All of it.")
	u.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.ModelFinished{Message: message.Assistant("All of it.")}}})
	text := strings.Join(u.printed(), "\n")
	if strings.Count(text, "All of it.") != 1 || strings.Contains(text, "half of") || !strings.Contains(text, "is void") || !strings.Contains(text, "overloaded") {
		t.Error(text)
	}
}

// Steering stands before the reply that heard it, once; what came while that was written stands behind it.
func TestSteeringStandsWhereItIsHeard(t *testing.T) {
	u := working(0)
	now := time.Now()
	u.said = []told{{text: "in time"}, {text: "too late"}}
	u.said.recorded("in time", now)
	entry := func(at time.Time, d journal.Data) {
		u.event(event.Event{Entry: journal.Entry{Run: "r", Time: at, Data: d}})
	}
	u.said.recorded("too late", now.Add(2*time.Millisecond)) // the entry that is told of now was written before
	entry(now.Add(time.Millisecond), journal.ModelStarted{})
	u.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: "First.\n\n"})
	entry(now, journal.ModelFinished{Message: message.Assistant("First."), Heard: []message.Message{message.User("in time")}})
	entry(now.Add(3*time.Millisecond), journal.ModelStarted{})
	entry(now, journal.ModelFinished{Message: message.Assistant("Second."), Heard: []message.Message{message.User("too late")}})
	text := ours.ReplaceAllString(strings.Join(u.printed(), "\n"), "")
	at := -1
	for _, want := range []string{"> in time", "First.", "> too late", "Second."} {
		if i := strings.Index(text, want); i <= at || strings.Count(text, want) != 1 {
			t.Errorf("%q in\n%s", want, text)
		} else {
			at = i
		}
	}
	if len(u.said) > 0 {
		t.Errorf("%v", u.said)
	}
}

// Lines are printed into the space above what stands there, which may be higher still than what is to stand there.
func TestWhatIsPrintedPushesNothingOfTheViewUp(t *testing.T) {
	u := newUI(context.Background(), Config{})
	u.resize(80, 20)
	u.edit.insert(strings.Repeat("a line\n", 10))
	u.View()
	high := u.high.lines
	u.edit.take()
	u.View()
	u.tell.print(make([]string, 100)...)
	u.flush()
	if n := 100 - len(u.out); high < 6 || n != 20-high-1 {
		t.Errorf("%d lines were printed above %d of 20", n, high)
	}
	u.high.at = u.high.at.Add(-drawn)
	u.View()
	if u.high.lines >= high {
		t.Error("what was higher counts for ever")
	}
}

// Who is a moment too late with a prompt has it back, is told why in words of his own world, and sees what the other one does.
func TestAPromptThatAnotherProcessForestalledIsGivenBack(t *testing.T) {
	store := journal.Memory()
	if err := store.Append(t.Context(), "s", 0, journal.Entry{Session: "s", Seq: 1, Data: journal.SessionCreated{}}, journal.Entry{Session: "s", Seq: 2, Run: "r", Data: journal.RunStarted{}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	u := newUI(ctx, Config{Store: store, Session: "s", Alive: func(context.Context, string) bool { return true }})
	sent := make(chan tea.Msg, 100)
	u.send = func(m tea.Msg) { sent <- m }
	_, r := u.begin(run{prompt: "what was typed", step: "starting"})
	r.cancel()
	u.update(doneMsg{err: errdefs.Conflict.Errorf("agent: session s is driven by driver-x")})
	u.update(<-sent)
	text := strings.Join(u.printed(), "\n")
	if u.edit.String() != "what was typed" || strings.Contains(text, "driver-x") || !strings.Contains(text, "another process is at work") || u.run == nil || !u.run.other {
		t.Errorf("%q %q %+v", u.edit.String(), text, u.run)
	}
	cancel()
	u.work.Wait()
}

// Ctrl-O is for what does not stand there already.
func TestWhatIsShownWholeIsNotFolded(t *testing.T) {
	for name, c := range map[string]struct {
		input, content string
		shown          string
		folds          int
	}{
		"a line":          {`{"command":"ls"}`, "one\n", "✓ bash ls\n    one", 0},
		"two lines":       {`{"command":"ls"}`, "one\ntwo\n", "✓ bash ls\n    one\n    two", 0},
		"three":           {`{"command":"ls"}`, "one\ntwo\nthree\n", "✓ bash ls\n    … 2 more lines · Ctrl-O unfolds\n    three", 1},
		"a wide line":     {`{"command":"ls"}`, strings.Repeat("a", 200), "✓ bash ls\n    " + strings.Repeat("a", 93) + "…", 1},
		"an input of two": {`{"command":"ls","timeout":3}`, "one\n", "✓ bash ls\n    one", 1},
	} {
		u := working(0)
		send := func(d journal.Data) {
			u.event(event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: d}})
		}
		send(journal.ToolStarted{Call: journal.Called{ID: "c", Name: "bash", Input: c.input}})
		send(journal.ToolFinished{Call: "c", Name: "bash", Content: c.content, Outcome: journal.OutcomeOK})
		if text := ours.ReplaceAllString(strings.Join(u.printed(), "\n"), ""); text != c.shown || len(u.tell.folds) != c.folds {
			t.Errorf("%s: %d folds:\n%s\nwant\n%s", name, len(u.tell.folds), text, c.shown)
		}
	}
}

// No line of the view or above it is wider than the terminal, whatever the width and whatever is shown.
func TestNothingIsWiderThanTheTerminal(t *testing.T) {
	for _, width := range []int{20, 33, 80, 200} {
		u := working(0)
		u.resize(width, 12)
		u.model, u.session, u.hint = strings.Repeat("模", 50), "s", ""
		u.busy = &busy{strings.Repeat("什么", 60), time.Now()}
		u.edit.insert(strings.Repeat("漢字 words ", 40))
		u.event(event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}, Data: journal.ToolStarted{Call: journal.Called{ID: "c", Name: "bash", Input: `{"command":"` + strings.Repeat("漢", 300) + `"}`}}}})
		u.event(event.Event{Entry: journal.Entry{Run: "r", Key: journal.Key{Op: "tool", ID: "c"}}, Delta: event.ToolOutput, Text: strings.Repeat("漢", 300) + "\n"})
		u.event(event.Event{Entry: journal.Entry{Run: "r"}, Delta: event.TextDelta, Text: "words " + strings.Repeat("漢", 300)})
		u.said = []told{{text: strings.Repeat("漢", 300)}}
		v := u.View()
		u.event(event.Event{Entry: journal.Entry{Run: "r", Data: journal.ToolFinished{Call: "c", Name: "bash", Content: strings.Repeat("漢", 300), IsError: true}}})
		rows := strings.Split(v.Content, "\n")
		if len(rows) > 12 {
			t.Errorf("%d rows of 12", len(rows))
		}
		for _, line := range append(rows, u.printed()...) {
			if n := lipgloss.Width(line); n > width {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
		}
		if c := v.Cursor; c == nil || c.X >= width || c.Y >= len(rows) {
			t.Errorf("the cursor is at %+v", c)
		}
	}
}
