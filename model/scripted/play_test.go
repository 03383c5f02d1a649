package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/errdefs"
	"github.com/pawl-dev/pawl/message"
	"github.com/pawl-dev/pawl/model"
)

// transcript makes a history of short words: "user:TEXT", "loop:TEXT" (a user message that the loop made), "says:TEXT", "calls:ID",
// "ok:ID", "fail:ID".
func transcript(words ...string) message.History {
	var h message.History
	for _, w := range words {
		kind, rest, _ := strings.Cut(w, ":")
		switch kind {
		case "user":
			h = h.Append(message.User(rest))
		case "loop":
			h = h.Append(message.New(message.RoleUser, message.Text{Text: rest, Origin: message.Origin{Provider: "pawl"}}))
		case "summary":
			h = h.Append(message.New(message.RoleAssistant, message.Text{Text: rest, Origin: message.Origin{Provider: "pawl"}}))
		case "says":
			h = h.Append(message.Assistant(rest))
		case "calls":
			h = h.Append(message.Assistant("", message.ToolCall{ID: rest, Name: "x", Input: "{}"}))
		case "ok", "fail":
			h = h.Append(message.Results(message.ToolResult{Call: rest, Name: "x", Content: "result of " + rest, IsError: kind == "fail"}))
		default:
			panic(w)
		}
	}
	return h
}

func TestTheTranscriptDecidesWhichEntryIsPlayed(t *testing.T) {
	call := func(id string) Turn { return Calls(Call{ID: id, Name: "x"}) }
	blank, down := Text(""), Fail(529)
	cut := Turn{Text: "cut", Stop: model.StopLength}
	when := func(w When, t Turn) Turn { t.When = w; return t }
	for _, c := range []struct {
		name    string
		turns   []Turn
		said    []string
		attempt int
		want    int // the entry from 1; 0: none is left
	}{
		{"the first request gets the first entry", []Turn{Text("a"), Text("b")}, []string{"user:"}, 0, 1},
		{"each assistant message stands for a reply, whatever it says", []Turn{Text("a"), Text("b")}, []string{"user:", "says:other", "user:"}, 0, 2},
		{"results don't count", []Turn{call("c"), Text("b")}, []string{"user:", "calls:c", "ok:c"}, 0, 2},
		{"a later run goes on", []Turn{call("c"), Text("b"), Text("c")}, []string{"user:", "calls:c", "ok:c", "says:b", "user:"}, 0, 3},
		{"a steering message changes nothing", []Turn{call("c"), Text("b")}, []string{"user:", "calls:c", "ok:c", "user:and this"}, 0, 2},
		{"a reply that was cut off goes on", []Turn{cut, Text("b")}, []string{"user:", "says:cut"}, 0, 2},
		{"nothing is left", []Turn{Text("a")}, []string{"user:", "says:a", "user:"}, 0, 0},
		{"more replies than the script has", []Turn{Text("a")}, []string{"user:", "says:a", "user:", "says:a", "user:"}, 0, 0},

		{"a blank reply is played again while nothing follows", []Turn{blank, Text("b")}, []string{"user:"}, 0, 1},
		{"a later user message passes one blank reply", []Turn{blank, blank, Text("b")}, []string{"user:", "user:"}, 0, 2},
		{"a later assistant message passes blank replies", []Turn{blank, Text("b"), Text("c")}, []string{"user:", "says:b", "user:"}, 0, 3},
		{"a blank reply behind results", []Turn{call("c"), blank, Text("b")}, []string{"user:", "calls:c", "ok:c", "user:"}, 0, 3},
		{"a blank reply after the end of a run", []Turn{Text("a"), blank, Text("b")}, []string{"user:", "says:a", "user:"}, 0, 2},
		{"a blank reply to a request to go on", []Turn{cut, blank, Text("b")}, []string{"user:", "says:cut", "user:"}, 0, 3},
		{"a blank assistant message stands for a blank reply", []Turn{blank, Text("b")}, []string{"user:", "says: ", "user:"}, 0, 2},
		{"what the loop says itself passes nothing", []Turn{blank, Text("b")}, []string{"user:", "loop:go on"}, 0, 1},
		{"and stands for no reply", []Turn{Text("a"), Text("b")}, []string{"summary:so far", "user:"}, 0, 1},

		{"the first try gets the first error", []Turn{down, down, Text("a")}, []string{"user:"}, 0, 1},
		{"the second gets the second", []Turn{down, down, Text("a")}, []string{"user:"}, 1, 2},
		{"the third the reply", []Turn{down, down, Text("a")}, []string{"user:"}, 2, 3},
		{"and so does any later one", []Turn{down, down, Text("a")}, []string{"user:"}, 7, 3},
		{"errors before a reply in the transcript are over", []Turn{down, Text("a"), Text("b")}, []string{"user:", "says:a", "user:"}, 0, 3},
		{"errors of another place count their attempts anew", []Turn{down, call("c"), down, Text("b")}, []string{"user:", "calls:c", "ok:c"}, 0, 3},
		{"a later run passes all errors in a row", []Turn{down, down, Text("a")}, []string{"user:", "user:"}, 0, 3},
		{"but not the ones behind the next reply", []Turn{down, Text("a"), down, Text("b")}, []string{"user:", "user:", "says:a", "user:"}, 0, 3},
		{"a later run after a failure behind results", []Turn{call("c"), down, Text("b")}, []string{"user:", "calls:c", "ok:c", "user:"}, 0, 3},
		{"errors at the beginning of a later run", []Turn{Text("a"), down, Text("b")}, []string{"user:", "says:a", "user:"}, 0, 2},
		{"a later run passes errors and the blank reply behind them", []Turn{down, blank, Text("a")}, []string{"user:", "user:"}, 0, 3},
		{"a blank reply, then errors", []Turn{blank, down, Text("a")}, []string{"user:", "user:"}, 0, 2},
		{"attempts beyond a script of errors", []Turn{down}, []string{"user:"}, 1, 0},

		{"a condition that is true", []Turn{call("c"), when(When{ToolError: "c"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "fail:c"}, 0, 2},
		{"a condition that is not", []Turn{call("c"), when(When{ToolError: "c"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "ok:c"}, 0, 3},
		{"a result that succeeded", []Turn{call("c"), when(When{ToolOK: "c"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "ok:c"}, 0, 2},
		{"a result that isn't there", []Turn{when(When{ToolOK: "c"}, Text("a")), when(When{ToolError: "c"}, Text("b")), Text("d")}, []string{"user:"}, 0, 3},
		{"the last result of a call counts", []Turn{call("c"), call("c"), when(When{ToolError: "c"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "fail:c", "calls:c", "ok:c"}, 0, 4},
		{"a text in what came last", []Turn{call("c"), when(When{Contains: "of c"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "ok:c"}, 0, 2},
		{"a text that came before", []Turn{call("c"), when(When{Contains: "magic"}, Text("b")), Text("d")}, []string{"user:magic", "calls:c", "ok:c"}, 0, 3},
		{"all conditions together", []Turn{when(When{ToolOK: "c", Contains: "x"}, Text("b")), Text("d")}, []string{"user:x"}, 0, 2},
		{"a condition is asked of its own point", []Turn{call("c"), when(When{ToolError: "c"}, Text("b")), Text("d"), Text("e")}, []string{"user:", "calls:c", "fail:c", "says:b", "user:"}, 0, 3},
		{"also when it was false there", []Turn{call("c"), when(When{Contains: "magic"}, Text("b")), Text("d"), Text("e")}, []string{"user:", "calls:c", "ok:c", "says:d", "user:magic"}, 0, 4},
		{"what a later message leaves unplayed is asked anew", []Turn{call("c"), when(When{Contains: "magic"}, Text("b")), Text("d")}, []string{"user:", "calls:c", "ok:c", "user:magic"}, 0, 2},
		{"conditions on errors", []Turn{when(When{Contains: "x"}, down), when(When{Contains: "y"}, down), Text("a")}, []string{"user:y"}, 0, 2},
		{"only entries with false conditions are left", []Turn{when(When{Contains: "x"}, Text("a"))}, []string{"user:"}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := transcript(c.said...)
			for range 2 { // a new Model each time: nothing is remembered
				got, err := New(c.turns...).Complete(model.WithAttempt(t.Context(), c.attempt), model.Request{Messages: h})
				var failed *model.Error
				switch {
				case c.want == 0:
					if !errors.Is(err, errdefs.Validation) {
						t.Errorf("%+v, %v: want an error of class validation", got, err)
					}
				case c.turns[c.want-1].Error != nil:
					if !errors.As(err, &failed) || !strings.Contains(failed.Message, fmt.Sprintf("turn %d ", c.want)) {
						t.Errorf("%v, want the error of turn %d", err, c.want)
					}
				case err != nil:
					t.Error(err)
				case got.ID != fmt.Sprintf("turn_%d", c.want):
					t.Errorf("%s, want turn_%d", got.ID, c.want)
				}
			}
		})
	}
}

func TestAScriptThatIsOverSaysHowLongItWas(t *testing.T) {
	_, err := New(Text("a"), Text("b")).Complete(t.Context(), model.Request{Messages: transcript("user:", "says:a", "user:", "says:b", "user:")})
	if err == nil || !strings.Contains(err.Error(), "scripted/test: the script has 2 turns and all were played") {
		t.Error(err)
	}
	_, err = New(Text("a"), Turn{Text: "b", When: When{ToolOK: "x"}}).Complete(t.Context(), model.Request{Messages: transcript("user:", "says:a", "user:")})
	if err == nil || !strings.Contains(err.Error(), "has 2 turns; 1 were played") {
		t.Error(err)
	}
}

// drive runs a script to its end, as a loop would: retries after errors, results after calls, and a new run after each end. It gives
// the positions of the entries played. Each call is another Model's.
func drive(turns []Turn, follow func(message.History) message.History) (played []string) {
	h := transcript("user:begin")
	attempt := 0
	for range 10 * len(turns) {
		ctx := model.WithAttempt(noContext, attempt)
		r, err := New(turns...).Complete(ctx, model.Request{Messages: h})
		var failed *model.Error
		switch {
		case errors.As(err, &failed):
			played = append(played, strings.Fields(failed.Message)[1])
			attempt++
			continue
		case err != nil:
			return played
		}
		attempt = 0
		played = append(played, strings.TrimPrefix(r.ID, "turn_"))
		if !r.Message.Blank() {
			h = h.Append(r.Message)
		}
		var results []message.ToolResult
		for _, c := range r.Message.ToolCalls() {
			results = append(results, message.ToolResult{Call: c.ID, Name: c.Name, Content: "ok"})
		}
		if len(results) > 0 {
			h = follow(h.Append(message.Results(results...)))
		} else {
			h = h.Append(message.User("go on"))
		}
	}
	return played
}

func genTurn(errs bool) *rapid.Generator[Turn] {
	return rapid.Custom(func(t *rapid.T) Turn {
		if errs && rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return Fail(rapid.SampledFrom([]int{400, 429, 500, 529}).Draw(t, "status"))
		}
		turn := Turn{Text: rapid.SampledFrom([]string{"", " ", "a", "a b"}).Draw(t, "text"), Stop: model.StopEnd}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			turn.Calls = append(turn.Calls, Call{Name: "x"})
		}
		if len(turn.Calls) > 0 {
			turn.Stop = model.StopTools
		}
		return turn
	})
}

func TestDrivingAScriptPlaysItInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOfN(genTurn(rapid.Bool().Draw(t, "with errors")), 1, 12).Draw(t, "turns")
		steer := rapid.Bool().Draw(t, "steer")
		want := make([]string, len(turns))
		for i := range turns {
			want[i] = fmt.Sprint(i + 1)
			// A user message behind results can't be told from a new run, so there it stands for what leaves no message.
			if i > 0 && len(turns[i-1].Calls) > 0 && (turns[i].Error != nil || turns[i].blank()) {
				steer = false
			}
		}
		got := drive(turns, func(h message.History) message.History {
			if steer {
				return h.Append(message.User("and this"))
			}
			return h
		})
		if !slices.Equal(got, want) {
			t.Fatalf("played %v, want %v", got, want)
		}
	})
}

func TestOneModelServesManyAtOnce(t *testing.T) {
	m := New(Text("a"), Text("b"), Text("c"))
	requests := []message.History{transcript("user:"), transcript("user:", "says:a", "user:"), transcript("user:", "says:a", "user:", "says:b", "user:")}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			r, err := m.Complete(t.Context(), model.Request{Messages: requests[i%3]})
			if err != nil || r.ID != fmt.Sprintf("turn_%d", i%3+1) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wg.Wait()
}
